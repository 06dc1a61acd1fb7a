"""HDF5: the layouts that are known by name, and any other file through its arrays."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.data import store, well
from rdjepa.data.borders import UNKNOWN
from rdjepa.data.readers import catalog, pdebench, py_pde, the_well
from rdjepa.data.readers.damage import intact
from rdjepa.data.readers.held import held
from rdjepa.data.readers.packed import unpacked
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Lazy, Recording

PLACEHOLDER = "This is a netCDF dimension but not a netCDF variable"  # in the NAME of one without coordinates
HDF5_START = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class Layout:
    """A layout of an HDF5 file.

    Attributes:
        name: in words.
        fits: whether an open file has it.
        read: yields its recordings.
        knows: whether its reader finds the fields that the user names.
    """

    name: str
    fits: Callable[[h5py.File], bool]
    read: Callable[[Path, h5py.File, Reading], Iterator[Recording]]
    knows: Callable[[h5py.File, Reading], bool] = lambda *_: False


def read(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read an HDF5 file in the first layout that fits; by its arrays when the user names some that it does not know."""
    with intact("HDF5 file", str(path)), h5py.File(path, "r") as file:
        known = [each for each in LAYOUTS if each.fits(file) and (reading.field is None or each.knows(file, reading))]
        if known:
            yield from known[0].read(path, file, reading)
        else:
            found = _arrays(file)
            named = {name: _dimensions(array) for name, array in found.items()}
            fields = [name for name, array in found.items() if array.ndim >= 3]
            dimensions = named if fields and all(named[name] for name in fields) else None
            yield catalog.recording("HDF5 file", str(path), found, reading, dimensions, partial(_accepted, path))


def _arrays(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return every array of numbers in a file by its path, without those that stand for a dimension of NetCDF."""
    found: dict[str, h5py.Dataset] = {}

    def visit(name: str, item: Any) -> None:
        numbers = isinstance(item, h5py.Dataset) and item.shape and item.dtype.kind in "fiucbO"
        if numbers and PLACEHOLDER not in str(item.attrs.get("NAME")):
            found[name] = item

    file.visititems(visit)
    return found


def _dimensions(array: h5py.Dataset) -> list[str]:
    """Return the names of the axes, by labels or else attached scales; empty where an axis has neither."""
    names = [axis.label or (str(axis[0].name).rpartition("/")[2] if len(axis) else "") for axis in array.dims]
    return names if all(names) else []


def _accepted(path: Path, name: str, array: Any) -> Lazy:
    return unpacked(held(array, path), array.attrs, f"{path}:{name}")


def _read_ours(path: Path, file: h5py.File, reading: Reading) -> Iterator[Recording]:
    with well.opened(path) as opened:
        record = well.record(path, opened)
        yield Recording(
            "rdjepa file",
            str(path),
            [opened["t0_fields"][name] for name in well.COMPONENT_NAMES],
            "btxy",
            "as the format says",
            well.COMPONENT_NAMES,
            np.array(record.times, dtype=np.float64),
            record.length,
            None if record.boundary == UNKNOWN else record.boundary,
            whole=lambda _: store.read(path),
        )


def _is_ours(file: h5py.File) -> bool:
    return well.VERSION in file.attrs or well.RECORD in file


LAYOUTS = (
    Layout("rdjepa", _is_ours, _read_ours, lambda *_: True),
    Layout("The Well", the_well.fits, the_well.read, the_well.knows),
    Layout("PDEBench diffusion-reaction", pdebench.fits, pdebench.read),
    Layout("py-pde", py_pde.fits, py_pde.read),
)
