"""Recordings lie in a data set as a system of their own, whole or not at all."""

import os
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest

from rdjepa.data import manifest, recorded, store
from rdjepa.data.readers import Reading
from rdjepa.data.recorded import Added, add_recordings
from rdjepa.data.trajectory import Key
from rdjepa.errors import ArgumentError, DataError, Note, OutputError
from rdjepa.io import sealed
from rdjepa.systems import get


def fields(seed=0, frames=12, height=8, width=8, components=2):
    return np.random.default_rng(seed).normal(size=(frames, height, width, components)).astype(np.float32)


def test_every_so_many_trajectories_one_is_for_diagnostics_and_all_keep_their_bits(tmp_path):
    given, told = [fields(seed) for seed in range(5)], []
    added = add_recordings(given, "mine", tmp_path, validation=3, progress=lambda *state: told.append(state))
    assert added == Added(3, 2, 1) and recorded.recorded(tmp_path) == ("mine",)
    validation, pool = (store.Stored.under(tmp_path, "mine", split) for split in ("validation", "pool"))
    for found, seeds in ((validation, (0, 3)), (pool, (1, 2, 4))):
        assert [each.fields.tobytes() for each in found] == [given[seed].tobytes() for seed in seeds]
    assert [state[:2] for state in told] == [(number, 5) for number in range(1, 6)]
    assert manifest.verify(tmp_path).good and manifest.verify(tmp_path).whole == 5
    assert (tmp_path / "mine" / "stats.yaml").is_file()


def test_what_is_there_stays_and_lists_what_was_added(tmp_path, make, capsys):
    store.write(tmp_path, make(Key("barkley")))
    add_recordings([fields(0), fields(1)], "mine", tmp_path)
    assert {key.system for key in manifest.read(tmp_path)} == {"barkley", "mine"}
    assert "one set of versions" not in capsys.readouterr().err
    mine = replace(get("barkley"), name="mine")
    manifest.claim(tmp_path / "own", [mine])
    shutil.copy(tmp_path / "own" / manifest.RECIPE, tmp_path)
    for use in (manifest.claim, manifest.check):
        with pytest.raises(DataError, match="expected no recordings called mine"):
            use(tmp_path, [mine])


def test_the_same_again_changes_nothing_and_others_are_refused(tmp_path):
    given = [fields(seed) for seed in range(3)]
    first = add_recordings(given, "mine", tmp_path)
    assert add_recordings(given, "mine", tmp_path, reading=Reading(stride=1)) == first
    told = sealed.read(tmp_path / "mine" / recorded.RECORDINGS, dict, "")
    sealed.write(
        tmp_path / "mine" / recorded.RECORDINGS, told | {"reading": told["reading"] | {"stride": None}}
    )  # once
    (tmp_path / manifest.MANIFEST).unlink()  # as one who was killed before it was written
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}
    assert add_recordings(given, "mine", tmp_path) == first and manifest.verify(tmp_path).good
    for others, arguments in (
        (given[:2], {}),
        ([*given[:2], fields(3)], {}),
        (given, {"validation": 2}),
        (given, {"reading": Reading(interval=0.5)}),
    ):
        with pytest.raises(OutputError, match=r"expected no other recordings in .*mine, got some; choose another name"):
            add_recordings(others, "mine", tmp_path, **arguments)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")} == before
    (tmp_path / "yours").mkdir()
    with pytest.raises(OutputError, match=r"expected no folder .*yours, got one; choose another name"):
        add_recordings(given, "yours", tmp_path)


def test_the_record_says_where_they_are_from_and_how_they_were_read(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.stack([fields(0, 24, 16, 16), fields(1, 24, 16, 16)]))
    source = tmp_path / "a.npz"
    added = add_recordings(source, "mine", tmp_path, grid=8, stride=2, reading=Reading(interval=0.5))
    assert added == Added(1, 1, 2)
    told = sealed.read(tmp_path / "mine" / recorded.RECORDINGS, dict, "")
    assert (told["source"], told["grid"], told["reading"]["stride"]) == ([str(source)], 8, 2)
    found = store.get(tmp_path, Key("mine"))
    assert found.fields.shape == (12, 8, 8, 2) and np.diff(found.times) == pytest.approx(1.0)
    blocks = fields(1, 24, 16, 16)[1::2].reshape(12, 8, 2, 8, 2, 2).mean((2, 4))
    assert np.allclose(found.fields, blocks, atol=1e-6)


def test_the_stride_that_inspection_suggests_leaves_a_window(tmp_path):
    start, end = fields(0, 1), fields(1, 1)
    slow = [start + (end - start) * np.linspace(0, each, 400)[:, None, None, None] for each in (1.0, 1.1)]
    slow = [each.astype(np.float32) for each in slow]
    suggested = recorded.survey.inspect(slow[:1]).stride
    assert suggested > 36 and add_recordings(slow, "mine", tmp_path, stride="auto").stride == 36
    assert store.get(tmp_path, Key("mine")).fields.shape[0] == 12


def test_fields_that_are_brought_to_a_square_grid_may_have_any_shape(tmp_path):
    given = np.stack([fields(seed, height=8, width=16) for seed in range(2)])
    add_recordings(given, "mine", tmp_path, grid=8)
    assert store.get(tmp_path, Key("mine")).fields.shape == (12, 8, 8, 2)


def test_cells_are_square_to_a_thousandth(tmp_path):
    for name, ratio in (("mine", 1.0004), ("yours", 1.01)):
        given, reading = [fields(0), fields(1)], Reading(spacing=(0.1 * ratio, 0.1))
        if ratio > 1.001:
            with pytest.raises(DataError, match=r"cells as wide as they are high, got distances of 0\.101"):
                add_recordings(given, name, tmp_path, reading=reading)
        else:
            assert add_recordings(given, name, tmp_path, reading=reading).pool == 1


def test_a_name_that_is_no_text_can_be_recorded(tmp_path):
    odd = tmp_path / os.fsdecode(b"x\xff.npy")
    np.save(odd, np.stack([fields(0), fields(1)]))
    add_recordings(odd, "mine", tmp_path / "data")
    told = sealed.read(tmp_path / "data" / "mine" / recorded.RECORDINGS, dict, "")
    assert told["source"][0].endswith("x\\udcff.npy")


def test_few_trajectories_for_diagnostics_are_noted(tmp_path):
    given = [fields(seed) for seed in range(10)]
    with pytest.warns(Note, match="2 of 10 trajectories are few for diagnostics"):
        add_recordings(given, "mine", tmp_path, validation=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Note)
        add_recordings(given, "yours", tmp_path, validation=2)


def test_of_one_component_the_second_is_the_same_a_frame_earlier(tmp_path):
    given = [fields(seed, 13, components=1) for seed in range(2)]
    add_recordings(given, "mine", tmp_path)
    found = store.get(tmp_path, Key("mine")).fields
    assert np.array_equal(found[..., :1], given[1]) and np.array_equal(found[1:, ..., 1:], given[1][:-1])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([fields()], "at least two trajectories, one of them for diagnostics, got 1 in a ndarray; give more"),
        (
            [fields(0), fields(1), fields(0)],
            "trajectories that differ, got one, number 3, that repeats another; give each once",
        ),
        ([fields(0), fields(1, 13, components=1)], "as many measured components, got some of one and some of two"),
        ([fields(0), fields(1, 11)], "at least 12 frames on the first axis, got 11"),
        ([fields(0, width=12), fields(1, width=12)], "square fields to pretrain on, got 8 x 12; crop them"),
        ([fields(0), fields(1) * np.nan], "finite"),
    ],
)
def test_recordings_that_no_model_can_be_pretrained_on_are_refused_and_leave_nothing(tmp_path, given, words):
    with pytest.raises(DataError, match=words):
        add_recordings(given, "mine", tmp_path / "data")
    assert not (tmp_path / "data").exists() or not list((tmp_path / "data").iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "barkley"}, "a name of its own, got 'barkley', which is taken"),
        ({"name": "my/data"}, "letters, digits, - and _, the first a letter or digit, for a name, got 'my/data'"),
        ({"stride": "some"}, "a stride of a whole number or \"auto\", got 'some'"),
        ({"stride": 2, "reading": Reading(stride=3)}, "one stride, got 2 and 3 in reading"),
        ({"validation": 0}, "validation"),
        ({"validation": 1}, "a validation of at least 2, got 1, which leaves none to train on"),
        ({"grid": 0}, "grid"),
    ],
)
def test_unfit_arguments_are_refused(tmp_path, arguments, words):
    with pytest.raises(ArgumentError, match=words):
        add_recordings([fields(0), fields(1)], **{"name": "mine", "out": tmp_path / "data"} | arguments)
    assert not (tmp_path / "data").exists()


def test_a_directory_with_the_manifest_of_something_else_is_kept(tmp_path):
    (tmp_path / manifest.MANIFEST).write_text('{"name": "a page"}')
    with pytest.raises(DataError, match="choose another directory"):
        add_recordings([fields(0), fields(1)], "mine", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [manifest.MANIFEST]
