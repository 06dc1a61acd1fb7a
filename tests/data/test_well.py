"""The layout of a trajectory file: The Well's rules, and damage to what describes the fields."""

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from rdjepa.data import store
from rdjepa.data.readers import load
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError
from rdjepa.io import sealed

Make = Callable[..., Trajectory]


def check_the_well_format(path: Path) -> None:
    """The rules of The Well's format, stated once more on their own."""

    def flagged(item: h5py.Group | h5py.Dataset) -> tuple[bool, bool]:
        flags = item.attrs["sample_varying"], item.attrs["time_varying"]
        assert all(isinstance(flag, bool | np.bool_) for flag in flags)
        return bool(flags[0]), bool(flags[1])

    def strings(values: object) -> list[str]:
        assert isinstance(values, np.ndarray)
        assert all(isinstance(value, str) for value in values)
        return list(values)

    with h5py.File(path) as file:
        assert isinstance(file.attrs["dataset_name"], str)
        assert file.attrs["grid_type"] == "cartesian"
        assert file.attrs["n_spatial_dims"] == 2
        count = file.attrs["n_trajectories"]
        assert isinstance(count, int | np.integer)
        for name in strings(file.attrs["simulation_parameters"]):
            assert name in file.attrs and name in file["scalars"]

        dimensions = file["dimensions"]
        axes = strings(dimensions.attrs["spatial_dims"])
        assert axes == ["x", "y"]
        assert flagged(dimensions["time"]) == (False, True)
        assert dimensions["time"].dtype == np.float32
        for axis in axes:
            assert flagged(dimensions[axis]) == (False, False)
            assert dimensions[axis].dtype == np.float32

        for order in range(3):
            group = file[f"t{order}_fields"]
            assert sorted(strings(group.attrs["field_names"])) == sorted(group)
            for field in group.values():
                assert field.dtype == np.float32
                assert flagged(field) == (True, True)
                varying = field.attrs["dim_varying"]
                assert varying.dtype == bool and varying.tolist() == [True, True]
                sizes = [dimensions[axis].shape[0] for axis in axes]
                assert field.shape == (count, dimensions["time"].shape[0], *sizes)
        assert set(file["t0_fields"]) == {"u", "v"}

        scalars = file["scalars"]
        assert sorted(strings(scalars.attrs["field_names"])) == sorted(scalars)
        for scalar in scalars.values():
            assert flagged(scalar) == (True, False) and scalar.shape == (count,)

        assert len(file["boundary_conditions"]) == 2
        for group in file["boundary_conditions"].values():
            assert group.attrs["bc_type"] in ("PERIODIC", "WALL", "OPEN")
            assert flagged(group) == (False, False)
            assert set(strings(group.attrs["associated_fields"])) == {"u", "v"}
            (axis,) = strings(group.attrs["associated_dims"])
            mask = group["mask"][:]
            assert mask.dtype == bool and mask.shape == dimensions[axis].shape
            assert np.flatnonzero(mask).tolist() == [0, len(mask) - 1]


@pytest.mark.parametrize("boundary", ["periodic", "neumann", "robin"])
@pytest.mark.parametrize("coefficients", [{}, {"a": 1 / 3, "b": -2.0}])
def test_a_file_obeys_the_wells_format(tmp_path: Path, make: Make, boundary: str, coefficients: dict) -> None:
    path = store.write(tmp_path, make(boundary=boundary, coefficients=coefficients))
    check_the_well_format(path)
    with h5py.File(path) as file:
        kind = "periodic" if boundary == "periodic" else "wall"
        assert set(file["boundary_conditions"]) == {f"x_{kind}", f"y_{kind}"}
        assert file[f"boundary_conditions/x_{kind}"].attrs["kind"] == boundary


def test_the_well_has_x_before_y(tmp_path: Path, make: Make) -> None:
    trajectory = make()
    with h5py.File(store.write(tmp_path, trajectory)) as file:
        u = file["t0_fields/u"][0]
        x, y = file["dimensions/x"][:], file["dimensions/y"][:]
    assert np.array_equal(u.swapaxes(1, 2), trajectory.fields[..., 0])
    np.testing.assert_allclose(x, 2.5 * np.arange(8) / 8, rtol=1e-6)
    np.testing.assert_allclose(y, 2.5 * np.arange(6) / 8, rtol=1e-6)  # cells are as high as wide


def test_an_unknown_boundary_is_none_to_the_readers_of_the_well(tmp_path: Path, make: Make) -> None:
    with h5py.File(store.write(tmp_path, make(boundary="unknown"))) as file:
        assert list(file["boundary_conditions"]) == []


def test_every_truncation_is_refused(tmp_path: Path, make: Make) -> None:
    trajectory = make()
    assert trajectory.key is not None
    path = store.write(tmp_path, trajectory)
    whole = path.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert not store.has(tmp_path, trajectory.key), size
        with pytest.raises(DataError, match="truncated, damaged or foreign"):
            store.read(path)


def test_a_flipped_bit_in_the_fields_is_refused(tmp_path: Path, make: Make) -> None:
    trajectory = make()
    path = store.write(tmp_path, trajectory)
    content = bytearray(path.read_bytes())
    at = content.index(np.ascontiguousarray(trajectory.fields[..., 1].swapaxes(1, 2)).tobytes())
    content[at + 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="expected fields that match their checksum"):
        store.read(path)
    key = trajectory.key
    assert key is not None and store.has(tmp_path, key) and not store.has(tmp_path, key, verify=True)
    assert not np.array_equal(store.read(path, verify=False).fields, trajectory.fields)


def lose(file: h5py.File, name: str) -> h5py.File:
    del file[name]
    return file


def rewrite(file: h5py.File, *, sealing: bool = True, **changes: object) -> None:
    """Change entries of the record; sealed again, or under the seal of the others, or without one (seal=None)."""
    text = file["rdjepa_record"][()]
    values = {name: value for name, value in (json.loads(text) | changes).items() if value is not None}
    new = sealed.encode({name: value for name, value in values.items() if name != "seal"}) if sealing else ""
    lose(file, "rdjepa_record").create_dataset("rdjepa_record", data=np.bytes_(new or json.dumps(values)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: lose(file, "t0_fields/v"),
        lambda file: lose(file, "rdjepa_record"),
        lambda file: rewrite(file, checksum="?"),
        lambda file: rewrite(file, times=[1.0, 2.0]),
        lambda file: rewrite(file, shape=[1, 6, 8]),
        lambda file: lose(file, "rdjepa_record").create_dataset("rdjepa_record", data=np.bytes_(b"[not json")),
        lambda file: lose(file, "rdjepa_record").create_dataset("rdjepa_record", data=np.zeros(3)),
        lambda file: file.attrs.__setitem__("rdjepa_format_version", 99),
        lambda file: file.attrs.__delitem__("rdjepa_format_version"),
        lambda file: lose(file, "t0_fields/v")["t0_fields"].create_dataset("v", data=np.zeros((1, 12, 8, 6))),
    ],
)
def test_other_damage_is_one_sentence(tmp_path: Path, make: Make, damage: Callable[[h5py.File], object]) -> None:
    path = store.write(tmp_path, make())
    with h5py.File(path, "r+") as file:
        damage(file)
    with pytest.raises(DataError, match=r"^expected .*, got .*; .*") as caught:
        store.read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attempt", 7),
        ("boundary", "neumann"),
        ("checksum", "0" * 64),
        ("initial_condition", "another"),
        ("length", 3.0),
        ("rejected", ["a reason"]),
        ("software", {}),
        ("key", {"system": "gray_scott", "split": "pool", "regime": "id", "index": 5}),
        ("coefficients", {"D": 0.5}),
        ("times", [float(k) for k in range(12)]),
        ("seal", None),
    ],
)
def test_a_changed_description_is_refused(tmp_path: Path, make: Make, name: str, value: object) -> None:
    trajectory = make(coefficients={"D": 2})
    path = store.write(tmp_path, trajectory)
    assert store.read(path).coefficients == {"D": 2.0}
    with h5py.File(path, "r+") as file:
        rewrite(file, sealing=False, **{name: value})
    for read in (store.read, store.read_record):
        with pytest.raises(DataError, match="seal"):
            read(path)


def test_values_of_other_files_are_not_read(tmp_path: Path, make: Make) -> None:
    path = store.write(tmp_path, make())
    (tmp_path / "secret").write_bytes(b"x" * 10**6)
    with h5py.File(path, "r+") as file:
        shape = file["t0_fields/u"].shape
        del file["t0_fields/u"]
        outside = [(str(tmp_path / "secret"), 0, h5py.h5f.UNLIMITED)]
        file["t0_fields"].create_dataset("u", shape, "<f4", external=outside)
    with pytest.raises(DataError, match="got those of another file"):
        store.read(path)
    other = store.write(tmp_path, make(key=Key("gray_scott", index=5)))
    with h5py.File(other, "r+") as file:
        del file["rdjepa_record"]
        file["rdjepa_record"] = h5py.ExternalLink(str(path), "rdjepa_record")
    with pytest.raises(DataError, match="got those of another file"):
        store.read(other)


@pytest.mark.parametrize(
    ("lost", "sentence"),
    [
        ("rdjepa_format_version", "expected a file written by rdjepa, got another HDF5 file"),
        ("rdjepa_record", "expected a whole trajectory file, got a truncated, damaged or foreign one"),
    ],
)
def test_a_file_that_lost_one_of_its_marks_is_not_read_as_another_kind(
    tmp_path: Path, make: Make, lost: str, sentence: str
) -> None:
    path = store.write(tmp_path, make())
    with h5py.File(path, "r+") as file:
        if lost in file:
            del file[lost]
        else:
            del file.attrs[lost]
    with pytest.raises(DataError, match=sentence):
        load(path)
