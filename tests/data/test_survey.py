import warnings

import numpy as np
import pytest

from rdjepa import systems
from rdjepa.api.support import read_support
from rdjepa.data import pace, store, survey
from rdjepa.data.readers import Reading, load
from rdjepa.data.survey import inspect
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import DataError, Note
from rdjepa.io import sealed

RNG = np.random.default_rng(0)
FIELDS = RNG.normal(size=(3, 12, 16, 16, 2)).astype(np.float32)


def test_what_is_found_is_what_is_there():
    found = inspect(FIELDS, Reading(interval=0.5, length=2.0), grid=8)
    assert (found.trajectories, found.frames, found.grids, found.dtype) == (3, (12, 12), ((16, 16),), "float32")
    assert (found.interval, found.length, found.boundary, found.looked, found.total) == (0.5, 2.0, None, 36, 36)
    assert (found.broken, found.constant, found.repeated, found.usable) == (0, 0, 0, True)
    assert found.axes == ("b t y x c (guessed; --axes says another)",)
    for number, each in enumerate(found.components):
        values = FIELDS[..., number].astype(np.float64)
        assert (each.low, each.high) == (values.min(), values.max())
        np.testing.assert_allclose((each.mean, each.std), (values.mean(), values.std()), rtol=1e-10)
        change = np.sqrt(np.mean(np.diff(values, axis=1) ** 2)) / values.std()
        np.testing.assert_allclose(each.change, change, rtol=1e-10)
    assert "averaged over blocks of 2 x 2" in found.plan and "12 windows of 4 + 5 frames" in found.plan
    assert all(heading in str(found) for heading, _ in found.rows())
    assert "with --tile" in found.plan and "--tile" not in inspect(FIELDS, grid=24).plan
    assert "--tile" not in inspect(FIELDS[:, :, :12], grid=8).plan


def test_cells_are_named_where_they_are_no_squares():
    stretched = Trajectory(FIELDS[0], np.arange(12.0), spacing=(1.0, 0.25))
    for found in (inspect(stretched), inspect(FIELDS, Reading(spacing=(1.0, 0.25)))):
        assert found.spacing == (1.0, 0.25) and ("cells", "1 x 0.25 (y x x)") in found.rows()
    for square in (inspect(FIELDS), inspect(FIELDS, Reading(spacing=(2.0, 2.0)))):
        assert not any(heading == "cells" for heading, _ in square.rows())


def test_what_adaptation_refuses_of_several_trajectories_is_said():
    assert "got 1 of 3 that repeat another; give each once" in inspect([*FIELDS[:2], FIELDS[0]]).plan
    mixed = inspect([FIELDS[0], FIELDS[1][..., :1]])
    assert not mixed.usable and mixed.plan.startswith("would refuse: ") and "some of one and some of two" in mixed.plan
    for source in ([*FIELDS[:2], FIELDS[0]], [FIELDS[0], FIELDS[1][..., :1]]):
        with pytest.raises(DataError) as refused:
            read_support(source, 16)
        assert str(refused.value) in inspect(source).plan


def test_points_that_are_never_finite_are_to_be_cropped_and_frames_that_are_not_to_be_cut():
    broken = FIELDS[0].copy()
    broken[5, 2, 3] = np.nan
    assert "got 1 frames that are not; fill these points, or cut the trajectories there" in inspect(broken).plan
    broken[:, 2, 3] = np.nan
    assert "got 12 frames that are not; fill these points, or crop the fields" in inspect(broken).plan


@pytest.mark.parametrize("frames", [1, 5])
def test_pieces_give_what_the_whole_gives(monkeypatch, frames):
    whole = inspect(FIELDS[0])
    monkeypatch.setattr(survey, "CHUNK", frames * FIELDS[0, 0].nbytes)
    pieces = inspect(FIELDS[0])
    assert pieces.looked == 12 and pieces.constant == whole.constant
    for a, b in zip(whole.components, pieces.components, strict=True):
        assert (a.low, a.high) == (b.low, b.high)
        np.testing.assert_allclose((a.mean, a.std, a.change), (b.mean, b.std, b.change), rtol=1e-9)


def test_of_much_data_frames_at_even_distances_are_looked_at(monkeypatch, tmp_path):
    monkeypatch.setattr(survey, "BUDGET", 8 * FIELDS[0, 0].nbytes)
    monkeypatch.setattr(survey, "TRAJECTORIES", 2)
    np.save(tmp_path / "a.npy", FIELDS)
    found = inspect(tmp_path / "a.npy")
    assert (found.looked, found.total) == (8, 36) and "8 of 36 frames looked at" in str(found)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (np.where(np.arange(12)[:, None, None, None] == 4, np.nan, FIELDS[0]), "1 frames that are not"),
        (np.stack([FIELDS[0, ..., 0], np.ones((12, 16, 16))], -1), "got component 1 between 1 and 1 in all frames"),
        (FIELDS[0] * 1e-30, "that vary by at least 1e-05"),
        (FIELDS[0, :8], "at least 9 frames"),
        (np.concatenate([FIELDS[0], FIELDS[1]], -1), "expected 2 components, got 4"),
        (FIELDS[0].astype(np.float64) * 1e60, "float32"),
    ],
)
def test_what_adaptation_would_refuse_is_said(fields, words):
    found = inspect(fields)
    assert not found.usable and found.plan.startswith("would refuse: expected") and words in found.plan


def test_only_the_components_that_are_read_are_judged():
    t, y, x = np.meshgrid(np.arange(40) / 15, *[np.arange(16) * np.pi / 8] * 2, indexing="ij")
    slow = np.stack([np.sin(x + y + t), np.cos(y - x - t)], -1)
    alone = inspect(slow, Reading(components=(0, 1)))
    assert alone.stride > 1 and alone.borders == ("periodic", "periodic")
    noise = np.random.default_rng(1).normal(size=(40, 16, 16, 1)) * np.arange(1, 17)[:, None] ** 3
    noise[5, 0, 0], noise[7], noise[9] = np.nan, 3.0, noise[8]
    found = inspect(np.concatenate([noise, slow], -1), Reading(components=(1, 2)), grid=8)
    for name in ("stride", "borders", "broken", "constant", "repeated", "looked", "usable"):
        assert getattr(found, name) == getattr(alone, name), name
    assert found.usable and [each.name for each in found.components] == ["1", "2"]
    np.testing.assert_allclose(found.change, alone.change, rtol=1e-12)


def test_the_components_that_are_read_are_listed_and_all_where_that_is_not_clear(tmp_path):
    np.savez(tmp_path / "a.npz", **{name: FIELDS[0, ..., number % 2] for number, name in enumerate("uvw")})  # type: ignore[arg-type]
    reading = Reading(field="u,v,w", components=("w", "u"))
    assert [each.name for each in inspect(tmp_path / "a.npz", reading).components] == ["w", "u"]
    refused = inspect(tmp_path / "a.npz", Reading(field="u,v,w"))
    assert not refused.usable and [each.name for each in refused.components] == ["u", "v", "w"]


def test_recordings_with_other_numbers_of_components_are_not_mixed():
    alone, three = inspect(FIELDS[0]), np.concatenate([FIELDS[1], FIELDS[2]], -1)[..., :3]
    found = inspect([FIELDS[0], three])
    assert found.components == alone.components and (found.looked, found.total) == (12, 24)
    assert found.plan.startswith("would refuse: expected 2 components, got 3")


@pytest.mark.parametrize("second", [["u", "v", "w"], ["v", "u"], ["w", "v", "u"], ["a", "b"]])
def test_components_of_later_sources_are_those_of_the_first_by_name_as_reading_takes_them(second):
    xarray = pytest.importorskip("xarray", reason="the extra `formats` is not installed")
    wide = np.concatenate([FIELDS[1], 100 * FIELDS[2]], -1)[..., : len(second)]
    given = [
        xarray.DataArray(fields, dims=("time", "y", "x", "component"), coords={"component": names})
        for fields, names in ((FIELDS[0], ["u", "v"]), (wide, second))
    ]
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", Note)
        read = np.stack([each.fields for each in load(given)])
    found = inspect(given)
    assert [str(note.message) for note in notes] == list(found.remarks)
    assert found.usable and [each.name for each in found.components] == ["u", "v"]
    np.testing.assert_allclose([each.std for each in found.components], read.std((0, 1, 2, 3), np.float64), rtol=1e-6)


def test_broken_constant_and_repeated_frames_are_counted():
    fields = FIELDS[0].copy()
    fields[2, 0, 0, 0], fields[5, ..., 1], fields[8] = np.inf, 3.0, fields[7]
    found = inspect(fields)
    assert (found.broken, found.constant, found.repeated) == (1, 1, 1)


@pytest.mark.parametrize(("each", "said"), [(1, False), (2, True)])
def test_that_frames_are_there_twice_is_noted(each, said):
    assert ("equal the one before say nothing new" in str(inspect(np.repeat(FIELDS[0], each, axis=0)))) == said


def test_one_component_and_whole_numbers_are_remarked():
    found = inspect((FIELDS[0, ..., 0] * 100).astype(np.int16))
    assert found.usable and len(found.components) == 1
    assert any("one frame earlier" in each for each in found.remarks)
    assert any("int16" in each for each in found.remarks)


def test_our_own_files_are_looked_at_without_reading_them_whole(make, tmp_path, monkeypatch):
    path = store.write(tmp_path, make())
    monkeypatch.setattr(store, "read", None)
    found = inspect(path)
    assert found.kinds == ("rdjepa file",) and found.boundary == "periodic" and found.length == 2.5


def test_nothing_is_refused():
    with pytest.raises(DataError, match="at least one trajectory"):
        inspect([])


@pytest.mark.slow
def test_the_changes_of_the_sources_are_those_measured():
    kept = sealed.read(pace.KEPT, dict[str, float], "")
    assert pace.measure() == pytest.approx(kept, abs=0.001) and tuple(kept) == systems.SOURCES
