"""A build depends on its keys alone, and survives what kills it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rdjepa.data import acquire, store
from rdjepa.data.build import build, require_space, trajectory_bytes
from rdjepa.data.trajectory import Key
from rdjepa.errors import OutputError, SimulationError
from rdjepa.systems import get

KEYS = [*(Key("schnakenberg", "pool", "id", i) for i in range(3)), Key("schnakenberg", "test")]


def checksums(base):
    return {key: store.read_record(store.path_of(base, key)).checksum for key in store.keys(base)}


def test_workers_and_order_change_no_bit(tmp_path):
    alone = build(tmp_path / "a", KEYS)
    together = build(tmp_path / "b", KEYS[::-1], workers=2)
    assert alone == together and alone.made == len(KEYS)
    assert checksums(tmp_path / "a") == checksums(tmp_path / "b")
    for key in KEYS:
        a, b = (store.path_of(tmp_path / name, key) for name in "ab")
        assert a.read_bytes() == b.read_bytes()


def test_what_is_whole_is_kept_and_the_rest_is_made(tmp_path):
    build(tmp_path, KEYS[:2])
    damaged = store.path_of(tmp_path, KEYS[0])
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-100])
    before = store.path_of(tmp_path, KEYS[1]).stat().st_mtime_ns
    seen = []
    built = build(tmp_path, KEYS[:3], progress=lambda *done: seen.append(done))
    assert (built.made, built.kept, seen) == (2, 1, [(1, 3, ""), (2, 3, str(KEYS[0])), (3, 3, str(KEYS[2]))])
    assert damaged.read_bytes() == whole and store.path_of(tmp_path, KEYS[1]).stat().st_mtime_ns == before


def test_a_hopeless_key_does_not_stop_the_others(tmp_path, monkeypatch):
    real = acquire.simulate

    def simulate(source, seed, **rest):
        if seed == 1:
            raise SimulationError("no draw passed")
        return real(source, seed=seed, **rest)

    monkeypatch.setattr(acquire, "simulate", simulate)
    built = build(tmp_path, KEYS[:3])
    assert built.made == 2 and built.failed == {KEYS[1]: "no draw passed"}


def test_no_workers_and_no_scheduler_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one worker"):
        build(tmp_path, KEYS, workers=0)


@pytest.mark.slow
def test_a_silent_scheduler_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="expected a Dask scheduler"):
        build(tmp_path, KEYS, scheduler="tcp://127.0.0.1:9")


def test_a_running_cluster_is_used(tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        assert build(tmp_path, KEYS[:2], scheduler=cluster.scheduler_address).made == 2


def command(base: Path) -> list[str]:
    options = ["--systems", "schnakenberg,lambda-omega", "--splits", "test", "--count", "8", "--workers", "2"]
    return [sys.executable, "-m", "rdjepa", "data", "build", "--out", str(base), *options]


def wait_for_files(base: Path, count: int, running: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while len(list(base.rglob("*.hdf5"))) < count and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.slow
def test_killed_builds_end_with_the_same_bytes(tmp_path):
    """Kill a whole build twice and one worker once; what is there in between is whole, and the end is the same."""
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    base = tmp_path / "killed"
    for count in (3, 9):
        running = subprocess.Popen(command(base), start_new_session=True, stdout=subprocess.DEVNULL)
        wait_for_files(base, count, running)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        assert all(store.has(base, key, verify=True) for key in store.keys(base))
    running = subprocess.Popen(command(base), start_new_session=True, stdout=subprocess.DEVNULL)
    wait_for_files(base, 14, running)
    workers = subprocess.run(["pgrep", "-f", "-g", str(running.pid), "spawn_main"], capture_output=True, text=True)
    *_, worker = workers.stdout.split()
    os.kill(int(worker), signal.SIGKILL)
    assert running.wait(timeout=240) == 0
    assert checksums(base) == checksums(tmp_path / "whole")
    assert (base / "manifest.json").read_bytes() == (tmp_path / "whole" / "manifest.json").read_bytes()


def test_more_than_the_disk_can_hold_is_refused_before_it_is_planned(tmp_path):
    require_space(tmp_path / "not" / "there", get("barkley"), Key("barkley"), 1)
    with pytest.raises(OutputError, match=r"GB of free space for 10,000,000,000 traj.*; ask for fewer"):
        require_space(tmp_path, get("barkley"), Key("barkley"), 10**10)


def test_only_those_that_are_asked_for_need_no_space_again(tmp_path, make, monkeypatch):
    free = 3 * trajectory_bytes(get("barkley")) // 2
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    for key in (Key("barkley", "test"), Key("barkley", "pool", "id", 2)):
        store.write(tmp_path, make(key))
    require_space(tmp_path, get("barkley"), Key("barkley", index=1), 2)
    for first in (Key("barkley"), Key("barkley", index=3), Key("barkley", "validation")):
        with pytest.raises(OutputError, match="free space for 2 trajectories"):
            require_space(tmp_path, get("barkley"), first, 2)
