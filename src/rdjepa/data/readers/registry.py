"""All formats, and how the one of a source is found: by its content, never by its name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rdjepa.checks import usable_path
from rdjepa.data.borders import UNKNOWN
from rdjepa.data.fields import measured
from rdjepa.data.readers import hdf5, matlab, named, numpy_files, pictures, zarr_stores
from rdjepa.data.readers.catalog import natural
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Recording
from rdjepa.data.soundness import require_axes
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import DataError


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        name: as documents and messages list it.
        fits: whether a path with these first bytes, none for a directory, is of this kind.
        read: yields its recordings.
    """

    name: str
    fits: Callable[[Path, bytes], bool]
    read: Callable[[Path, Reading], Iterator[Recording]]


def _begins(*starts: bytes) -> Callable[[Path, bytes], bool]:
    return lambda path, start: start.startswith(starts)


# The first that fits is taken.
FORMATS = (
    Format("Zarr", lambda path, start: _archive(start) and zarr_stores.is_store(path), zarr_stores.read),
    Format("NetCDF", named.is_netcdf, named.read_netcdf),
    Format(f"HDF5 ({', '.join(each.name for each in hdf5.LAYOUTS)}, others)", _begins(hdf5.HDF5_START), hdf5.read),
    Format(".npy", _begins(numpy_files.NPY_START), numpy_files.read_npy),
    Format(".npz", _begins(numpy_files.ZIP_START), numpy_files.read_npz),
    Format("MATLAB 5", _begins(matlab.MATLAB_5), matlab.read_5),
    Format("MATLAB 7.3", _begins(matlab.MATLAB_7_3), matlab.read_7_3),
    Format("TIFF", _begins(*pictures.TIFF_STARTS), pictures.read_pages),
)
FOLDERS = "a directory of these, or of PNG or TIFF pictures"
OBJECTS = "an array (T, H, W, C) or (B, T, H, W, C), an xarray object, a Trajectory, or a list of such sources"
KNOWN = f"a file of {', '.join(each.name for each in FORMATS)}, {FOLDERS}, {OBJECTS}"


def recordings(source: Any, reading: Reading) -> Iterator[Recording]:
    """Yield the recordings of a source; their arrays can be read until the next one is asked for.

    Args:
        source: one of the kinds in `KNOWN`.
        reading: what the source does not say itself.

    Raises:
        DataError: the source is unknown or damaged, or a list that contains itself, or does not have all trajectories
            that are to be read.
    """
    if reading.index is None:
        yield from _recordings(source, reading, ())
        return
    wanted, number = sorted(reading.index), 0
    for recording in _recordings(source, reading, ()):
        own = [each - number for each in wanted if number <= each < number + recording.count]
        number += recording.count
        if own:
            yield recording.taking(own)
        if number > wanted[-1]:
            return
    if number:
        raise DataError(
            f"expected trajectories by their positions from 0 to {number - 1}, as there are {number} in "
            f"{describe(source)}, got {wanted[-1]}; name those that are there"
        )


def _recordings(source: Any, reading: Reading, within: tuple[int, ...]) -> Iterator[Recording]:
    """Yield all recordings of a source; `within` are identities of the lists that it is an item of."""
    if id(source) in within:
        raise DataError(f"expected {KNOWN}, got a {type(source).__name__} that contains itself; give its items")
    if isinstance(source, Trajectory):
        yield _of_trajectory(source)
    elif isinstance(source, str | Path):
        yield from _of_path(Path(source), reading)
    elif isinstance(source, list | tuple):
        for item in source:
            yield from _recordings(item, reading, (*within, id(source)))
    elif named.is_xarray(source):
        yield from named.read_object(source, reading)
    elif hasattr(source, "__array__") and np.ndim(source) > 0:
        yield from numpy_files.read_array(source, reading)
    else:
        raise DataError(f"expected {KNOWN}, got {describe(source)}; give one of these")


def describe(source: Any) -> str:
    """Describe a source for a message."""
    return str(source) if isinstance(source, str | Path) else f"a {type(source).__name__}"


def _of_trajectory(trajectory: Trajectory) -> Recording:
    fields = np.asanyarray(trajectory.fields)  # which keeps a mask
    require_axes(fields)
    names = trajectory.names
    if len(names) == measured(fields) == 1:
        fields = fields[..., :1]  # the second was made of it
    elif len(names) != fields.shape[-1]:
        names = ()  # as everywhere, those that are not one for each say nothing
    return Recording(
        "trajectory",
        "a trajectory in memory",
        [fields],
        "tyxc",
        "as a trajectory has them",
        names,
        times=np.asarray(trajectory.times),
        length=trajectory.length,
        spacing=trajectory.spacing,
        boundary=None if trajectory.boundary == UNKNOWN else trajectory.boundary,
        whole=lambda _: trajectory,
    )


def _of_path(path: Path, reading: Reading) -> Iterator[Recording]:
    with _permitted(path):
        there = usable_path(path, "a file or directory").is_file() or path.is_dir()
    if not there:
        raise DataError(f"expected a file or directory, got nothing at {path}; correct the path")
    start = _start(path)
    found = _format(path, start)
    if found is not None:
        yield from found.read(path, reading)
    elif path.is_dir():
        yield from _of_directory(path, reading)
    elif path.suffix == ".safetensors":
        raise DataError(f"expected data, got weights or a forecaster at {path}; a forecaster is named before its data")
    else:
        raise DataError(
            f"expected {KNOWN}, got a file that begins with {start[:8]!r} at {path}; convert it to one of these"
        )


def _of_directory(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read the data files directly in a directory; folders below may hold other splits and are not read."""
    with _permitted(path):
        listed = sorted(path.iterdir(), key=lambda item: (natural(item.name), item.name))
    visible = [item for item in listed if not item.name.startswith(".")]
    files = [item for item in visible if _format(item, _start(item)) is not None]
    images = [item for item in visible if _start(item).startswith(pictures.PICTURE_STARTS)]
    _require_alike(visible, {*files, *images})
    if len(images) > 1:  # a single one beside data files is a figure
        others = [file.name for file in files if file not in images]
        if others:
            raise DataError(
                f"expected either pictures or data files in {path}, got {len(images)} pictures and {others[0]}; move "
                "away what is not of the recording"
            )
        yield from pictures.read_folder(images, reading)
        return
    if not files:
        raise _without_data(path, visible)
    for file in files:
        yield from _of_path(file, reading)


def _without_data(path: Path, visible: list[Path]) -> DataError:
    """Return the error of a directory in which no file is of a known format."""
    below = ", ".join(folder.name for folder in visible if folder.is_dir())
    kinds = ", ".join(sorted({item.suffix.lower() or item.name for item in visible if item.is_file()}))
    got = " and ".join(filter(None, (f"files of {kinds}" if kinds else "", f"the folders {below}" if below else "")))
    advice = "give the folder that holds them"
    if kinds and not below:
        advice = f"convert them to one of these: {', '.join(each.name for each in FORMATS)}, or PNG or TIFF pictures"
    return DataError(f"expected data files directly in {path}, got none{f' but {got}' if got else ''}; {advice}")


def _require_alike(visible: list[Path], known: set[Path]) -> None:
    """Refuse a damaged file among others of its suffix: left out, it would close up the frames or the trajectories.

    Raises:
        DataError: there is one.
    """
    suffixes = {file.suffix.lower() for file in known if file.is_file()}
    for file in visible:
        if file not in known and file.is_file() and file.suffix.lower() in suffixes:
            raise DataError(
                f"expected data in every {file.suffix} file of {file.parent}, got a file that begins with "
                f"{_start(file)[:8]!r} at {file}; mend it or move it away"
            )


def _format(path: Path, start: bytes) -> Format | None:
    return next((each for each in FORMATS if each.fits(path, start)), None)


def _archive(start: bytes) -> bool:
    return not start or start.startswith(numpy_files.ZIP_START)


def _start(path: Path) -> bytes:
    """Return the first bytes of a file; none of a directory or a device.

    Raises:
        DataError: the file may not be read.
    """
    with _permitted(path):
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(16)


@contextmanager
def _permitted(path: Path) -> Iterator[None]:
    """Turn the error of a file or directory that may not be read, or not even be looked for, into one sentence.

    Raises:
        DataError: there is one.
    """
    try:
        yield
    except OSError as error:
        reason = (error.strerror or "an error of the system").lower()
        raise DataError(
            f"expected a file or directory that can be read, got {path} ({reason}); choose another, or mend it"
        ) from error
