"""Files of format version 1, as that version wrote them: tests/data/version_1/sealed.hdf5."""

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from rdjepa.data import store
from rdjepa.data.readers import load
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError

WRITTEN = Path(__file__).parent / "version_1" / "sealed.hdf5"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(WRITTEN, tmp_path / "a.hdf5"))


def test_it_is_read_whole(path: Path) -> None:
    found = store.read(path)
    assert np.array_equal(found.fields, np.random.default_rng(0).standard_normal((3, 4, 4, 2)).astype(np.float32))
    assert found.times.tolist() == [0.0, 0.1, 0.2] and found.coefficients == {"D": 0.1, "feed": 0.03}
    assert found.key == Key("family", index=7) and found.attempt == 1 and found.rejected == ("flat",)
    assert (found.initial_condition, found.length, found.boundary) == ("bumps", 2.5, "periodic")
    assert found.software == {"rdjepa": "0.1.1"}
    assert found.kind == "predator-prey" and found.nearest == ("barkley", 0.31)
    (loaded,) = load(path, minimum_frames=3)
    assert np.array_equal(loaded.fields, found.fields) and np.array_equal(loaded.times, found.times)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rdjepa_attempt", 7),
        ("rdjepa_boundary", "neumann"),
        ("rdjepa_checksum", "0" * 64),
        ("rdjepa_initial_condition", "another"),
        ("rdjepa_length", 3.0),
        ("rdjepa_rejected", '["a reason"]'),
        ("rdjepa_software", "{}"),
        ("rdjepa_index", 5),
        ("rdjepa_kind", "another"),
        ("D", 0.5),
        ("rdjepa_times", None),
    ],
)
def test_a_changed_description_is_refused(path: Path, name: str, value: object) -> None:
    with h5py.File(path, "r+") as file:
        if value is None:
            file[name][0] += 1.0
        else:
            file.attrs[name] = value
    for read in (store.read, store.read_record):
        with pytest.raises(DataError, match="seal"):
            read(path)


def test_what_is_lost_is_one_sentence(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file.attrs["rdjepa_checksum"]
    with pytest.raises(DataError, match="expected a whole trajectory file"):
        store.read(path)


def test_a_file_of_the_first_version_has_no_seal(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        for name in ("rdjepa_seal", "rdjepa_kind", "rdjepa_nearest"):
            del file.attrs[name]
    assert store.read(path).key == store.read_record(path).key == Key("family", index=7)
    assert store.read(path).kind == ""


def test_times_of_another_file_are_not_read(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "b.hdf5")
    with h5py.File(path, "r+") as file:
        del file["rdjepa_times"]
        file["rdjepa_times"] = h5py.ExternalLink(str(tmp_path / "b.hdf5"), "rdjepa_times")
    with pytest.raises(DataError, match="got those of another file"):
        store.read(path)
