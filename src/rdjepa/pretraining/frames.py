"""The frames that pretraining draws from: rows of one tensor, in memory, mapped from a file, or on the device."""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from rdjepa.data import store
from rdjepa.data.fields import COMPONENTS, block_means, channels_first, require_multiples
from rdjepa.data.readers.sizes import require_memory
from rdjepa.data.statistics import Moments, Normalizer, fold
from rdjepa.data.trajectory import Key
from rdjepa.data.windows import PRETRAINING
from rdjepa.errors import DataError
from rdjepa.io import sealed
from rdjepa.io.atomic import replacing
from rdjepa.systems import family_names

Spans = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Frames:
    """Standardized frames of many trajectories.

    Attributes:
        table: (F, C, H, W), the frames of one trajectory after the other, on any device.
        spans: system -> (first row, number of frames) of each of its trajectories.
    """

    table: Tensor
    spans: Spans

    @classmethod
    def of(cls, fields: Mapping[str, Sequence[np.ndarray]]) -> "Frames":
        """Concatenate standardized arrays (T, C, H, W), system by system."""
        spans = spans_of({name: [len(each) for each in arrays] for name, arrays in fields.items()})
        return cls(torch.from_numpy(np.concatenate([x for arrays in fields.values() for x in arrays])), spans)

    @property
    def counts(self) -> dict[str, int]:
        """Number of trajectories of each system."""
        return {name: len(spans) for name, spans in self.spans.items()}

    def take(self, rows: Tensor) -> Tensor:
        """Return the frames (..., C, H, W) of the given rows (...), float32, on the table's device."""
        return self.table[rows.to(self.table.device)].float()

    def to(self, device: torch.device) -> "Frames":
        """Copy the frames to a device."""
        return Frames(self.table.to(device), self.spans)


@dataclass(frozen=True)
class _Mapped:
    """What is recorded beside a file of frames: the statistics of each equation, and the SHA-256 of the file."""

    normalizers: dict[str, Normalizer]
    checksum: str


def spans_of(lengths: Mapping[str, Sequence[int]]) -> dict[str, list[tuple[int, int]]]:
    """Return first row and number of frames of every trajectory when all are stored one after the other."""
    spans: dict[str, list[tuple[int, int]]] = {}
    row = 0
    for name, counts in lengths.items():
        spans[name] = []
        for count in counts:
            spans[name].append((row, count))
            row += count
    return spans


def read_frames(
    data: Path | str,
    keys: Mapping[str, Sequence[Key]],
    dtype: torch.dtype,
    mapped: Path | None = None,
    grid: int | None = None,
    known: Mapping[str, Normalizer] = MappingProxyType({}),
) -> tuple[Frames, dict[str, Normalizer], dict[str, str]]:
    """Read stored trajectories and standardize each equation, with their own statistics if none are known.

    For a system these are all of its trajectories. In a family every trajectory is another equation, so each is
    standardized with its own statistics.

    Args:
        data: dataset directory.
        keys: system -> keys of its trajectories.
        dtype: of the table; bfloat16 loses nothing where the first layer works in bfloat16 anyway and no loss compares
            with the frames.
        mapped: directory for a file that the table is mapped from instead of being held in memory; a file made
            earlier of the same trajectories is used again, and processes of one machine share its pages.
        grid: points per side of the table; stored frames that are finer are averaged over blocks. The stored grid,
            which is that of all, when None.
        known: statistics of equations that are taken instead, named as those that are returned.

    Returns:
        The frames, the statistics of each equation, named after the system or, in a family, after the trajectory's key,
        and key -> checksum of every trajectory.

    Raises:
        DataError: a trajectory is too short for a window, of another grid than the first where `grid` is None, or its
            sides are no multiples of `grid`.
        InsufficientMemoryError: less memory is free than reading takes: the table, unless it is mapped, and one system.
    """
    records = {key: store.get_record(data, key) for each in keys.values() for key in each}
    stored = next(iter(records.values())).shape[1:]
    for key, record in records.items():
        try:
            PRETRAINING.count(record.shape[0])
        except DataError as error:
            raise DataError(f"{error}; it is {key}") from None
        if record.shape[1:] != stored and grid is None:
            raise DataError(
                f"expected trajectories on one grid {stored}, got {record.shape[1:]} in {key}; resample them"
            )
        require_multiples(record.shape[1:], grid or 1)
    spans = spans_of({name: [records[key].shape[0] for key in each] for name, each in keys.items()})
    checksums = {str(key): record.checksum for key, record in records.items()}
    sides = stored if grid is None else (grid, grid)
    shape = (sum(record.shape[0] for record in records.values()), COMPONENTS, *sides)
    lengths = [sum(count for _, count in each) for name, each in spans.items() if name not in family_names()]
    beside = max(lengths, default=0) * math.prod(shape[1:]) * torch.float32.itemsize  # what `_fill` holds

    def fill(empty: Tensor) -> dict[str, Normalizer]:
        require_memory(beside, "the frames of one system", "give fewer trajectories")
        return _fill(empty, data, keys, spans, known)

    if mapped is None:
        size = math.prod(shape) * dtype.itemsize + beside
        require_memory(size, "the frames", "map them from a file (--frames mapped), or give fewer trajectories")
        table = torch.empty(shape, dtype=dtype)
        normalizers = fill(table)
    else:
        named = {name: known[name] for name in (*keys, *checksums) if name in known}
        table, normalizers = _mapped(mapped, shape, dtype, checksums, named, fill)
    return Frames(table, spans), normalizers, checksums


def _fill(
    table: Tensor,
    data: Path | str,
    keys: Mapping[str, Sequence[Key]],
    spans: Spans,
    known: Mapping[str, Normalizer],
) -> dict[str, Normalizer]:
    """Read, standardize and store every equation; return the statistics of each. Threads share the trajectories.

    Those of one system are in memory beside the table until they are stored.
    """

    def read(key: Key) -> np.ndarray:
        return block_means(store.get(data, key).fields, table.shape[-1])

    def put(fields: np.ndarray, span: tuple[int, int], statistics: Normalizer) -> None:
        row, count = span
        table[row : row + count] = torch.from_numpy(channels_first(statistics.standardize(fields)))

    def put_alone(key: Key, span: tuple[int, int]) -> Normalizer:
        fields = read(key)
        statistics = known.get(str(key)) or Normalizer.fit([fields], "trajectory")
        put(fields, span, statistics)
        return statistics

    normalizers: dict[str, Normalizer] = {}
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for name, each in keys.items():
            if name in family_names():
                normalizers |= zip(map(str, each), threads.map(put_alone, each, spans[name]), strict=True)
                continue
            physical = list(threads.map(read, each))
            normalizers[name] = known.get(name) or Normalizer.of(fold(threads.map(Moments.of, physical)))
            list(threads.map(put, physical, spans[name], repeat(normalizers[name])))
            del physical  # before the next system is read
    return normalizers


def _mapped(
    folder: Path,
    shape: Sequence[int],
    dtype: torch.dtype,
    checksums: Mapping[str, str],
    known: Mapping[str, Normalizer],
    fill: Callable[[Tensor], dict[str, Normalizer]],
) -> tuple[Tensor, dict[str, Normalizer]]:
    """Map the table from a file named after its content, made first if there is none; return it with the statistics."""
    content: list = [list(checksums.items()), str(dtype), list(shape)]  # rows are in the order of the keys
    if families := sorted({Key.parse(key).system for key in checksums} & set(family_names())):
        content.append([families, "trajectory"])  # earlier versions standardized all of a family alike
    if known:
        content.append({name: asdict(each) for name, each in known.items()})
    name = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    path, record = folder / f"{name}.frames", folder / f"{name}.json"
    if path.is_dir():
        raise DataError(f"expected a file of frames, got the directory {path}; delete {folder}, which is made again")
    if not record.exists() or not path.exists() or path.stat().st_size != math.prod(shape) * dtype.itemsize:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:  # of its own: another process may make the same file, or have the old one mapped
            _reserve(part, math.prod(shape) * dtype.itemsize)
            normalizers = fill(torch.from_file(str(part), shared=True, size=math.prod(shape), dtype=dtype).view(*shape))
        # The record is written after the frames are on disk, so its presence marks the frames as complete.
        sealed.write(record, asdict(_Mapped(normalizers, _checksum(path))))
    found = sealed.read(record, _Mapped, f"delete {folder}, which is made again")
    if found.checksum != _checksum(path):
        raise DataError(f"expected frames that match their checksum in {path}, got damaged ones; delete {folder}")
    table = torch.from_file(str(path), shared=False, size=math.prod(shape), dtype=dtype).view(*shape)
    return table, found.normalizers


def _reserve(path: Path, size: int) -> None:
    """Take space for a file; without it, a disk that fills up would kill the process that writes to a mapped page."""
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)


def _checksum(path: Path) -> str:
    """Return the SHA-256 of a file, of which a part at a time is in memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
