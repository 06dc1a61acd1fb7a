"""Trajectories on disk: one file per key, in The Well's HDF5 layout.

    <data>/<system>/data/{train,valid,test}/<regime>-<index>.hdf5        <data>/<system>/stats.yaml

`rdjepa.data.well` defines the content of a file. A file appears under its name only when it is whole.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, overload

import numpy as np
import yaml

from rdjepa.data import well
from rdjepa.data.fields import COMPONENTS
from rdjepa.data.statistics import summarize
from rdjepa.data.trajectory import SAME_RATIO, SPLITS, Key, Trajectory
from rdjepa.data.well import Record
from rdjepa.data.well import checksum as checksum  # exported: the checksum in the record of a file
from rdjepa.errors import DataError
from rdjepa.io.atomic import write_bytes
from rdjepa.pde.system import REGIMES

FOLDERS = dict(zip(SPLITS, ("train", "valid", "test"), strict=True))
R = TypeVar("R", Trajectory, Record)
SYSTEM_NAME = re.compile(r"[A-Za-z0-9][\w-]*")
FILE_NAME = re.compile(rf"({'|'.join(REGIMES)})-(\d{{5,}})\.hdf5")


def path_of(data: Path | str, key: Key) -> Path:
    """Return the path of the file of a key under the dataset directory `data`.

    Raises:
        DataError: the key names an unknown split or regime, a system that is no plain name, or a negative index.
    """
    if key.split not in FOLDERS:
        raise DataError(f"expected a split among {SPLITS}, got {key.split!r}; name one of them")
    if key.regime not in REGIMES:
        raise DataError(f"expected a regime among {REGIMES}, got {key.regime!r}; name one of them")
    if not SYSTEM_NAME.fullmatch(key.system) or key.index < 0:
        raise DataError(f"expected a plain system name and an index of at least 0, got {key}; correct the key")
    return Path(data) / key.system / "data" / FOLDERS[key.split] / f"{key.regime}-{key.index:05d}.hdf5"


def write(out: Path | str, trajectory: Trajectory) -> Path:
    """Store a trajectory under its key, replacing an older file, and return the path.

    All but two attributes come back: components have no names in a file, and all times count as those of the frames.

    The file is written under another name in the same folder, flushed to the disk and then renamed, so that a process
    killed at any moment leaves the old file or none.

    Raises:
        DataError: the trajectory has no key or cannot be stored.
        OutputError: the disk is full or cannot be written.
    """
    key = trajectory.key
    if key is None:
        raise DataError("expected a trajectory with a key, got one without; set its key to name the file")
    path = path_of(out, key)
    _refuse_unfit(trajectory)
    write_bytes(path, well.encode(trajectory, key))
    return path


def read(path: Path | str, verify: bool = True) -> Trajectory:
    """Read a whole trajectory, bit for bit as it was written.

    Args:
        path: a file written by `write`.
        verify: compare the fields with the stored checksum.

    Raises:
        DataError: the file is missing, truncated, foreign or damaged.
    """
    path = Path(path)
    with well.opened(path) as file:
        return well.decode(path, file, verify)


def read_record(path: Path | str) -> Record:
    """Read the record of a stored trajectory without its fields.

    Raises:
        DataError: the file is missing, truncated or foreign.
    """
    path = Path(path)
    with well.opened(path) as file:
        return well.record(path, file)


def read_window(path: Path | str, start: int, stop: int) -> np.ndarray:
    """Read frames start to stop - 1 only, as (stop - start, H, W, C) float32, without the checksum.

    The file is opened and closed within the call, so it is safe in worker processes.

    Raises:
        DataError: the frames are not all there, or the file cannot be read.
    """
    path = Path(path)
    with well.opened(path) as file:
        frames = well.count(path, file)
        if not 0 <= start < stop <= frames:
            raise DataError(f"expected frames within 0 to {frames}, got {start} to {stop} of {path}; ask for fewer")
        return well.frames(file, start, stop)


def get(data: Path | str, key: Key, verify: bool = True) -> Trajectory:
    """Read the trajectory of a key.

    Raises:
        DataError: as for `read`, or the file of this name holds the trajectory of another key.
    """
    path = path_of(data, key)
    return _of(key, read(path, verify), path)


def get_record(data: Path | str, key: Key) -> Record:
    """Read the record of the trajectory of a key, without its fields.

    Raises:
        DataError: as for `get`.
    """
    path = path_of(data, key)
    return _of(key, read_record(path), path)


def _of(key: Key, found: R, path: Path) -> R:
    """Return what was read from a file, if it is of this key."""
    if found.key != key:
        raise DataError(f"expected the trajectory {key} in {path}, got {found.key}; make it again, or move the file")
    return found


def has(data: Path | str, key: Key, verify: bool = False) -> bool:
    """Return whether a whole file of a key is stored; `verify` also reads the fields and compares the checksum."""
    try:
        if verify:
            get(data, key)
        else:
            get_record(data, key)
    except DataError:
        return False
    return True


def keys(data: Path | str, system: str | None = None, split: str | None = None, regime: str | None = None) -> list[Key]:
    """List the keys of the stored trajectories by their file names, in a fixed order.

    Args:
        data: dataset directory.
        system: list this system only; None lists all. The same holds for the other two.
        split: "pool", "validation" or "test".
        regime: "id", "coeff-ood" or "ic-ood".
    """
    found = []
    for path in Path(data).glob(f"{system or '*'}/data/*/*.hdf5"):
        name, match = path.parents[2].name, FILE_NAME.fullmatch(path.name)
        splits = [each for each, folder in FOLDERS.items() if folder == path.parent.name]
        known = match and splits and SYSTEM_NAME.fullmatch(name)  # a copy of a folder, as "barkley (1)", is no system
        if match and known and split in (None, splits[0]) and regime in (None, match[1]):
            found.append(Key(name, splits[0], match[1], int(match[2])))
    return sorted(found, key=lambda k: (k.system, SPLITS.index(k.split), REGIMES.index(k.regime), k.index))


@dataclass(frozen=True)
class Stored(Sequence[Trajectory]):
    """Trajectories that are read from their files only when asked for, one at a time.

    Attributes:
        paths: files written by `write`.
    """

    paths: tuple[Path, ...]

    @classmethod
    def under(
        cls, data: Path | str, system: str | None = None, split: str | None = None, regime: str | None = None
    ) -> "Stored":
        """Return the trajectories that `keys` lists for the same arguments."""
        return cls(tuple(path_of(data, key) for key in keys(data, system, split, regime)))

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Trajectory: ...
    @overload
    def __getitem__(self, index: slice) -> "Stored": ...
    def __getitem__(self, index: int | slice) -> "Trajectory | Stored":
        """Read one trajectory, or select several without reading them."""
        return Stored(self.paths[index]) if isinstance(index, slice) else read(self.paths[index])


def write_stats(folder: Path | str) -> Path:
    """Write The Well's stats.yaml for one system from its pool alone, and return the path.

    Per component: mean, population standard deviation and root mean square of the fields, and the same of the
    differences between successive frames (`_delta`), accumulated in float64.

    Args:
        folder: `<data>/<system>`.

    Raises:
        DataError: no pool trajectory is stored there, or one cannot be read.
    """
    folder = Path(folder).resolve()
    pool = Stored.under(folder.parent, folder.name, split="pool")
    if not pool:
        raise DataError(f"expected stored pool trajectories under {folder}, got none; simulate some first")
    stats = summarize((trajectory.fields for trajectory in pool), well.COMPONENT_NAMES)
    path = folder / "stats.yaml"
    write_bytes(path, yaml.safe_dump(stats, sort_keys=False).encode())
    return path


def _refuse_unfit(trajectory: Trajectory) -> None:
    """Check that a trajectory can be read back; raise a `DataError` otherwise."""
    fields, times = trajectory.fields, trajectory.times
    if fields.ndim != 4 or fields.shape[-1] != COMPONENTS or 0 in fields.shape or fields.dtype != np.float32:
        raise DataError(
            f"expected float32 fields (T, H, W, {COMPONENTS}), got {fields.dtype} {fields.shape}; "
            "pass them through rdjepa.data.soundness.validate"
        )
    if np.shape(times) != fields.shape[:1]:
        raise DataError(f"expected one time per frame, got {np.shape(times)} for {len(fields)} frames; give each one")
    if not (np.isfinite(fields).all() and np.isfinite(times).all()):
        raise DataError(f"expected finite fields and times, got NaN or infinity in {trajectory.key}; screen it first")
    numbers = {**trajectory.coefficients, "length": trajectory.length}
    if unfit := [f"{name} = {value}" for name, value in numbers.items() if not np.isfinite(value)]:
        raise DataError(f"expected finite coefficients and a finite length, got {', '.join(unfit)}; correct them")
    if not math.isclose(*trajectory.spacing, rel_tol=SAME_RATIO):
        raise DataError(
            "expected cells as wide as they are high, got distances of {:g} between rows and {:g} between columns; "
            "resample the fields, or keep them as NetCDF (to_xarray)".format(*trajectory.spacing)
        )
