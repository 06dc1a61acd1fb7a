"""HDF5: the layouts that are known by name, and any other file through its arrays."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.checks import Index, checked
from rdjepa.data import store, well
from rdjepa.data.borders import UNKNOWN
from rdjepa.data.readers import catalog
from rdjepa.data.readers.packed import unpacked
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Lazy, Recording, cell_sides, domain_length, intact, require_even
from rdjepa.data.readers.sizes import require_held
from rdjepa.errors import DataError, Note, warn
from rdjepa.io import sealed

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
            yield catalog.recording("HDF5 file", str(path), _arrays(file), reading, accept=partial(_accepted, path))


def _arrays(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return every array of numbers in a file by its path."""
    found: dict[str, h5py.Dataset] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape and item.dtype.kind in "fiucbO":
            found[name] = item

    file.visititems(visit)
    return found


def _accepted(path: Path, name: str, array: Any) -> Lazy:
    return unpacked(held(array, path), array.attrs, f"{path}:{name}")


def held(array: h5py.Dataset, path: Path, entries: int | None = None) -> h5py.Dataset:
    """Return a dataset whose values are all in the file that was opened.

    Args:
        array: the dataset.
        path: the file that was opened.
        entries: how many along the first axis were written, where the file says so; all when None.

    Raises:
        DataError: it declares more than was written, or takes values from another file.
    """
    well.require_own(array, path)
    place = f"{path}:{array.name}"
    if array.chunks is None:
        require_held(int(array.size) * array.dtype.itemsize, array.id.get_storage_size(), place)
    elif array.size:
        shape = array.shape if entries is None else (entries, *array.shape[1:])
        expected = int(np.prod([-(-n // c) for n, c in zip(shape, array.chunks, strict=True)], dtype=object))
        piece = int(np.prod(array.chunks, dtype=object)) * array.dtype.itemsize
        require_held(expected * piece, array.id.get_num_chunks() * piece, place)
    return array


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


def _read_the_well(path: Path, file: h5py.File, reading: Reading) -> Iterator[Recording]:
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
        remarks=remarks + _mixed(path, [kind.upper() == well.PERIODIC for kind in kinds], reading),
    )


def _axes(file: h5py.File, place: str) -> str | None:
    """Return the axes of a scalar or vector of The Well in two dimensions; None of what has others."""
    array, order = file[place], int(place[1])
    if not isinstance(array, h5py.Dataset) or "dimensions/z" in file or not array.attrs.get("time_varying", True):
        return None
    found = {(0, 4): "btxy", (1, 5): "btxyc"}.get((order, array.ndim))
    return None if found == "btxyc" and array.shape[-1] != 2 else found


def _knows(file: h5py.File, reading: Reading) -> bool:
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


def _mixed(path: Path, periodic: Collection[bool], reading: Reading) -> tuple[str, ...]:
    """Return a sentence where only some sides are periodic, and the user does not say what all are."""
    if len(set(periodic)) < 2 or reading.boundary is not None:
        return ()
    return (
        f"only some sides of the domain are periodic in {path}, and all are taken for walls; --boundary periodic "
        "(boundary=) takes none for one",
    )


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


def _groups(file: h5py.File) -> list[str]:
    """Return the groups of PDEBench: with `data`, and a number for a name or a `grid` beside it."""
    found = [name for name in sorted(file) if isinstance(file.get(f"{name}/data"), h5py.Dataset)]
    return [name for name in found if name.isdecimal() or f"{name}/grid" in file]


def _read_pdebench(path: Path, file: h5py.File, reading: Reading) -> Iterator[Recording]:
    """Read the groups of PDEBench's 2D diffusion-reaction file: no-flux walls, `data` (t, y, x, component).

    The file has no checksum, so what seems lost is said.
    """
    names = _groups(file)
    numbers = [int(name) for name in names if name.isdecimal()]
    gaps = bool(numbers) and (len(numbers) < len(names) or max(numbers) - min(numbers) >= len(numbers))
    if gaps or len(names) < len(file):
        warn(
            f"expected groups with consecutive numbers and `data` in {path}, got {', '.join(sorted(file))[:200]}; "
            "those without data are left out",
            Note,
        )
    for name in names:
        group = file[name]
        data = held(group["data"], path)
        times, line = group.get("grid/t"), group.get("grid/x")
        yield Recording.of(
            "PDEBench file",
            f"{path}:{name}",
            [data],
            reading,
            layout="tyxc",
            times=None if times is None else np.asarray(times, dtype=np.float64),
            length=None if line is None or data.ndim != 4 else domain_length(line, data.shape[2]),
            boundary="neumann",
        )


def _read_py_pde(path: Path, file: h5py.File, reading: Reading) -> Iterator[Recording]:
    """Read a FileStorage of py-pde: `data` (t, [field,] x, y) and `times`, of which the first may be written only."""
    said = _json(path, file.attrs.get("data_length", "null"), Index | None)
    written = len(file["data"]) if said is None else min(said, len(file["data"]))
    data = _First(held(file["data"], path, written), written)
    about = _json(path, file.attrs["field_attributes"], dict[str, Any])
    given = _json(path, about.get("fields", "[]"), list[Any])
    parts = [_json(path, each, dict[str, Any]) if isinstance(each, str) else each for each in given] or [about]
    grid = _json(path, parts[0].get("grid", "{}"), dict[str, Any])
    labels = [_json(path, part["label"], str | None) for part in parts if "label" in part]
    bounds = checked(grid.get("bounds", [(0.0, 1.0)] * 2), list[tuple[float, float]], f"bounds in {path}")
    sides = [float(high) - float(low) for low, high in bounds]  # of x and of y
    components = data.shape[1] if len(data.shape) == 4 else 1  # a vector is one part of several
    yield Recording.of(
        "py-pde file",
        str(path),
        [data],
        reading,
        layout="tcxy" if len(data.shape) == 4 else "txy",
        names=tuple(map(str, labels)) if all(labels) and len(labels) == len(parts) == components else (),
        times=np.asarray(file["times"][:written], dtype=np.float64),
        length=sides[0] if grid else None,
        boundary=None if "periodic" not in grid else "periodic" if all(grid["periodic"]) else "walls",
        remarks=_mixed(path, grid.get("periodic", ()), reading),
        spacing=(sides[1] / data.shape[-1], sides[0] / data.shape[-2]) if grid and len(sides) == 2 else None,
    )


class _First:
    """An array without all but the first entries along its first axis."""

    def __init__(self, array: Lazy, entries: int) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, (entries, *array.shape[1:])

    def __getitem__(self, index: tuple[int | slice, ...]) -> Any:
        first, *others = index
        return self.array[slice(*first.indices(self.shape[0])) if isinstance(first, slice) else first, *others]


def _json(path: Path, text: str, kind: Any) -> Any:
    """Return one of the texts of JSON that py-pde keeps in each other."""
    return sealed.decode(text, kind, f"in {path}", "write the file again")


def _is_py_pde(file: h5py.File) -> bool:
    return "field_attributes" in file.attrs and isinstance(file.get("data"), h5py.Dataset) and "times" in file


LAYOUTS = (
    Layout("rdjepa", lambda file: well.VERSION in file.attrs or well.RECORD in file, _read_ours, lambda *_: True),
    Layout(
        "The Well",
        lambda file: isinstance(file.get("t0_fields"), h5py.Group),
        _read_the_well,
        _knows,
    ),
    Layout("PDEBench diffusion-reaction", lambda file: bool(_groups(file)), _read_pdebench),
    Layout("py-pde", _is_py_pde, _read_py_pde),
)
