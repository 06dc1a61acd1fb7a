import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml

from rdjepa.data import store
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError, OutputError
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
    np.testing.assert_allclose(y, 2.5 * np.arange(6) / 6, rtol=1e-6)


def test_round_trip_keeps_every_bit(tmp_path: Path, make: Make) -> None:
    trajectory = make(Key("barkley", "test", "ic-ood", 123), boundary="robin")
    path = store.write(tmp_path, trajectory)
    assert trajectory.key and path == store.path_of(tmp_path, trajectory.key)
    assert path.relative_to(tmp_path).as_posix() == "barkley/data/test/ic-ood-00123.hdf5"
    back = store.read(path)
    assert back.fields.tobytes() == trajectory.fields.tobytes() and back.fields.flags.c_contiguous
    assert back.times.tobytes() == trajectory.times.tobytes()
    for name in ("coefficients", "key", "attempt", "rejected", "initial_condition", "length", "boundary", "software"):
        assert getattr(back, name) == getattr(trajectory, name), name


def test_the_same_trajectory_gives_the_same_file(tmp_path: Path, make: Make) -> None:
    first, second = (store.write(tmp_path / name, make()).read_bytes() for name in "ab")
    assert first == second


def test_a_strided_view_is_stored_like_its_copy(tmp_path: Path, make: Make) -> None:
    wide = make(shape=(12, 6, 8, 4)).fields
    trajectory = make(fields=wide[::-1, :, :, ::2])
    assert np.array_equal(store.read(store.write(tmp_path, trajectory)).fields, trajectory.fields)


def test_a_window_is_the_slice_of_the_whole(tmp_path: Path, make: Make) -> None:
    trajectory = make()
    path = store.write(tmp_path, trajectory)
    window = store.read_window(path, 3, 12)
    assert np.array_equal(window, trajectory.fields[3:12]) and window.flags.c_contiguous
    for start, stop in ((-1, 4), (4, 4), (5, 13)):
        with pytest.raises(DataError, match="expected frames within 0 to 12"):
            store.read_window(path, start, stop)


def test_keys_are_listed_in_order_and_narrowed(tmp_path: Path, make: Make) -> None:
    wanted = [
        Key("barkley", "pool", "id", 2),
        Key("barkley", "test", "id", 0),
        Key("gray_scott", "pool", "id", 0),
        Key("gray_scott", "pool", "id", 11),
        Key("gray_scott", "validation", "id", 0),
        Key("gray_scott", "test", "id", 1),
        Key("gray_scott", "test", "coeff-ood", 1),
    ]
    for key in reversed(wanted):
        store.write(tmp_path, make(key))
    (tmp_path / "gray_scott/data/train/notes.hdf5").touch()
    (tmp_path / "gray_scott/data/other").mkdir()
    assert store.keys(tmp_path) == wanted
    assert store.keys(tmp_path, "gray_scott", "pool") == wanted[2:4]
    assert store.keys(tmp_path, split="test", regime="id") == [wanted[1], wanted[5]]
    assert store.keys(tmp_path / "nowhere") == []
    stored = store.Stored.under(tmp_path, "gray_scott", "pool")
    assert len(stored) == 2 and stored[1].key == wanted[3] and [t.key for t in stored[:1]] == wanted[2:3]


def test_stats_come_from_the_pool_alone(tmp_path: Path, make: Make) -> None:
    pool = [make(Key("gray_scott", "pool", "id", i)) for i in range(3)]
    test = make(Key("gray_scott", "test", "id", 0))
    for trajectory in [*pool, make(test.key, fields=test.fields + 100)]:
        store.write(tmp_path, trajectory)
    path = store.write_stats(tmp_path / "gray_scott")
    assert path == tmp_path / "gray_scott/stats.yaml"
    stats = yaml.safe_load(path.read_text())
    fields = np.stack([t.fields for t in pool]).astype(np.float64)
    for suffix, x in (("", fields), ("_delta", np.diff(fields, axis=1))):
        for c, name in enumerate("uv"):
            assert stats["mean" + suffix][name] == pytest.approx(x[..., c].mean(), rel=1e-10)
            assert stats["std" + suffix][name] == pytest.approx(x[..., c].std(), rel=1e-10)
            assert stats["rms" + suffix][name] == pytest.approx(np.sqrt(np.square(x[..., c]).mean()), rel=1e-10)
    assert len(stats) == 6


def test_stats_of_nothing_are_refused(tmp_path: Path, make: Make) -> None:
    store.write(tmp_path, make(Key("gray_scott", "test", "id", 0)))
    with pytest.raises(DataError, match="expected stored pool trajectories"):
        store.write_stats(tmp_path / "gray_scott")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_an_interrupted_writer_leaves_nothing(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException], moment: str
) -> None:
    def interrupt(*_: object) -> None:
        raise failure

    owner = os if moment == "fsync" else Path
    with monkeypatch.context() as patch:
        patch.setattr(owner, moment, interrupt)
        with pytest.raises(failure):
            store.write(tmp_path, make())
    key = make().key
    assert key is not None
    path = store.path_of(tmp_path, key)
    assert list(path.parent.iterdir()) == [] and store.keys(tmp_path) == []
    assert not store.has(tmp_path, key)


def test_an_interrupted_writer_keeps_the_older_file(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make()
    path = store.write(tmp_path, old)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.write(tmp_path, make(fields=old.fields + 1))
    assert np.array_equal(store.read(path).fields, old.fields)
    assert list(path.parent.iterdir()) == [path]


KILLED = """
import os, sys, time
import numpy as np
from rdjepa.data import store
from rdjepa.data.trajectory import Key, Trajectory

def linger(_):
    print("half way", flush=True)
    time.sleep(60)

os.fsync = linger
store.write(sys.argv[1], Trajectory(np.ones((9, 8, 8, 2), np.float32), np.arange(9.0), key=Key("gray_scott")))
"""


def test_a_killed_writer_leaves_no_file_that_reads_as_whole(tmp_path: Path, make: Make) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "half way\n"
        writer.send_signal(signal.SIGKILL)
    path = store.path_of(tmp_path, Key("gray_scott"))
    assert list(path.parent.iterdir()) and list(path.parent.glob("*.hdf5")) == []
    assert store.keys(tmp_path) == [] and not store.has(tmp_path, Key("gray_scott"))
    trajectory = make()
    assert trajectory.key is not None and store.write(tmp_path, trajectory)
    assert store.has(tmp_path, trajectory.key, verify=True)


def test_a_full_disk_is_one_sentence(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"expected to write .*, got a full disk; free some space"):
        store.write(tmp_path, make())


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


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="got none"):
        store.read(tmp_path / "absent.hdf5")
    text = tmp_path / "text.hdf5"
    text.write_text("not HDF5 at all")
    with pytest.raises(DataError, match="foreign"):
        store.read(text)
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["data"] = np.zeros(3)
    with pytest.raises(DataError, match="got another HDF5 file"):
        store.read_window(tmp_path / "other.hdf5", 0, 1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"key": None}, "expected a trajectory with a key"),
        ({"key": Key("gray_scott", "train")}, "expected a split among"),
        ({"key": Key("gray_scott", "pool", "ood")}, "expected a regime among"),
        ({"key": Key("../elsewhere")}, "expected a plain system name"),
        ({"key": Key("gray_scott", index=-1)}, "an index of at least 0"),
        ({"fields": np.zeros((12, 6, 8, 2))}, "expected float32 fields"),
        ({"fields": np.zeros((12, 6, 8, 3), np.float32)}, "expected float32 fields"),
        ({"fields": np.full((12, 6, 8, 2), np.nan, np.float32)}, "expected finite fields"),
        ({"times": np.zeros(11)}, "expected one time per frame"),
        ({"coefficients": {"n_trajectories": 1.0}}, "expected coefficient names of their own"),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path: Path, make: Make, changes: dict, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        store.write(tmp_path, make(**changes))
    assert not list(tmp_path.rglob("*.*"))


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


def test_a_file_under_the_name_of_another_key_is_refused(tmp_path: Path, make: Make) -> None:
    path, other = store.write(tmp_path, make()), Key("gray_scott", index=99)
    store.path_of(tmp_path, other).write_bytes(path.read_bytes())
    for get in (store.get, store.get_record):
        with pytest.raises(DataError, match=f"expected the trajectory {other} in"):
            get(tmp_path, other)
    assert not store.has(tmp_path, other)


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
