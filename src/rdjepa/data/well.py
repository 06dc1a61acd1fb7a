"""Trajectories in the HDF5 layout of The Well: encoding to the bytes of a file, decoding from an open file.

The components u and v are two scalar fields (1, T, X, Y). The Well puts x before y, while the rows of our arrays run
along y, so writing and reading swap the two. What The Well does not define stands in one
dataset `rdjepa_record`, sealed JSON as a string of fixed length, which its own readers ignore. Our readers take
everything but the values of the fields from there: strings of variable length lie in a heap of HDF5 whose damage can
keep the library busy for ever.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import h5py
import numpy as np

from rdjepa.data import well_version_1
from rdjepa.data.borders import UNKNOWN
from rdjepa.data.fields import COMPONENTS
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError, first_line
from rdjepa.io import sealed
from rdjepa.pde.distance import Nearest

FORMAT_VERSION = 2
VERSION, RECORD = "rdjepa_format_version", "rdjepa_record"
COMPONENT_NAMES = ("u", "v")
WALL = "WALL"
PERIODIC = "PERIODIC"


@dataclass(frozen=True)
class Record:
    """All that is stored of a trajectory but its fields.

    Attributes:
        key: its address.
        checksum: SHA-256 of the fields.
        shape: (T, H, W).
        times, coefficients, attempt, rejected, initial_condition, length, boundary, software, kind, nearest: as in
            `Trajectory`.
    """

    key: Key
    checksum: str
    shape: tuple[int, int, int]
    times: tuple[float, ...]
    coefficients: Mapping[str, float]
    attempt: int
    rejected: tuple[str, ...]
    initial_condition: str
    length: float
    boundary: str
    software: Mapping[str, str]
    kind: str = ""
    nearest: Nearest | None = None


def checksum(fields: np.ndarray) -> str:
    """Return the SHA-256 of (T, H, W, C) fields: the bytes of each component in turn, as little-endian float32."""
    digest = hashlib.sha256()
    for component in range(fields.shape[-1]):
        digest.update(np.ascontiguousarray(fields[..., component], dtype="<f4").data)
    return digest.hexdigest()


def encode(trajectory: Trajectory, key: Key) -> memoryview:
    """Return the bytes of the HDF5 file, built in memory so that a full disk fails in one plain write."""
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
    attributes[VERSION] = FORMAT_VERSION
    attributes["simulation_parameters"] = _strings(tuple(trajectory.coefficients))
    for name, value in trajectory.coefficients.items():
        if name in attributes:
            raise DataError(f"expected coefficient names of their own, got {name!r}; rename the coefficient")
        attributes[name] = float(value)
    content = sealed.encode(asdict(_record_of(trajectory, key)), indent=1)
    file.create_dataset(RECORD, data=np.bytes_(content.encode()))


def _record_of(trajectory: Trajectory, key: Key) -> Record:
    length, height, width, _ = trajectory.fields.shape
    return Record(
        key=key,
        checksum=checksum(trajectory.fields),
        shape=(length, height, width),
        times=tuple(np.asarray(trajectory.times, dtype=np.float64).tolist()),
        coefficients={name: float(value) for name, value in trajectory.coefficients.items()},
        attempt=int(trajectory.attempt),
        rejected=tuple(trajectory.rejected),
        initial_condition=str(trajectory.initial_condition),
        length=float(trajectory.length),
        boundary=trajectory.boundary,
        software=dict(trajectory.software),
        kind=trajectory.kind,
        nearest=trajectory.nearest,
    )


def _write_dimensions(file: h5py.File, trajectory: Trajectory) -> None:
    group = file.create_group("dimensions")
    group.attrs["spatial_dims"] = _strings(("x", "y"))
    time = group.create_dataset("time", data=np.asarray(trajectory.times, dtype=np.float32))
    _flag(time, sample=False, time=True)
    # The points of a periodic grid start at 0; between walls they are cell centers.
    shift = 0.5 * trajectory.says_walls
    cell = trajectory.length / trajectory.fields.shape[2]  # the length is that of a row, and cells are as high as wide
    for name, points in zip(("y", "x"), trajectory.fields.shape[1:3], strict=True):
        line = (np.arange(points) + shift) * cell
        _flag(group.create_dataset(name, data=line.astype(np.float32)), sample=False, time=False)


def _write_boundaries(file: h5py.File, trajectory: Trajectory) -> None:
    boundaries = file.create_group("boundary_conditions")
    if trajectory.boundary == UNKNOWN:
        return
    kind = WALL if trajectory.says_walls else PERIODIC
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
    """Return strings as an array that HDF5 can store, also when there are none."""
    return np.array(values, dtype=h5py.string_dtype())


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Open a file that `encode` made.

    Raises:
        DataError: the file is missing, truncated, damaged, foreign or of another version.
    """
    if not path.is_file():
        raise DataError(f"expected a trajectory file at {path}, got none; simulate it, or correct the path")
    try:
        with h5py.File(path, "r") as file:
            version = file.attrs.get(VERSION)
            if version is None:
                raise DataError(
                    f"expected a file written by rdjepa, got another HDF5 file at {path}; "
                    "read it with rdjepa.data.readers.load"
                )
            if version not in (well_version_1.FORMAT_VERSION, FORMAT_VERSION):
                raise DataError(
                    f"expected format version {FORMAT_VERSION} or older, got {version} in {path}; "
                    "make it again, or install the version of rdjepa that wrote it"
                )
            yield file
    except DataError:
        raise
    except (OSError, KeyError, RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(
            f"expected a whole trajectory file, got a truncated, damaged or foreign one at {path} "
            f"({first_line(error)}); delete it and make it again"
        ) from error


def count(path: Path, file: h5py.File) -> int:
    """Check the layout of the fields and return the number of stored frames.

    Raises:
        DataError: the fields have another shape or dtype.
    """
    for name in COMPONENT_NAMES:
        require_own(file["t0_fields"][name], path)
    found = [(file["t0_fields"][name].shape, file["t0_fields"][name].dtype) for name in COMPONENT_NAMES]
    shape, dtype = found[0]
    if found[0] != found[1] or len(shape) != 4 or shape[0] != 1 or dtype != np.dtype("<f4"):
        raise DataError(f"expected float32 fields (1, T, X, Y), got {found} in {path}; make it again")
    if 4 * math.prod(shape) > path.stat().st_size:  # before memory is taken for them
        raise DataError(f"expected fields of shape {shape} in {path}, got a file too small for them; make it again")
    return int(shape[1])


def require_own(dataset: h5py.Dataset, path: Path) -> None:
    """Refuse values that a file takes from other files: links, external storage, virtual data sets.

    Raises:
        DataError: it does.
    """
    if dataset.file.filename != str(path) or dataset.external or dataset.is_virtual:
        raise DataError(f"expected the values of {dataset.name} in {path} itself, got those of another file; copy them")


def frames(file: h5py.File, start: int, stop: int) -> np.ndarray:
    """Read frames start to stop - 1 as (stop - start, H, W, C) float32."""
    _, _, width, height = file["t0_fields"][COMPONENT_NAMES[0]].shape
    fields = np.empty((stop - start, height, width, COMPONENTS), dtype=np.float32)
    for component, name in enumerate(COMPONENT_NAMES):
        fields[..., component] = file["t0_fields"][name][0, start:stop].swapaxes(1, 2)
    return fields


def decode(path: Path, file: h5py.File, verify: bool) -> Trajectory:
    """Read the trajectory of an open file; compare its checksum if `verify`.

    Raises:
        DataError: the fields or what describes them are damaged, or do not fit their times.
    """
    found = record(path, file)
    fields = frames(file, 0, found.shape[0])
    if verify and checksum(fields) != found.checksum:
        raise DataError(f"expected fields that match their checksum, got damaged ones in {path}; make it again")
    if not np.isfinite(fields).all():
        raise DataError(f"expected finite fields, got others in {path}; make it again")
    return Trajectory(
        fields=fields,
        times=np.array(found.times, dtype=np.float64),
        coefficients=found.coefficients,
        key=found.key,
        attempt=found.attempt,
        rejected=found.rejected,
        initial_condition=found.initial_condition,
        length=found.length,
        boundary=found.boundary,
        software=found.software,
        kind=found.kind,
        nearest=found.nearest,
    )


def record(path: Path, file: h5py.File) -> Record:
    """Read all of an open file but its fields.

    Raises:
        DataError: it has changed since it was written, or does not fit the fields.
    """
    length = count(path, file)
    _, _, width, height = file["t0_fields"][COMPONENT_NAMES[0]].shape
    if file.attrs[VERSION] == FORMAT_VERSION:
        require_own(file[RECORD], path)
        found = sealed.decode(bytes(file[RECORD][()]), Record, f"in {path}", "make it again", unsealed=False)
    else:
        require_own(file[well_version_1.TIMES], path)
        found = Record(shape=(length, height, width), **well_version_1.described(path, file, (length, height, width)))
    if found.shape != (length, height, width):
        raise DataError(
            f"expected fields of {found.shape} points, got {(length, height, width)} in {path}; make it again"
        )
    if len(found.times) != length or not np.isfinite(found.times).all():
        raise DataError(f"expected one finite time per frame, got others in {path}; make it again")
    return found
