"""Simulation of many trajectories by key: in this process, in local worker processes, or on a running Dask cluster.

A trajectory depends on its key alone, so the number of workers and the order change nothing. Whole files on disk are
kept; a build that was killed continues, and repeats only the trajectories that were being simulated.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rdjepa.data import store
from rdjepa.data.acquire import Acquirer
from rdjepa.data.fields import COMPONENTS
from rdjepa.data.parallel import completed
from rdjepa.data.trajectory import Key
from rdjepa.errors import OutputError, SimulationError
from rdjepa.pde.system import System
from rdjepa.progress import Progress

RETRIES = 3


@dataclass(frozen=True)
class BuildReport:
    """Result of a build.

    Attributes:
        made: number of trajectories that were simulated.
        kept: number of trajectories that were stored already.
        failed: key -> why it could not be simulated.
    """

    made: int
    kept: int
    failed: Mapping[Key, str]


def trajectory_bytes(system: System) -> int:
    """Return the size of the saved fields of one trajectory of a system."""
    numerics = system.numerics
    return numerics.frames * numerics.stored**2 * COMPONENTS * np.dtype(np.float32).itemsize


def require_space(out: Path | str, system: System, first: Key, count: int) -> None:
    """Refuse more trajectories of a system than the disk has room for, before their keys are listed.

    Args:
        out: dataset directory.
        system: the equation.
        first: key of the first trajectory; the others follow by their index.
        count: of the trajectories.

    Raises:
        OutputError: their fields, less those that are stored already, take more than is free.
    """
    folder = next(path for path in (Path(out).absolute(), *Path(out).absolute().parents) if path.is_dir())
    stored = store.keys(out, system.name, first.split, first.regime)
    there = sum(first.index <= key.index < first.index + count for key in stored)
    need, free = (count - there) * trajectory_bytes(system), shutil.disk_usage(folder).free
    if need > free:
        raise OutputError(
            f"expected {need / 1e9:,.0f} GB of free space for {count:,} trajectories of {system.name} in {out}, got "
            f"{free / 1e9:,.0f} GB; ask for fewer, or write elsewhere"
        )


def make(acquirer: Acquirer, key: Key) -> str:
    """Simulate and store one trajectory; return "" or the reason why no draw passed.

    Errors of another kind are raised.
    """
    try:
        acquirer.make(key)
    except SimulationError as error:
        return str(error)
    return ""


def build(
    out: Path | str,
    keys: Sequence[Key],
    *,
    sources: Mapping[str, str] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Simulate and store those of the given trajectories that are not stored yet.

    Args:
        out: dataset directory; on a cluster a path that all workers share.
        keys: of the trajectories.
        sources: system name -> file that defines it, for a user's systems.
        workers: local processes, each with one thread; 1 computes in this process.
        scheduler: address of a running Dask scheduler, used instead of local processes.
        progress: called with the number of trajectories done, their total and the key of the latest.

    Raises:
        OutputError: the disk is full or not writable.
        ArgumentError: fewer than one worker, or a scheduler that does not answer.
    """
    acquirer = Acquirer(Path(out).absolute(), sources=dict(sources or {}))
    missing = acquirer.unsound(keys)
    done = kept = len(keys) - len(missing)
    if progress:
        progress(done, len(keys), "")
    failed: dict[Key, str] = {}
    jobs = [(acquirer, key) for key in missing]
    names = [str(key) for key in missing]
    with completed(make, jobs, names, workers=workers, scheduler=scheduler, retries=RETRIES, held=2) as results:
        for position, result in results:
            if isinstance(result, ValueError | OSError):  # a full disk, a time step above its limit: all would fail
                raise result
            done += 1
            if isinstance(result, Exception):
                result = f"{type(result).__name__}: {result}"
            if result:
                failed[missing[position]] = result
            if progress:
                progress(done, len(keys), names[position])
    return BuildReport(len(missing) - len(failed), kept, failed)
