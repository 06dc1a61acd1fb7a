"""Trajectories in the HDF5 layout of The Well: encoding to the bytes of a file, decoding from an open file.

The components u and v are two scalar fields (1, T, X, Y). The Well puts x before y, while the rows of our arrays run
along y, so writing and reading swap the two. What The Well does not define is stored under names that begin with
`rdjepa_`, which its own readers ignore.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.data.fields import COMPONENTS
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError
from rdjepa.io import sealed
from rdjepa.pde.distance import Nearest

FORMAT_VERSION = 1
COMPONENT_NAMES = ("u", "v")
WALL = "WALL"
PERIODIC = "PERIODIC"


@dataclass(frozen=True)
class Record:
    """Metadata of a stored trajectory: key, checksum, shape (T, H, W), and attributes as in `Trajectory`."""

    key: Key
    checksum: str
    shape: tuple[int, int, int]
    initial_condition: str
    rejected: tuple[str, ...]
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
    attributes["rdjepa_format_version"] = FORMAT_VERSION
    attributes["rdjepa_checksum"] = checksum(trajectory.fields)
    attributes["rdjepa_system"] = key.system
    attributes["rdjepa_split"] = key.split
    attributes["rdjepa_regime"] = key.regime
    attributes["rdjepa_index"] = key.index
    attributes["rdjepa_attempt"] = trajectory.attempt
    attributes["rdjepa_rejected"] = json.dumps(list(trajectory.rejected))
    attributes["rdjepa_seal"] = _seal(trajectory, key, checksum(trajectory.fields))
    attributes["rdjepa_initial_condition"] = trajectory.initial_condition
    attributes["rdjepa_length"] = float(trajectory.length)
    attributes["rdjepa_boundary"] = trajectory.boundary
    attributes["rdjepa_software"] = json.dumps(dict(trajectory.software))
    if trajectory.kind:
        attributes["rdjepa_kind"] = trajectory.kind
    if trajectory.nearest:
        attributes["rdjepa_nearest"] = json.dumps(trajectory.nearest)
    attributes["simulation_parameters"] = _strings(tuple(trajectory.coefficients))
    for name, value in trajectory.coefficients.items():
        if name in attributes:
            raise DataError(f"expected coefficient names of their own, got {name!r}; rename the coefficient")
        attributes[name] = float(value)
    # The Well stores times as float32; these are exact.
    file.create_dataset("rdjepa_times", data=np.asarray(trajectory.times, dtype=np.float64))


def _write_dimensions(file: h5py.File, trajectory: Trajectory) -> None:
    group = file.create_group("dimensions")
    group.attrs["spatial_dims"] = _strings(("x", "y"))
    time = group.create_dataset("time", data=np.asarray(trajectory.times, dtype=np.float32))
    _flag(time, sample=False, time=True)
    # The points of a periodic grid start at 0; between walls they are cell centers.
    shift = 0.0 if trajectory.boundary == "periodic" else 0.5
    for name, points in zip(("y", "x"), trajectory.fields.shape[1:3], strict=True):
        line = (np.arange(points) + shift) * (trajectory.length / points)
        _flag(group.create_dataset(name, data=line.astype(np.float32)), sample=False, time=False)


def _write_boundaries(file: h5py.File, trajectory: Trajectory) -> None:
    boundaries = file.create_group("boundary_conditions")
    kind = PERIODIC if trajectory.boundary == "periodic" else WALL
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


def count(path: Path, file: h5py.File) -> int:
    """Check the layout of the fields and return the number of stored frames.

    Raises:
        DataError: the fields have another shape or dtype.
    """
    for dataset in (file["rdjepa_times"], *(file["t0_fields"][name] for name in COMPONENT_NAMES)):
        require_own(dataset, path)
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


def key_of(file: h5py.File) -> Key:
    """Return the key of an open file."""
    attributes: Any = file.attrs
    return Key(
        system=str(attributes["rdjepa_system"]),
        split=str(attributes["rdjepa_split"]),
        regime=str(attributes["rdjepa_regime"]),
        index=int(attributes["rdjepa_index"]),
    )


def decode(path: Path, file: h5py.File, verify: bool) -> Trajectory:
    """Read the trajectory of an open file; compare its checksum if `verify`.

    Raises:
        DataError: the fields or what describes them are damaged, or do not fit their times.
    """
    fields = frames(file, 0, count(path, file))
    if verify and checksum(fields) != file.attrs["rdjepa_checksum"]:
        raise DataError(f"expected fields that match their checksum, got damaged ones in {path}; make it again")
    if not np.isfinite(fields).all():
        raise DataError(f"expected finite fields, got others in {path}; make it again")
    return replace(_described(path, file), fields=fields)


def _described(path: Path, file: h5py.File) -> Trajectory:
    """Read everything but the values of the fields, whose place an array of their shape takes.

    Raises:
        DataError: it has changed since it was written, or there is not one time for each frame.
    """
    length = count(path, file)
    _, _, width, height = file["t0_fields"][COMPONENT_NAMES[0]].shape
    times = np.asarray(file["rdjepa_times"][:], dtype=np.float64)
    if times.shape != (length,) or not np.isfinite(times).all():
        raise DataError(f"expected one finite time per frame, got others in {path}; make it again")
    attributes = file.attrs
    trajectory = Trajectory(
        fields=np.broadcast_to(np.float32(0), (length, height, width, COMPONENTS)),
        times=times,
        coefficients={str(name): float(attributes[name]) for name in attributes["simulation_parameters"]},
        key=key_of(file),
        attempt=int(attributes["rdjepa_attempt"]),
        rejected=_listed(path, attributes["rdjepa_rejected"]),
        initial_condition=str(attributes["rdjepa_initial_condition"]),
        length=float(attributes["rdjepa_length"]),
        boundary=str(attributes["rdjepa_boundary"]),
        software=_versions(path, attributes["rdjepa_software"]),
        kind=str(attributes.get("rdjepa_kind", "")),
        nearest=_nearest(path, attributes.get("rdjepa_nearest")),
    )
    # Files of version 0.1.0 have a checksum of the fields alone.
    sealed_by = attributes.get("rdjepa_seal")
    if sealed_by is not None and sealed_by != _seal(trajectory, key_of(file), str(attributes["rdjepa_checksum"])):
        raise DataError(f"expected a description that matches its seal, got a changed one in {path}; make it again")
    return trajectory


def _seal(trajectory: Trajectory, key: Key, digest: str) -> str:
    """Return the seal of everything that describes a trajectory, the checksum of its fields included."""
    described = {
        "fields": [digest, *trajectory.fields.shape],
        "times": np.asarray(trajectory.times, dtype=np.float64).tolist(),
        "coefficients": {name: float(value) for name, value in trajectory.coefficients.items()},
        "key": str(key),
        "attempt": int(trajectory.attempt),
        "rejected": trajectory.rejected,
        "initial_condition": trajectory.initial_condition,
        "length": float(trajectory.length),
        "boundary": trajectory.boundary,
        "software": dict(trajectory.software),
    }
    if trajectory.kind:
        described |= {"kind": trajectory.kind, "nearest": trajectory.nearest}
    return sealed.seal(sealed.plain(described))


def _listed(path: Path, text: str) -> tuple[str, ...]:
    return sealed.decode(text, tuple[str, ...], f"in {path}", "make it again")


def _versions(path: Path, text: str) -> dict[str, str]:
    return sealed.decode(text, dict[str, str], f"in {path}", "make it again")


def _nearest(path: Path, text: str | None) -> Nearest | None:
    return sealed.decode(text, Nearest, f"in {path}", "make it again") if text else None


def record(path: Path, file: h5py.File) -> Record:
    """Read the metadata of an open file, without the fields."""
    found = _described(path, file)
    length, height, width, _ = found.fields.shape
    digest = str(file.attrs["rdjepa_checksum"])
    return Record(
        key_of(file),
        digest,
        (length, height, width),
        found.initial_condition,
        found.rejected,
        found.software,
        found.kind,
        found.nearest,
    )
