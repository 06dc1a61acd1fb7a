"""Trajectories on disk: one file per key, in The Well's HDF5 layout.

    <data>/<system>/data/{train,valid,test}/<regime>-<index>.hdf5        <data>/<system>/stats.yaml

The components u and v are two scalar fields (1, T, X, Y). The Well puts x before y while the rows of our arrays run
along y, so writing and reading swap the two. What The Well has no place for lies beside it under names that begin
with `rdjepa_`, so a reader of either kind is content.
A file appears under its name only when it is whole.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import h5py
import numpy as np
import yaml

from rdjepa.data.fields import COMPONENTS
from rdjepa.data.statistics import summarize
from rdjepa.data.trajectory import REGIMES, SPLITS, Key, Trajectory
from rdjepa.errors import DataError
from rdjepa.io.atomic import write_bytes

FORMAT_VERSION = 1
COMPONENT_NAMES = ("u", "v")
FOLDERS = dict(zip(SPLITS, ("train", "valid", "test"), strict=True))
WALLS = "WALL"
PERIODIC = "PERIODIC"
FILE_NAME = re.compile(rf"({'|'.join(REGIMES)})-(\d{{5,}})\.hdf5")


def path_of(data: Path | str, key: Key) -> Path:
    """Where the trajectory of a key lies under the dataset directory `data`.

    Raises:
        DataError: the key names an unknown split or regime, a system that is no plain name, or a negative index.
    """
    if key.split not in FOLDERS:
        raise DataError(f"expected a split among {SPLITS}, got {key.split!r}; name one of them")
    if key.regime not in REGIMES:
        raise DataError(f"expected a regime among {REGIMES}, got {key.regime!r}; name one of them")
    if not re.fullmatch(r"[A-Za-z0-9][\w-]*", key.system) or key.index < 0:
        raise DataError(f"expected a plain system name and an index of at least 0, got {key}; correct the key")
    return Path(data) / key.system / "data" / FOLDERS[key.split] / f"{key.regime}-{key.index:05d}.hdf5"


def write(out: Path | str, trajectory: Trajectory) -> Path:
    """Store a trajectory under its key, replacing an older file, and return the path.

    The file is made under another name in the same folder, forced to the disk and then renamed, so that a writer
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
    write_bytes(path, _encode(trajectory, key))
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
    with _opened(path) as file:
        frames = _count(path, file)
        fields = _frames(file, 0, frames)
        if verify and checksum(fields) != file.attrs["rdjepa_checksum"]:
            raise DataError(f"expected fields that match their checksum, got damaged ones in {path}; make it again")
        times = np.asarray(file["rdjepa_times"][:], dtype=np.float64)
        if times.shape != (frames,) or not np.isfinite(fields).all() or not np.isfinite(times).all():
            raise DataError(f"expected finite fields and one time per frame, got others in {path}; make it again")
        attributes = file.attrs
        return Trajectory(
            fields=fields,
            times=times,
            coefficients={str(name): float(attributes[name]) for name in attributes["simulation_parameters"]},
            key=_key(file),
            attempt=int(attributes["rdjepa_attempt"]),
            rejected=tuple(json.loads(attributes["rdjepa_rejected"])),
            initial_condition=str(attributes["rdjepa_initial_condition"]),
            length=float(attributes["rdjepa_length"]),
            boundary=str(attributes["rdjepa_boundary"]),
            software=json.loads(attributes["rdjepa_software"]),
        )


@dataclass(frozen=True)
class Record:
    """What a file says of its trajectory: checksum, shape (T, H, W), and attributes as in `Trajectory`."""

    checksum: str
    shape: tuple[int, int, int]
    initial_condition: str
    rejected: tuple[str, ...]
    software: Mapping[str, str]


def read_record(path: Path | str) -> Record:
    """Read the record of a stored trajectory without its fields.

    Raises:
        DataError: the file is missing, truncated or foreign.
    """
    path = Path(path)
    with _opened(path) as file:
        frames = _count(path, file)
        _, _, width, height = file["t0_fields"][COMPONENT_NAMES[0]].shape
        attributes = file.attrs
        return Record(
            str(attributes["rdjepa_checksum"]),
            (frames, height, width),
            str(attributes["rdjepa_initial_condition"]),
            tuple(json.loads(attributes["rdjepa_rejected"])),
            json.loads(attributes["rdjepa_software"]),
        )


def read_window(path: Path | str, start: int, stop: int) -> np.ndarray:
    """Read frames start to stop - 1 only, as (stop - start, H, W, C) float32, without the checksum.

    The file is opened and closed within the call, so it is safe in worker processes.

    Raises:
        DataError: the frames are not all there, or the file cannot be read.
    """
    path = Path(path)
    with _opened(path) as file:
        frames = _count(path, file)
        if not 0 <= start < stop <= frames:
            raise DataError(f"expected frames within 0 to {frames}, got {start} to {stop} of {path}; ask for fewer")
        return _frames(file, start, stop)


def is_complete(path: Path | str, verify: bool = False) -> bool:
    """Whether a whole trajectory lies at `path`; `verify` reads the fields and compares the checksum too."""
    try:
        if verify:
            read(path)
        else:
            with _opened(Path(path)) as file:
                _count(Path(path), file)
                _key(file)
    except DataError:
        return False
    return True


def keys(data: Path | str, system: str | None = None, split: str | None = None, regime: str | None = None) -> list[Key]:
    """Keys of the stored trajectories in a fixed order, by file name; an argument given narrows the list."""
    found = []
    for path in Path(data).glob(f"{system or '*'}/data/*/*.hdf5"):
        match = FILE_NAME.fullmatch(path.name)
        splits = [name for name, folder in FOLDERS.items() if folder == path.parent.name]
        if match and splits and split in (None, splits[0]) and regime in (None, match[1]):
            found.append(Key(path.parents[2].name, splits[0], match[1], int(match[2])))
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
        """The trajectories that `keys` lists with the same arguments."""
        return cls(tuple(path_of(data, key) for key in keys(data, system, split, regime)))

    def __len__(self) -> int:
        """Number of files."""
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Trajectory: ...
    @overload
    def __getitem__(self, index: slice) -> "Stored": ...
    def __getitem__(self, index: int | slice) -> "Trajectory | Stored":
        """Read one trajectory, or narrow the list."""
        return Stored(self.paths[index]) if isinstance(index, slice) else read(self.paths[index])


def checksum(fields: np.ndarray) -> str:
    """SHA-256 of (T, H, W, C) fields: the bytes of each component in turn, as little-endian float32."""
    digest = hashlib.sha256()
    for component in range(fields.shape[-1]):
        digest.update(np.ascontiguousarray(fields[..., component], dtype="<f4").data)
    return digest.hexdigest()


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
    stats = summarize((trajectory.fields for trajectory in pool), COMPONENT_NAMES)
    path = folder / "stats.yaml"
    write_bytes(path, yaml.safe_dump(stats, sort_keys=False).encode())
    return path


def _refuse_unfit(trajectory: Trajectory) -> None:
    """Refuse what could not be read back."""
    fields, times = trajectory.fields, trajectory.times
    if fields.ndim != 4 or fields.shape[-1] != COMPONENTS or 0 in fields.shape or fields.dtype != np.float32:
        raise DataError(
            f"expected float32 fields (T, H, W, {COMPONENTS}), got {fields.dtype} {fields.shape}; "
            "pass them through rdjepa.data.fields.validate"
        )
    if np.shape(times) != fields.shape[:1]:
        raise DataError(f"expected one time per frame, got {np.shape(times)} for {len(fields)} frames; give each one")
    if not (np.isfinite(fields).all() and np.isfinite(times).all()):
        raise DataError(f"expected finite fields and times, got NaN or infinity in {trajectory.key}; screen it first")


def _encode(trajectory: Trajectory, key: Key) -> memoryview:
    """The bytes of the HDF5 file, built in memory so that a full disk fails in one plain write."""
    with h5py.File(str(key), "w", driver="core", backing_store=False) as file:
        _write_root(file, trajectory, key)
        _write_dimensions(file, trajectory)
        _write_boundaries(file, trajectory)
        _write_scalars(file, trajectory)
        for order in range(3):
            group = file.create_group(f"t{order}_fields")
            group.attrs["field_names"] = _strings(COMPONENT_NAMES if order == 0 else ())
        for component, name in enumerate(COMPONENT_NAMES):
            data = np.ascontiguousarray(trajectory.fields[None, ..., component].swapaxes(-1, -2), dtype="<f4")
            dataset = file["t0_fields"].create_dataset(name, data=data)
            dataset.attrs["dim_varying"] = np.array([True, True])
            _flag(dataset, sample=True, time=True)
        file.flush()
        return memoryview(file.id.get_file_image())


def _write_root(file: h5py.File, trajectory: Trajectory, key: Key) -> None:
    attributes = file.attrs
    attributes["dataset_name"] = key.system
    attributes["grid_type"] = "cartesian"
    attributes["n_spatial_dims"] = 2
    attributes["n_trajectories"] = 1
    attributes["rdjepa_format_version"] = FORMAT_VERSION
    attributes["rdjepa_checksum"] = checksum(trajectory.fields)
    attributes["rdjepa_system"] = key.system
    attributes["rdjepa_split"] = key.split
    attributes["rdjepa_regime"] = key.regime
    attributes["rdjepa_index"] = key.index
    attributes["rdjepa_attempt"] = trajectory.attempt
    attributes["rdjepa_rejected"] = json.dumps(list(trajectory.rejected))
    attributes["rdjepa_initial_condition"] = trajectory.initial_condition
    attributes["rdjepa_length"] = float(trajectory.length)
    attributes["rdjepa_boundary"] = trajectory.boundary
    attributes["rdjepa_software"] = json.dumps(dict(trajectory.software))
    attributes["simulation_parameters"] = _strings(tuple(trajectory.coefficients))
    for name, value in trajectory.coefficients.items():
        if name in attributes:
            raise DataError(f"expected coefficient names of their own, got {name!r}; rename the coefficient")
        attributes[name] = float(value)
    # The Well's own times are float32; these are exact
    file.create_dataset("rdjepa_times", data=np.asarray(trajectory.times, dtype=np.float64))


def _write_dimensions(file: h5py.File, trajectory: Trajectory) -> None:
    group = file.create_group("dimensions")
    group.attrs["spatial_dims"] = _strings(("x", "y"))
    time = group.create_dataset("time", data=np.asarray(trajectory.times, dtype=np.float32))
    _flag(time, sample=False, time=True)
    # a periodic grid starts at 0; between walls the points are the centres of cells
    shift = 0.0 if trajectory.boundary == "periodic" else 0.5
    for name, points in zip(("y", "x"), trajectory.fields.shape[1:3], strict=True):
        line = (np.arange(points) + shift) * (trajectory.length / points)
        _flag(group.create_dataset(name, data=line.astype(np.float32)), sample=False, time=False)


def _write_boundaries(file: h5py.File, trajectory: Trajectory) -> None:
    boundaries = file.create_group("boundary_conditions")
    kind = PERIODIC if trajectory.boundary == "periodic" else WALLS
    for name, points in zip(("y", "x"), trajectory.fields.shape[1:3], strict=True):
        group = boundaries.create_group(f"{name}_{kind.lower()}")
        group.attrs["associated_dims"] = _strings((name,))
        group.attrs["associated_fields"] = _strings(COMPONENT_NAMES)
        group.attrs["bc_type"] = kind
        group.attrs["kind"] = trajectory.boundary
        mask = np.zeros(points, dtype=bool)
        mask[[0, -1]] = True
        group.create_dataset("mask", data=mask)
        _flag(group, sample=False, time=False)


def _write_scalars(file: h5py.File, trajectory: Trajectory) -> None:
    group = file.create_group("scalars")
    group.attrs["field_names"] = _strings(tuple(trajectory.coefficients))
    for name, value in trajectory.coefficients.items():
        _flag(group.create_dataset(name, data=np.array([value], dtype=np.float32)), sample=True, time=False)


def _flag(item: h5py.Group | h5py.Dataset, sample: bool, time: bool) -> None:
    item.attrs["sample_varying"] = sample
    item.attrs["time_varying"] = time


def _strings(values: tuple[str, ...]) -> np.ndarray:
    """A list of strings as HDF5 keeps it, an empty one included."""
    return np.array(values, dtype=h5py.string_dtype())


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """Open a file of ours, and answer whatever HDF5 stumbles over with one sentence."""
    if not path.is_file():
        raise DataError(f"expected a trajectory file at {path}, got none; simulate it, or correct the path")
    try:
        with h5py.File(path, "r") as file:
            version = file.attrs.get("rdjepa_format_version")
            if version is None:
                raise DataError(
                    f"expected a file written by rdjepa, got another HDF5 file at {path}; "
                    "read it with rdjepa.data.readers.load"
                )
            if version != FORMAT_VERSION:
                raise DataError(
                    f"expected format version {FORMAT_VERSION}, got {version} in {path}; "
                    "make it again, or install the version of rdjepa that wrote it"
                )
            yield file
    except DataError:
        raise
    except (OSError, KeyError, RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"expected a whole trajectory file, got a truncated, damaged or foreign one at {path} ({reason}); "
            "delete it and make it again"
        ) from error


def _count(path: Path, file: h5py.File) -> int:
    """Number of stored frames, after a look at the layout of the fields."""
    found = [(file["t0_fields"][name].shape, file["t0_fields"][name].dtype) for name in COMPONENT_NAMES]
    shape, dtype = found[0]
    if found[0] != found[1] or len(shape) != 4 or shape[0] != 1 or dtype != np.dtype("<f4"):
        raise DataError(f"expected float32 fields (1, T, X, Y), got {found} in {path}; make it again")
    return int(shape[1])


def _frames(file: h5py.File, start: int, stop: int) -> np.ndarray:
    """Frames as (T, H, W, C)."""
    _, _, width, height = file["t0_fields"][COMPONENT_NAMES[0]].shape
    fields = np.empty((stop - start, height, width, COMPONENTS), dtype=np.float32)
    for component, name in enumerate(COMPONENT_NAMES):
        fields[..., component] = file["t0_fields"][name][0, start:stop].swapaxes(1, 2)
    return fields


def _key(file: h5py.File) -> Key:
    attributes: Any = file.attrs
    return Key(
        system=str(attributes["rdjepa_system"]),
        split=str(attributes["rdjepa_split"]),
        regime=str(attributes["rdjepa_regime"]),
        index=int(attributes["rdjepa_index"]),
    )
