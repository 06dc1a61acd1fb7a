"""MATLAB files: version 5 through SciPy, version 7.3, which is HDF5, through h5py."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.data.readers import catalog
from rdjepa.data.readers.damage import intact
from rdjepa.data.readers.held import held
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Deferred, Recording
from rdjepa.data.readers.sizes import DENSEST, require_held
from rdjepa.errors import DataError

MATLAB_5, MATLAB_7_3 = b"MATLAB 5", b"MATLAB 7"
NUMBERS = ("double", "single", "int64", "uint64", "int32", "uint32", "int16", "uint16", "int8", "uint8")


def read_5(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read a file of version 5 to 7; a variable that is looked at is read whole."""
    from scipy import io
    from scipy.io.matlab import MatReadError

    arrays: dict[str, Any] = {}
    with intact("MATLAB file", str(path), MatReadError):
        for name, shape, kind in io.whosmat(path):
            if kind in NUMBERS:
                declared = int(np.prod(shape, dtype=object))  # a number takes a byte at least, however it is stored
                require_held(declared, path.stat().st_size, str(path), DENSEST)
                shape = _line(shape)
                arrays[name] = Deferred(shape, kind, str(path), partial(_variable, path, name, shape))
        yield catalog.recording("MATLAB file", str(path), arrays, reading)


def read_7_3(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read a file of version 7.3, piece by piece; it holds every array with its axes reversed."""
    with intact("MATLAB file", str(path)), h5py.File(path, "r") as file:
        arrays = {
            name: _Reversed(item)
            for name, item in file.items()
            if isinstance(item, h5py.Dataset) and item.shape and "MATLAB_empty" not in item.attrs
        }
        yield catalog.recording("MATLAB file", str(path), arrays, reading, accept=partial(_accepted, path))


def _accepted(path: Path, _: str, array: Any) -> "_Reversed":
    held(array.dataset, path)
    return array


def _variable(path: Path, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Read a variable of a file of version 5, which has a shape."""
    from scipy import io

    content = io.loadmat(path, variable_names=[name])[name].reshape(shape)
    if content.dtype.kind == "c":
        raise DataError(
            f"expected fields of a floating dtype, got {content.dtype} in {path}; "
            "give real and imaginary part as the two components"
        )
    return content


class _Reversed:
    """A dataset of version 7.3 with its axes in MATLAB's order."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self.dataset, self.dtype = dataset, dataset.dtype
        whole = tuple(reversed(dataset.shape))
        self.shape = _line(whole)
        self._squeezed = self.shape != whole

    def __getitem__(self, index: Any) -> np.ndarray:
        if index is Ellipsis or self._squeezed:
            return np.asarray(self.dataset[...]).T.reshape(self.shape)[index]
        return np.asarray(self.dataset[tuple(reversed(index))]).T


def _line(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a row or column as that of a line; MATLAB has no arrays of one axis."""
    return (max(shape),) if len(shape) == 2 and min(shape) == 1 else tuple(shape)
