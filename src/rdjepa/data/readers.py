"""Readers of a user's own data; the kind of a file is recognized by its content and never by its name."""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import h5py
import numpy as np

from rdjepa.data import store, well
from rdjepa.data.fields import COMPONENTS, validate
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError

KNOWN = (
    "an rdjepa file, a file of The Well with two scalar fields, a PDEBench diffusion-reaction file, .npy or .npz, "
    "a directory of these, an array (T, H, W, C) or (B, T, H, W, C), a Trajectory, or a list of such sources"
)
HDF5_START = b"\x89HDF\r\n\x1a\n"
NPY_START = b"\x93NUMPY"
ZIP_START = b"PK\x03\x04"


def load(
    source: Any,
    limit: int | None = None,
    minimum_frames: int = FORECASTING.length,
    multiple_of: int = 1,
    grid: int | None = None,
) -> list[Trajectory]:
    """Read trajectories from a file, a directory, arrays or a mixed list of these.

    Rows of a grid run along y, as everywhere in this package; the x-first fields of The Well are transposed.

    Args:
        source: one of the kinds in `KNOWN`; a directory stands for the files directly in it, in the order of names.
        limit: read at most this many trajectories; the rest of a large file is not read.
        minimum_frames: smallest number of frames per trajectory: one forecasting window by default, which adaptation
            and evaluation need; a forecast needs its context only.
        multiple_of: the sides of the grid have to be multiples of this.
        grid: average the fields over blocks of points, so that they have this many per side; as they are when None.

    Returns:
        At least one trajectory; fields are finite float32 (T, H, W, 2).

    Raises:
        DataError: the source is unknown or damaged, or its fields are unfit.
    """
    found = []
    for trajectory in islice(_read(source), limit):
        fields = validate(trajectory.fields, minimum_frames, multiple_of)
        times = trajectory.times
        if np.shape(times) != fields.shape[:1]:
            raise DataError(
                f"expected one time per frame, got times of shape {np.shape(times)} for {len(fields)} frames; "
                "give each frame its time, or leave times out"
            )
        whole = trajectory if fields is trajectory.fields else replace(trajectory, fields=fields)
        found.append(whole if grid is None else whole.coarsened(grid))
    if not found:
        raise DataError(f"expected at least one trajectory, got none in {_describe(source)}; give {KNOWN}")
    return found


def _read(source: Any) -> Iterator[Trajectory]:
    """Pass a source to the reader for its kind."""
    if isinstance(source, Trajectory):
        yield source
    elif isinstance(source, str | Path):
        yield from _read_path(Path(source))
    elif isinstance(source, list | tuple):
        for item in source:
            yield from _read(item)
    elif hasattr(source, "__array__") and np.ndim(source) > 0:
        yield from _read_array(np.asarray(source))
    else:
        raise DataError(f"expected {KNOWN}, got {_describe(source)}; give one of these")


def _read_path(path: Path) -> Iterator[Trajectory]:
    if path.is_dir():
        yield from _read_directory(path)
        return
    if not path.is_file():
        raise DataError(f"expected a file or directory, got nothing at {path}; correct the path")
    start = _start(path)
    if start.startswith(HDF5_START):
        yield from _read_hdf5(path)
    elif start.startswith((NPY_START, ZIP_START)):
        yield from _read_numpy(path)
    else:
        raise DataError(
            f"expected {KNOWN}, got a file that begins with {start[:8]!r} at {path}; convert it to one of these"
        )


def _read_directory(path: Path) -> Iterator[Trajectory]:
    """Read the data files directly in a directory; folders below may hold other splits and are not read."""
    starts = (HDF5_START, NPY_START, ZIP_START)
    visible = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    files = [file for file in visible if _start(file).startswith(starts)]
    if not files:
        below = ", ".join(folder.name for folder in sorted(path.iterdir()) if folder.is_dir())
        raise DataError(
            f"expected data files directly in {path}, got none{f' but the folders {below}' if below else ''}; "
            "give the folder that holds them"
        )
    for file in files:
        yield from _read_path(file)


def _read_array(array: np.ndarray, times: np.ndarray | None = None) -> Iterator[Trajectory]:
    """Take an array (T, H, W, C) as one trajectory, and (B, T, H, W, C) as B of them."""
    if array.ndim not in (4, 5):
        raise DataError(
            f"expected an array (T, H, W, C) or (B, T, H, W, C), got shape {array.shape}; "
            "reorder or split the array, for example with numpy.moveaxis"
        )
    for fields in array if array.ndim == 5 else array[None]:
        yield Trajectory(fields, np.arange(len(fields), dtype=np.float64) if times is None else times)


def _read_numpy(path: Path) -> Iterator[Trajectory]:
    """Read an .npy array, or an .npz with one array or with `fields`, and `times` beside it where there are any."""
    try:
        content = np.load(path, allow_pickle=False)
        arrays = {"fields": content} if isinstance(content, np.ndarray) else {k: content[k] for k in content.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile, zlib.error) as error:
        raise DataError(
            f"expected whole arrays of numbers in {path}, got a file that NumPy cannot read "
            f"({str(error).splitlines()[0]}); save it again with numpy.save or numpy.savez"
        ) from error
    times = arrays.pop("times", None)
    if "fields" not in arrays and len(arrays) != 1:
        names = ", ".join(sorted(arrays)) or "no array"
        raise DataError(f"expected one array, or one named 'fields', got {names} in {path}; name the fields so")
    array = arrays["fields"] if "fields" in arrays else next(iter(arrays.values()))
    yield from _read_array(array, None if times is None else np.asarray(times, dtype=np.float64))


def _read_hdf5(path: Path) -> Iterator[Trajectory]:
    """Recognize the layout of an HDF5 file by its groups and attributes, and read it."""
    try:
        with h5py.File(path, "r") as file:
            numbered = [name for name in sorted(file) if isinstance(file.get(f"{name}/data"), h5py.Dataset)]
            if "rdjepa_format_version" in file.attrs:
                yield store.read(path)
            elif isinstance(file.get("t0_fields"), h5py.Group):
                yield from _read_the_well(path, file)
            elif numbered:
                yield from (_read_pdebench(file[name]) for name in numbered)
            else:
                names = ", ".join(islice(file, 6)) or "nothing"
                raise DataError(f"expected {KNOWN}, got HDF5 with {names} at its root in {path}; convert it")
    except DataError:
        raise
    except (OSError, KeyError, RuntimeError, IndexError) as error:
        raise DataError(
            f"expected a whole HDF5 file, got a truncated, damaged or incomplete one at {path} "
            f"({str(error).splitlines()[0]}); fetch or make it again"
        ) from error


def _read_the_well(path: Path, file: h5py.File) -> Iterator[Trajectory]:
    """Read a generic file of The Well: two scalar fields, any number of trajectories, one at a time."""
    group = file["t0_fields"]
    names = [str(name) for name in group.attrs.get("field_names", list(group))]
    others = [str(n) for k in (1, 2) if f"t{k}_fields" in file for n in file[f"t{k}_fields"]]
    if len(names) != COMPONENTS or others:
        listed = ", ".join(names + others) or "no field"
        raise DataError(f"expected two scalar fields and no others, got {listed} in {path}; select two into .npz")
    fields = [group[name] for name in names]
    if any(field.ndim != 4 for field in fields):
        shapes = ", ".join(str(field.shape) for field in fields)
        raise DataError(f"expected scalar fields (B, T, X, Y), got {shapes} in {path}; repeat the constant axes")
    time = np.asarray(file["dimensions/time"], dtype=np.float64)
    boundary = _boundary(file)
    length = _length(np.asarray(file["dimensions/x"]))
    for index in range(fields[0].shape[0]):
        stacked = np.stack([field[index].swapaxes(1, 2) for field in fields], axis=-1)
        yield Trajectory(
            fields=stacked,
            times=time if time.ndim == 1 else time[index],
            coefficients=_scalars(file, index),
            length=length,
            boundary=boundary,
        )


def _boundary(file: h5py.File) -> str:
    """Return the kind of the first wall; "periodic" if there is none, or the file has no boundary conditions."""
    for group in file.get("boundary_conditions", {}).values():
        kind = str(group.attrs["bc_type"])
        if kind.upper() != well.PERIODIC:
            return str(group.attrs.get("kind", kind.lower()))
    return "periodic"


def _scalars(file: h5py.File, index: int) -> dict[str, float]:
    """Return the scalars of trajectory `index` that do not vary in time, by name."""
    values = {}
    for name, dataset in file.get("scalars", {}).items():
        if not dataset.attrs.get("time_varying", False) and np.issubdtype(dataset.dtype, np.number):
            values[name] = float(dataset[index] if dataset.attrs.get("sample_varying", False) else dataset[()])
    return values


def _length(line: np.ndarray) -> float:
    """Return the side length of the domain from the coordinates (n,) of its cells."""
    return float(abs(line[-1] - line[0]) * len(line) / max(len(line) - 1, 1))


def _read_pdebench(group: h5py.Group) -> Trajectory:
    """Read one group of PDEBench's 2D diffusion-reaction file: no-flux walls, `data` (t, y, x, component)."""
    fields = np.asarray(group["data"])
    times = group.get("grid/t")
    line = group.get("grid/x")
    return Trajectory(
        fields=fields,
        times=np.arange(len(fields), dtype=np.float64) if times is None else np.asarray(times, dtype=np.float64),
        length=1.0 if line is None else _length(np.asarray(line)),
        boundary="neumann",
    )


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


def _describe(source: Any) -> str:
    """Describe a source for a message."""
    return str(source) if isinstance(source, str | Path) else f"a {type(source).__name__}"
