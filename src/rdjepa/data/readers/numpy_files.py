"""NumPy: arrays in memory, .npy and .npz files."""

import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rdjepa.data.fields import array_of
from rdjepa.data.readers import catalog
from rdjepa.data.readers.damage import DAMAGED
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Deferred, Recording, unnamed
from rdjepa.data.readers.sizes import DENSEST, require_held
from rdjepa.errors import DataError, first_line

NPY_START = b"\x93NUMPY"
ZIP_START = b"PK\x03\x04"


def read_array(array: Any, reading: Reading) -> Iterator[Recording]:
    """Take an array in memory."""
    array = array_of(array)
    array = array if isinstance(array, np.ndarray) else np.asarray(array)
    yield Recording.of("array", "an array in memory", [array], reading, remarks=unnamed(reading, "array"))


def read_npy(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read an .npy array, piece by piece."""
    try:
        array = _Mapped(path)
    except DAMAGED as error:
        raise _unreadable(path, error) from error
    yield Recording.of("NumPy file", str(path), [array], reading, remarks=unnamed(reading, "NumPy file"))


def read_npz(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read an .npz with one array, with `fields`, or with one array for each component; and `times` where it is there.

    An archive is compressed as a whole, so an array that is looked at is read whole.
    """
    try:
        arrays = _members(path)
        yield catalog.recording("NumPy archive", str(path), arrays, reading)
    except DataError:
        raise
    except DAMAGED as error:
        raise _unreadable(path, error) from error


class _Mapped:
    """An array of a file that is mapped into memory anew for every part, so that parts read before are let go."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shape, self.dtype = (whole := self._whole()).shape, whole.dtype

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.array(self._whole()[index])

    def _whole(self) -> np.ndarray:
        return np.load(self.path, mmap_mode="r", allow_pickle=False)


def _members(path: Path) -> dict[str, Any]:
    """Return the arrays of an archive by name, from their headers alone.

    Raises:
        DataError: a header declares more than the archive can hold.
    """
    found: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith(".npy"):
                continue
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
            declared = int(np.prod(shape, dtype=object)) * dtype.itemsize
            compressed = entry.compress_type != zipfile.ZIP_STORED
            if not dtype.hasobject:  # objects are refused where they are chosen, and never unpickled
                require_held(declared, entry.compress_size, str(path), DENSEST if compressed else 1)
            found[entry.filename.removesuffix(".npy")] = Deferred(
                shape, dtype, str(path), partial(_member, path, entry.filename)
            )
    return found


def _member(path: Path, name: str) -> np.ndarray:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return archive[name]
    except DAMAGED as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"expected whole arrays of numbers in {path}, got a file that NumPy cannot read ({first_line(error)}); "
        "save it again with numpy.save or numpy.savez"
    )
