"""Zarr of versions 2 and 3: a directory or a zip archive with an array or a group of arrays."""

import base64
import contextlib
import json
import math
import struct
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rdjepa.checks import require_packages
from rdjepa.data.readers import catalog
from rdjepa.data.readers.damage import DAMAGED, intact
from rdjepa.data.readers.packed import MISSING, unpacked
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Lazy, Recording
from rdjepa.errors import DataError, Note, warn

METADATA = ("zarr.json", ".zgroup", ".zarray")
DIMENSIONS = "_ARRAY_DIMENSIONS"  # the attribute in which xarray names the axes of version 2
SPARSEST = 100  # an array with fewer of its pieces is taken for damaged


def is_store(path: Path) -> bool:
    """Return whether a directory or zip archive is a Zarr store."""
    if path.is_dir():
        return any((path / name).is_file() for name in METADATA)
    if not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name in METADATA for name in archive.namelist())
    except DAMAGED:
        return False


def read(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read a store, piece by piece; dimensions are those that it names, of xarray or of version 3."""
    require_packages(f"to read {path}", "formats", "zarr", error=DataError)
    import zarr  # an extra

    kind = partial(zarr.storage.LocalStore, read_only=True) if path.is_dir() else zarr.storage.ZipStore
    with intact("Zarr store", str(path), *_errors(zarr)), contextlib.closing(kind(path)) as store:
        root = zarr.open(store, mode="r")
        found = {"values": root} if isinstance(root, zarr.Array) else _arrays(root, zarr.Array)
        named = {name: _dimensions(array) for name, array in found.items()}
        fields = [name for name, array in found.items() if array.ndim >= 3]
        dimensions = named if fields and all(named[name] for name in fields) else None
        accept, place = partial(_accepted, path), str(path)
        said = {name: array.attrs for name, array in found.items()}
        yield catalog.recording("Zarr store", place, found, reading, dimensions, accept, said.__getitem__)


def _arrays(group: Any, kind: type, above: str = "") -> dict[str, Any]:
    """Return all arrays of a group and of the groups in it, by path."""
    found: dict[str, Any] = {}
    for name, item in sorted(group.members()):
        path = f"{above}{name}"
        found |= {path: item} if isinstance(item, kind) else _arrays(item, kind, f"{path}/")
    return {name: array for name, array in found.items() if array.ndim}


def _dimensions(array: Any) -> list[str]:
    """Return the names of the axes; empty where the store does not tell all of them."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get(DIMENSIONS) or []
    known = [str(name) for name in names if name is not None]
    return known if len(known) == array.ndim else []


def _numbers(array: Any) -> dict[str, Any]:
    """Return the attributes of an array; missing values that were written as text are numbers again.

    JSON has no NaN: Zarr writes its name, and xarray the bytes of any number in base 64. Another text stays one. In
    version 2 xarray keeps the missing value as the fill value of the array, and takes any fill value for one.
    """
    found = dict(array.attrs)
    of_xarray = array.metadata.zarr_format == 2 and DIMENSIONS in found
    if of_xarray and array.dtype.kind in "fiu" and array.fill_value is not None:
        found.setdefault("_FillValue", array.fill_value)
    for name in MISSING:
        if isinstance(text := found.get(name), str):
            with contextlib.suppress(ValueError, struct.error):
                (found[name],) = struct.unpack("<d", base64.standard_b64decode(text))
            with contextlib.suppress(ValueError):
                found[name] = float(text)
    return found


def _accepted(path: Path, name: str, array: Any) -> Lazy:
    _refuse_pickles(array, path)
    _say_missing(array, path)
    return unpacked(array, _numbers(array), f"{path}:{name}")


def _refuse_pickles(array: Any, path: Path) -> None:
    """Refuse an array that would be decoded by executing what it holds."""
    about = array.metadata.to_dict()
    decoding = {key: about.get(key) for key in ("codecs", "filters", "compressor")}
    if "pickle" in json.dumps(decoding, default=str).lower():
        raise DataError(
            f"expected arrays of numbers in {path}, got one that is stored as pickles, which are never executed; "
            "save it without the codec pickle"
        )


def _say_missing(array: Any, path: Path) -> None:
    """Note pieces that are not in the store: Zarr leaves out those that hold the fill value, or they were lost.

    Raises:
        DataError: none is there, or hardly any.
    """
    if array.ndim < 3:
        return
    pieces = getattr(array, "shards", None) or array.chunks
    expected = math.prod(-(-n // piece) for n, piece in zip(array.shape, pieces, strict=True))
    place = f"{path}:{array.path}" if array.path else str(path)
    stored = min(_stored(path, array.path), expected)
    if stored * SPARSEST < expected:
        raise DataError(
            f"expected a Zarr array with its values, got {stored} of {expected} pieces stored in {place}; make it again"
        )
    if stored < expected:
        sentence = f"{stored} of {expected} pieces of {place} are stored; the others are read as {array.fill_value}"
        warn(sentence, Note)


def _stored(path: Path, array: str) -> int:
    """Return the number of files below an array that hold values."""
    if path.is_dir():
        below = path / array if array else path
        return sum(each.is_file() and not _describes(each.name) for each in below.rglob("*"))
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith(f"{array}/" if array else "")]
    return sum(not name.endswith("/") and not _describes(name.rpartition("/")[2]) for name in names)


def _describes(name: str) -> bool:
    return name == METADATA[0] or name.startswith(".z")


def _errors(zarr: Any) -> tuple[type[Exception], ...]:
    """Return the errors of Zarr that derive from none of Python's, and that of a description that claims any size."""
    return (getattr(zarr.errors, "BaseZarrError", ValueError), MemoryError)
