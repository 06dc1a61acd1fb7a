"""Files of The Well: scalars and vectors in groups by their order, with coordinates, borders and parameters.

The layout is that of Ohana et al., NeurIPS 2024 (https://arxiv.org/abs/2412.00568).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.data import well
from rdjepa.data.readers.geometry import cell_sides, domain_length, mixed_sides, require_even
from rdjepa.data.readers.held import held
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Lazy, Recording
from rdjepa.errors import DataError


def fits(file: h5py.File) -> bool:
    """Return whether a file has the group of its scalars."""
    return isinstance(file.get("t0_fields"), h5py.Group)


def read(path: Path, file: h5py.File, reading: Reading) -> Iterator[Recording]:
    """Read the scalars and the vectors of a file of The Well, a vector as two components; x comes before y there."""
    parts: dict[str, Lazy] = {}
    left = []
    for place in _named(file, reading.field):
        name, axes = place.rpartition("/")[2], _axes(file, place)
        if axes is None:
            left.append(f"{name} {getattr(file[place], 'shape', 'without values')}")
            continue
        array = held(file[place], path)
        own = [("", array)] if axes == "btxy" else [("_x", _Along(array, 0)), ("_y", _Along(array, 1))]
        for ending, part in own:  # the name of another field, perhaps
            parts[f"{place if name + ending in parts else name}{ending}"] = part
    if not parts:
        raise DataError(
            f"expected scalars (B, T, X, Y) or vectors (B, T, X, Y, 2), got {', '.join(left) or 'none'} in {path}; "
            "repeat constant axes, or take two axes of three"
        )
    fields = [*parts.values()]
    for axis in ("y", "x"):
        if reading.spacing is None and (line := file.get(f"dimensions/{axis}")) is not None:
            require_even(line, axis, str(path))
    coefficients, remarks = _scalars(path, file, fields[0].shape[0])
    remarks += tuple(f"{each} in {path} is left out: no scalar (B, T, X, Y), no vector of two" for each in left)
    kinds = [_text(group.attrs["bc_type"]) for group in file.get("boundary_conditions", {}).values()]
    yield Recording.of(
        "file of The Well",
        str(path),
        fields,
        reading,
        layout="btxy",
        names=tuple(parts),
        times=np.asarray(file["dimensions/time"], dtype=np.float64),
        length=domain_length(file["dimensions/x"], fields[0].shape[2]),
        boundary=_boundary(file),
        spacing=cell_sides(file.get("dimensions/y"), file["dimensions/x"], (fields[0].shape[3], fields[0].shape[2])),
        coefficients=coefficients,
        remarks=remarks + mixed_sides(path, [kind.upper() == well.PERIODIC for kind in kinds], reading),
    )


def _axes(file: h5py.File, place: str) -> str | None:
    """Return the axes of a scalar or vector of The Well in two dimensions; None of what has others."""
    array, order = file[place], int(place[1])
    if not isinstance(array, h5py.Dataset) or "dimensions/z" in file or not array.attrs.get("time_varying", True):
        return None
    found = {(0, 4): "btxy", (1, 5): "btxyc"}.get((order, array.ndim))
    return None if found == "btxyc" and array.shape[-1] != 2 else found


def knows(file: h5py.File, reading: Reading) -> bool:
    """Return whether the fields that the user names are of The Well, with the order of axes of the format."""
    places = _named(file, reading.field)
    described = "dimensions/time" in file and "dimensions/x" in file
    return described and reading.axes is None and bool(places) and all(_axes(file, place) for place in places)


def _named(file: h5py.File, named: str | None) -> list[str]:
    """Return the paths of fields of The Well that a text names by path, name or group, all for None.

    There are none if it names something else too, or one of them twice.
    """
    groups = [name for name in ("t0_fields", "t1_fields", "t2_fields") if isinstance(file.get(name), h5py.Group)]
    every = [f"{name}/{_text(each)}" for name in groups for each in file[name].attrs.get("field_names", file[name])]
    if named is None:
        return every
    found: list[str] = []
    for part in (each.strip().strip("/") for each in named.split(",")):
        own = [path for path in every if part in (path, *path.split("/"))]
        if not own or set(own) & set(found):
            return []
        found += own
    return found


class _Along:
    """One component of an array of vectors, the position of the last axis."""

    def __init__(self, array: Lazy, number: int) -> None:
        self.array, self.number, self.dtype, self.shape = array, number, array.dtype, array.shape[:-1]

    def __getitem__(self, index: tuple[int | slice, ...]) -> Any:
        return self.array[(*index, self.number)]


def _boundary(file: h5py.File) -> str | None:
    """Return the kind of the first wall, "periodic" if there is none, or None without boundary conditions."""
    groups = list(file.get("boundary_conditions", {}).values())
    for group in groups:
        kind = _text(group.attrs["bc_type"])
        if kind.upper() != well.PERIODIC:
            return _text(group.attrs.get("kind", kind.lower()))
    return "periodic" if groups else None


def _text(value: Any) -> str:
    """Return a text of an attribute, which HDF5 gives as bytes where its length is fixed."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _scalars(path: Path, file: h5py.File, count: int) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Return the scalars that do not vary in time, by name, and a sentence for each that is left out.

    A scalar is one value, or one for each of `count` trajectories.
    """
    values: dict[str, np.ndarray] = {}
    remarks: tuple[str, ...] = ()
    for name, dataset in file.get("scalars", {}).items():
        if dataset.attrs.get("time_varying", False) or dataset.dtype.kind not in "fiu" or dataset.ndim > 1:
            continue
        if dataset.size == 1 or dataset.shape == (count,):
            value = np.asarray(dataset[()], dtype=np.float64)
            values[name] = value.reshape(()) if value.size == 1 else value
        else:
            remarks += (
                f"scalar {name} of shape {dataset.shape} in {path} is left out, as it is not one for each of {count} "
                "trajectories",
            )
    return values, remarks
