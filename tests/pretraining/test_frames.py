import errno
import os
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from rdjepa import systems
from rdjepa.data import store
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError, OutputError
from rdjepa.models.device import autocast
from rdjepa.models.rdjepa import build
from rdjepa.pretraining import frames
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.targets import TargetConfig

SYSTEMS = ("one", "two")


def trajectory(system, index, count=13, side=32, split="pool"):
    fields = (
        np.random.default_rng([index, len(split)]).standard_normal((count, side, side, 2)).astype(np.float32) * 2 + 5
    )
    return Trajectory(fields, np.arange(float(count)), {"a": 1.0}, Key(system, split, "id", index))


@pytest.fixture
def base(tmp_path):
    for system in SYSTEMS:
        for index in range(2):
            store.write(tmp_path / "data", trajectory(system, index, 13 + index))
    return tmp_path / "data"


def test_rows_are_the_standardized_frames_of_each_trajectory(base):
    source = Dataset.open(base, SYSTEMS)
    assert source.frames.counts == {"one": 2, "two": 2}
    for system in SYSTEMS:
        physical = [trajectory(system, index, 13 + index).fields for index in range(2)]
        normalizer = Normalizer.fit(physical)
        assert source.normalizers[system] == normalizer
        for fields, (row, count) in zip(physical, source.frames.spans[system], strict=True):
            stored = source.frames.take(torch.arange(row, row + count))
            assert torch.equal(stored, torch.from_numpy(normalizer.standardize(fields)).movedim(-1, 1))
            assert source.checksums[f"{system}/pool/id/{count - 13:05d}"] == store.checksum(fields)


def test_mapped_frames_are_those_in_memory_and_are_made_once(base, tmp_path, monkeypatch):
    whole = Dataset.open(base, SYSTEMS)
    mapped = Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames")
    assert torch.equal(whole.frames.table, mapped.frames.table)
    monkeypatch.setattr(frames, "_fill", None)
    again = Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames")
    assert torch.equal(whole.frames.table, again.frames.table)
    assert again.normalizers == whole.normalizers
    a, b = (each.batch(0, 3, 2, 4, TargetConfig(sides=(1, 2))) for each in (whole, again))
    assert torch.equal(a.context, b.context)
    assert torch.equal(a.futures, b.futures)


def test_known_statistics_are_taken_and_have_a_mapped_file_of_their_own(base, random_equations, tmp_path):
    known = {"one": Normalizer((1.0, 2.0), (3.0, 4.0)), "odd/pool/id/00001": Normalizer((5.0, 6.0), (7.0, 8.0))}
    plain = Dataset.open(base, ("one", "odd"), mapped=tmp_path / "frames")
    for mapped in (None, tmp_path / "frames", tmp_path / "frames"):
        source = Dataset.open(base, ("one", "odd"), mapped=mapped, known=known | {"two": known["one"]})
        assert source.normalizers == plain.normalizers | known
        for system, index, name in (("one", 1, "one"), ("odd", 1, "odd/pool/id/00001")):
            row, count = source.frames.spans[system][index]
            fields = store.get(base, Key(system, "pool", "id", index)).fields
            expected = torch.from_numpy(known[name].standardize(fields)).movedim(-1, 1)
            assert torch.equal(source.frames.take(torch.arange(row, row + count)), expected)
    assert len(list((tmp_path / "frames").glob("*.json"))) == 2


@pytest.fixture
def random_equations(base, registrations):
    """A family beside the systems; its trajectories differ in level and scale."""
    for split in ("pool", "validation"):
        for index in range(3):
            made = trajectory("odd", index, split=split)
            store.write(base, replace(made, fields=made.fields * (index + 1) + 10 * index))
    systems.register(replace(systems.get("family"), name="odd"), "family")


def test_every_trajectory_of_a_family_is_standardized_with_its_own_statistics(base, random_equations):
    source = Dataset.open(base, ("one", "odd"))
    keys = [f"odd/pool/id/{index:05d}" for index in range(3)]
    assert list(source.normalizers) == ["one", *keys]
    assert [source.normalizers[name].source for name in ("one", *keys)] == ["pool", *["trajectory"] * 3]
    for key, (row, count) in zip(keys, source.frames.spans["odd"], strict=True):
        fields = store.get(base, Key.parse(key)).fields
        assert source.normalizers[key] == Normalizer.fit([fields], "trajectory")
        table = source.frames.take(torch.arange(row, row + count))
        assert table.mean(dim=(0, 2, 3)).abs().max() < 1e-4 and (table.std(dim=(0, 2, 3)) - 1).abs().max() < 1e-3
    validation = Dataset.open(base, ("odd",), "validation")
    assert set(validation.normalizers) == {key.replace("pool", "validation") for key in keys}


def test_mapped_frames_in_another_order_are_another_file(base, tmp_path):
    for order in (SYSTEMS, SYSTEMS[::-1]):
        whole, mapped = Dataset.open(base, order), Dataset.open(base, order, mapped=tmp_path / "frames")
        assert torch.equal(whole.frames.table, mapped.frames.table) and whole.frames.spans == mapped.frames.spans


def test_mapped_frames_of_a_family_are_its_own_and_not_those_of_one_system(base, random_equations, tmp_path):
    whole = Dataset.open(base, ("one", "odd"))
    mapped = Dataset.open(base, ("one", "odd"), mapped=tmp_path / "frames")
    assert torch.equal(whole.frames.table, mapped.frames.table) and mapped.normalizers == whole.normalizers
    systems._REGISTERED.pop("odd")  # as an earlier version saw it: one system
    alike = Dataset.open(base, ("one", "odd"), mapped=tmp_path / "frames")
    assert not torch.equal(whole.frames.table, alike.frames.table) and list(alike.normalizers) == ["one", "odd"]
    assert len(list((tmp_path / "frames").glob("*.json"))) == 2


def test_a_mapped_file_without_its_mark_or_cut_short_is_made_again(base, tmp_path):
    whole = Dataset.open(base, SYSTEMS)
    Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames")
    (record,) = (tmp_path / "frames").glob("*.json")
    for damage in (record.unlink, lambda: record.with_suffix(".frames").write_bytes(b"cut short")):
        damage()
        assert torch.equal(whole.frames.table, Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames").frames.table)


def test_a_directory_in_the_place_of_frames_is_refused(base, tmp_path):
    Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames")
    (path,) = (tmp_path / "frames").glob("*.frames")
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="got the directory"):
        Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames")


def test_bfloat16_frames_are_what_a_bfloat16_layer_would_have_made_of_them(base):
    half, whole = (Dataset.open(base, SYSTEMS, dtype=dtype).frames for dtype in (torch.bfloat16, torch.float32))
    rows = torch.arange(20)
    assert half.take(rows).dtype == torch.float32
    assert torch.equal(half.take(rows), whole.take(rows).bfloat16().float())


def test_an_encoder_in_bfloat16_cannot_tell_bfloat16_frames_from_whole_ones(tiny):
    fields = torch.randn(2, 4, 2, tiny.grid, tiny.grid)
    encoder = build("tiny", seed=0).encoder
    with torch.no_grad(), autocast(torch.device("cpu"), "bfloat16"):
        assert torch.equal(encoder(fields), encoder(fields.bfloat16().float()))


def test_unfit_data_are_refused_in_one_sentence(base):
    store.write(base, trajectory("one", 2, side=16))
    with pytest.raises(DataError, match="one grid"):
        Dataset.open(base, SYSTEMS)
    store.write(base, trajectory("one", 2, count=9))
    with pytest.raises(DataError, match="at least 12 frames"):
        Dataset.open(base, SYSTEMS)
    with pytest.raises(ValueError, match="three"):
        Dataset.open(base, ("one", "three"))
    with pytest.raises(ValueError, match="never reads test"):
        Dataset.open(base, SYSTEMS, "test")


def test_more_than_is_free_is_refused_before_it_is_asked_for(base, monkeypatch):
    monkeypatch.setattr("rdjepa.data.readers.sizes.available_memory", lambda: 2**10)
    with pytest.raises(MemoryError, match=r"1 KiB of free memory, got .* in the frames; map them from a file"):
        Dataset.open(base, SYSTEMS)


def test_reading_takes_the_memory_of_one_system_beside_the_table(base, tmp_path, monkeypatch):
    held, most = [], []

    def watched(x, side):
        held.append(weakref.ref(made := x.copy()))
        most.append(sum(each() is not None for each in held))
        return made

    monkeypatch.setattr(frames, "block_means", watched)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # a second thread may hold the last one that it stored
    table = Dataset.open(base, SYSTEMS).frames.table
    assert max(most) == 2  # trajectories of a system
    one = table.nbytes // 2
    monkeypatch.setattr("rdjepa.data.readers.sizes.available_memory", lambda: table.nbytes + one - 1)
    with pytest.raises(MemoryError, match="in the frames; map them from a file"):
        Dataset.open(base, SYSTEMS)
    monkeypatch.setattr("rdjepa.data.readers.sizes.available_memory", lambda: one - 1)
    with pytest.raises(MemoryError, match="in the frames of one system; give fewer trajectories"):
        Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames")
    assert not list((tmp_path / "frames").iterdir())


def test_a_disk_that_is_full_is_one_sentence_before_any_frame_is_written(base, tmp_path, monkeypatch):
    def refuse(descriptor, begin, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OutputError, match="a full disk; free some space"):
        Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames")
    assert not list((tmp_path / "frames").iterdir())


def test_two_processes_that_make_the_same_frames_both_get_all_of_them(base, tmp_path, monkeypatch):
    """The second begins while the first is writing, and ends after it."""
    expected, fill = Dataset.open(base, SYSTEMS).frames.table, frames._fill
    inner: list[torch.Tensor] = []

    def filled(*arguments):
        found = fill(*arguments)
        monkeypatch.setattr(frames, "_fill", fill)
        if not inner:
            inner.append(Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames").frames.table)
        return found

    monkeypatch.setattr(frames, "_fill", filled)
    outer = Dataset.open(base, SYSTEMS, mapped=tmp_path / "frames").frames.table
    assert torch.equal(outer, expected) and torch.equal(inner[0], expected)
    assert not list((tmp_path / "frames").glob(".*"))
