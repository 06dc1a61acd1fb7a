"""The directory of a pretraining: one process at a time, its data, and the lines of its curves."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rdjepa.data.statistics import Normalizer
from rdjepa.errors import ArgumentError, DataError, DivergenceError
from rdjepa.io import checkpoint, sealed
from rdjepa.io.atomic import write_bytes, writing
from rdjepa.io.checkpoint import METRICS
from rdjepa.pretraining.dataset import Dataset

ROUNDING = 1e-4  # standard deviations by which field statistics may differ: machines sum in another order


def append(path: Path, record: Mapping) -> None:
    """Append one record as a line of JSON.

    Raises:
        DivergenceError: a number of it is not finite, which no reader of JSON takes.
        OutputError: the disk is full, or the path cannot be written.
    """
    try:
        line = json.dumps(record, allow_nan=False)
    except ValueError as error:
        raise DivergenceError(
            f"expected finite metrics at step {record['step']}, got one that is not; correct what the objective "
            "measures, or start a new run with a lower peak learning rate"
        ) from error
    with writing(path), path.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())  # a state that is saved later counts on these lines


@contextlib.contextmanager
def alone(run: Path) -> Iterator[None]:
    """Refuse a run directory in which another process pretrains; the kernel unlocks it when that process dies."""
    with writing(run):
        run.mkdir(parents=True, exist_ok=True)
        lock = FileLock(run / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ArgumentError(
                f"expected a run directory of its own, got {run}, where another process pretrains; "
                "wait until it ends, or choose another directory"
            ) from None
    try:
        yield
    finally:
        lock.release()


def require_free(run: Path, resuming: bool) -> None:
    """Refuse a directory in which a run would start over, or overwrite what another wrote.

    Raises:
        ArgumentError: a run that is not to be resumed, one that has a model and no states, or a part of one alone.
    """
    begun = (run / checkpoint.DATA).exists()
    if begun and not resuming:
        raise ArgumentError(f"expected an empty run directory, got a run at {run}; resume it or choose another")
    there = [name for name in ("model", METRICS, "state") if (run / name).exists()]
    if (there and not begun) or ("model" in there and not any((run / "state").glob("step-*.safetensors"))):
        raise ArgumentError(
            f"expected an empty directory, or a run with its states, got {run} with {there[0]} but without "
            f"{'states' if begun else checkpoint.DATA}; choose another directory, or move that away"
        )


def claim(run: Path, dataset: Dataset, resuming: bool) -> None:
    """Record the data of a new run, or check that a resumed run gets the same data.

    Raises:
        ArgumentError: a directory that is not free for it, or other data.
    """
    require_free(run, resuming)
    normalizers = {name: n.to_dict() for name, n in dataset.normalizers.items()}
    record = checkpoint.Sources(normalizers, dataset.checksums, list(dataset.frames.spans))
    path = run / checkpoint.DATA
    if path.exists():
        there = sealed.read(path, checkpoint.Sources, "choose another directory")
        if there.systems != record.systems:
            raise ArgumentError(
                f"expected the systems {', '.join(there.systems)} that {run} was started with, in this order, "
                f"got {', '.join(record.systems)}; name the same systems or choose another directory"
            )
        if there.trajectories != dataset.checksums:
            raise ArgumentError(f"expected the trajectories that {run} was started with, got others; use the same data")
        if there.normalizers.keys() != normalizers.keys():
            raise ArgumentError(
                f"expected the field statistics that {run} was started with, got those of each equation, which earlier "
                "versions did not take in a family; start a new run"
            )
        former = {name: Normalizer.from_dict(values) for name, values in there.normalizers.items()}
        if others := [name for name, own in dataset.normalizers.items() if not _alike(own, former[name])]:
            raise ArgumentError(
                f"expected the field statistics that {run} was started with, got others of {others[0]}, with the same "
                "trajectories: another version took them, or another --start; start a new run"
            )
    else:
        sealed.write(path, asdict(record))


def _alike(one: Normalizer, other: Normalizer) -> bool:
    """Return whether two statistics standardize alike, but for the order of summation."""
    pairs = [*zip(one.mean, other.mean, one.scale, strict=True), *zip(one.scale, other.scale, one.scale, strict=True)]
    return all(abs(a - b) <= ROUNDING * scale for a, b, scale in pairs)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines of the curves of a run.

    Raises:
        DataError: there is no such file, or a line of it is damaged.
    """
    if not path.is_file():
        raise DataError(f"expected the curves of a run in {path}, got no file; check the path")
    lines = path.read_bytes().splitlines()
    return [sealed.decode(line, dict[str, Any], f"in {path}", "resume the run from its last state") for line in lines]


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file; "" where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def trim(path: Path, step: int, checksum: str = "") -> None:
    """Drop the lines of steps after the state that a resumed run starts from; the others must have its checksum.

    Raises:
        DataError: they have not.
    """
    if path.is_file():
        kept = []
        for line in path.read_bytes().splitlines(keepends=True):
            # An interrupted run may leave an incomplete line at the end; no other one is passed over.
            with contextlib.suppress(DataError) if not line.endswith(b"\n") else contextlib.nullcontext():
                found = sealed.decode(line, dict[str, Any], f"in {path}", "move the file away to go on without it")
                if found.get("step", 0) <= step:
                    kept.append(line)
        content = b"".join(kept)
        if checksum and hashlib.sha256(content).hexdigest() != checksum:
            raise DataError(
                f"expected the curves up to step {step} as the run wrote them, got others in {path}; "
                "move the file away to go on without them"
            )
        write_bytes(path, content)
