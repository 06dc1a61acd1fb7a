import errno
import os
import shutil
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

Make = Callable[..., Trajectory]


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


def test_what_a_file_has_no_place_for_comes_back_as_nothing_was_said(tmp_path: Path, make: Make) -> None:
    back = store.read(store.write(tmp_path, make(names=("predator", "prey"), timed=False, spacing=(0.5, 0.5))))
    assert (back.names, back.timed, back.spacing) == ((), True, (1.0, 1.0))


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
    shutil.copytree(tmp_path / "barkley", tmp_path / "barkley (1)")
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
        ({"coefficients": {"feed": np.nan, "kill": 1.0}}, "expected finite coefficients and a finite length, got feed"),
        ({"length": np.inf}, "expected finite coefficients and a finite length, got length = inf"),
        ({"spacing": (0.5, 1.0)}, "got distances of 0.5 between rows and 1 between columns"),
        ({"coefficients": {"n_trajectories": 1.0}}, "expected coefficient names of their own"),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path: Path, make: Make, changes: dict, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        store.write(tmp_path, make(**changes))
    assert not list(tmp_path.rglob("*.*"))


def test_a_file_under_the_name_of_another_key_is_refused(tmp_path: Path, make: Make) -> None:
    path, other = store.write(tmp_path, make()), Key("gray_scott", index=99)
    store.path_of(tmp_path, other).write_bytes(path.read_bytes())
    for get in (store.get, store.get_record):
        with pytest.raises(DataError, match=f"expected the trajectory {other} in"):
            get(tmp_path, other)
    assert not store.has(tmp_path, other)
