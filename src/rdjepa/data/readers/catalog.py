"""The choice of fields, times and coordinates among the named arrays of a file with several."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, get_args

import numpy as np

from rdjepa.data.borders import WALLS
from rdjepa.data.readers.axes import LETTER, STACK
from rdjepa.data.readers.geometry import cell_sides, domain_length, require_even
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Lazy, Recording
from rdjepa.errors import DataError
from rdjepa.pde.boundary import Kind

BOUNDARIES = (*get_args(Kind), WALLS)  # as `Trajectory.to_xarray` writes them
FORECAST, CONTEXT = "forecast", "context"  # the names in a forecast of ours
FIELDS = ("fields", FORECAST)  # the names that are taken before all others: ours, in a store and of a forecast
TIMES = ("times", "time", "t")
Beside = Mapping[str, Callable[[], Lazy]]  # arrays that may be read, by name


def natural(name: str) -> list[Any]:
    """Return a key that sorts names as people do: frame2 before frame10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def recording(
    kind: str,
    place: str,
    arrays: Mapping[str, Lazy],
    reading: Reading,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    accept: Callable[[str, Lazy], Lazy] = lambda _, array: array,
    attributes: Callable[[str], Mapping[str, Any]] = lambda _: {},
) -> Recording:
    """Choose the fields among named arrays; return them as a recording, with times, length and spacing where found.

    Names are those of several arrays, or of the coordinate of the components.

    Args:
        kind: of the file, in words.
        place: the file.
        arrays: name, or path in the file -> array.
        reading: what the user says.
        dimensions: name -> names of the axes, where the file tells.
        accept: checks an array that is read, by its name, and returns it, unpacked where it is packed; what lies beside
            may be damaged.
        attributes: returns what the file says of an array, by its name; of the fields, their boundary is taken.

    Raises:
        DataError: the choice is not clear, what was chosen is not there or damaged, or the coordinates of its grid are
            uneven.
    """
    names = _chosen(arrays, reading, place) if reading.field is not None else _found(arrays, place, dimensions)
    chosen, own = [accept(name, arrays[name]) for name in names], None
    if dimensions is not None:
        own = dimensions[names[0]]
        together = zip(names, chosen, strict=True)
        chosen = [_ordered(each, dimensions[name], chosen[0], own, reading, place) for name, each in together]
    found = Recording.of(kind, place, chosen, reading, dimensions=own)
    lines = [name for name in arrays if len(arrays[name].shape) in (1, 2) and name not in names]
    beside = {name: partial(accept, name, arrays[name]) for name in lines}
    folder = names[0].rpartition("/")[0]
    times, remarks = _times(beside, folder, found, reading)
    known: dict[str, Any] = {"times": times, "remarks": remarks, **_by_letters(found, beside, folder, reading)}
    said = str(attributes(names[0]).get("boundary"))
    known["boundary"] = said if said in BOUNDARIES else None
    short = tuple(name.rpartition("/")[2] for name in names)
    distinct = short if len(set(short)) == len(short) else tuple(names)
    known["names"] = distinct if len(names) > 1 or found.components == 1 else ()
    if own is not None:
        known |= _along_axes(found, own, beside, folder, reading)
    known["forecast"] = FORECAST in names and CONTEXT in arrays
    return Recording(found.kind, place, chosen, found.axes, found.origin, **known)


def _times(
    beside: Beside, folder: str, found: Recording, reading: Reading
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the times of the frames, None where no array has them, and a sentence for each that does not fit.

    Raises:
        DataError: they are no numbers, and the user does not say the distance of frames.
    """
    remarks: tuple[str, ...] = ()
    for name in TIMES:
        line = _beside(beside, folder, name)
        if line is None:
            continue
        if line.shape[-1:] == (found.frames,) or name == TIMES[0]:
            if np.dtype(line.dtype).kind in "fiumM":
                return in_seconds(np.asarray(line[...])).astype(np.float64), remarks
            if reading.interval is not None:
                return None, remarks
            raise DataError(
                f"expected times that are real numbers or dates, got {line.dtype} in {found.place}; leave {name} out, "
                "or give --interval (interval=)"
            )
        if reading.interval is None:
            remarks += (
                f"{name} of shape {tuple(line.shape)} in {found.place} is left out, as it is not one for each of "
                f"{found.frames} frames; --interval (interval=) says their distance",
            )
    return None, remarks


def in_seconds(values: np.ndarray) -> np.ndarray:
    """Return dates as seconds since the first, durations in seconds, NaN where one is missing; numbers as they are."""
    if values.dtype.kind == "M":
        values = values.astype("M8[s]") if np.datetime_data(values.dtype)[0] in "YM" else values  # of no fixed length
        values = values - values.flat[0]
    return values / np.timedelta64(1, "s") if values.dtype.kind == "m" else values


def _by_letters(found: Recording, beside: Beside, folder: str, reading: Reading) -> dict[str, Any]:
    """Return length and spacing by arrays called x and y; x may run along rows, where the order of axes was guessed.

    Raises:
        DataError: one that is as long as an axis of the grid is uneven, and the user does not say the distances.
    """
    lines: dict[str, np.ndarray] = {}
    for letter in "yx":
        line = _beside(beside, folder, letter)
        shape = () if line is None else line.shape
        if line is None or max(shape, default=0) not in found.grid or math.prod(shape) not in found.grid:
            continue
        if np.dtype(line.dtype).kind in "fiu":
            lines[letter] = np.ravel(line[...])  # MATLAB's vectors are matrices of one row or column
            if reading.spacing is None:
                require_even(lines[letter], letter, found.place)
    rows, columns = lines.get("y"), lines.get("x")
    spacing = cell_sides(rows, columns, found.grid) or cell_sides(columns, rows, found.grid)
    return {"length": domain_length(columns, found.grid[1]), "spacing": spacing}


def _along_axes(
    found: Recording, dimensions: Sequence[str], beside: Beside, folder: str, reading: Reading
) -> dict[str, Any]:
    """Return times, length, spacing and names, where arrays are called as the dimensions of the fields are.

    Raises:
        DataError: rows or columns lie at uneven distances, and the user does not say others.
    """
    lines: dict[str, np.ndarray] = {}
    for letter, name in zip(found.axes, dimensions, strict=True):
        line = _beside(beside, folder, name) if letter in "tyxc" else None
        if line is None or tuple(line.shape) != (found.points(letter),):
            continue
        if letter == "c" or np.dtype(line.dtype).kind in "fiumM":
            lines[letter] = in_seconds(np.asarray(line[...]))
        if letter in lines.keys() & {"y", "x"} and reading.spacing is None:
            require_even(lines[letter], letter, found.place)
    changes: dict[str, Any] = {}
    if "t" in lines:
        changes["times"] = lines["t"].astype(np.float64)
    if "x" in lines:
        changes["length"] = domain_length(lines["x"], found.grid[1])
    if lines.keys() >= {"y", "x"}:
        changes["spacing"] = cell_sides(lines["y"], lines["x"], found.grid)
    if "c" in lines:
        changes["names"] = tuple(map(str, lines["c"]))
    return changes


class _Reordered:
    """An array with its axes in another order: axis i is axis `order[i]` of the array."""

    def __init__(self, array: Lazy, order: Sequence[int]) -> None:
        self.array, self.order, self.dtype = array, order, array.dtype
        self.shape = tuple(array.shape[axis] for axis in order)

    def __getitem__(self, index: tuple[int | slice, ...]) -> Any:
        part = self.array[tuple(index[self.order.index(axis)] for axis in range(len(self.order)))]
        left = [axis for axis, each in zip(self.order, index, strict=True) if isinstance(each, slice)]
        return part.transpose([sorted(left).index(axis) for axis in left])


def _ordered(
    array: Lazy, dimensions: Sequence[str], first: Lazy, own: Sequence[str], reading: Reading, place: str
) -> Lazy:
    """Return an array with its named axes in the order of the first array's; names of single points do not count.

    Raises:
        DataError: the names differ, and the user does not say what the axes are.
    """
    here, there = _counted(dimensions, array), _counted(own, first)
    if here == there or (reading.axes is not None and sorted(here) != sorted(there)):
        return array
    if sorted(here) != sorted(there):
        raise DataError(
            f"expected components with the same dimensions, got {', '.join(own)} and {', '.join(dimensions)} in "
            f"{place}; give them the same names, or say their order with --axes (axes=) if they belong together"
        )
    ranked = [sorted(range(len(names)), key=names.__getitem__) for names in (there, here)]
    return _Reordered(array, [axis for _, axis in sorted(zip(*ranked, strict=True))])


def _counted(dimensions: Sequence[str], array: Lazy) -> list[str]:
    """Return the names of the axes of several points; nothing for the others."""
    return [name if points > 1 else "" for name, points in zip(dimensions, array.shape, strict=False)]


def _beside(arrays: Beside, folder: str, name: str) -> Lazy | None:
    """Return the array of a name in a folder, in the folder above, or at the root; capitals count for letters alone."""
    places = [f"{place}/{name}".lstrip("/") for place in (folder, folder.rpartition("/")[0], "")]
    found = next((arrays[key] for key in places if key in arrays), None)
    if found is None and len(name) > 1:  # t is a time, T may be a temperature
        small = {key.lower(): array for key, array in arrays.items()}
        found = next((small[key.lower()] for key in places if key.lower() in small), None)
    return None if found is None else found()


def _found(arrays: Mapping[str, Lazy], place: str, dimensions: Mapping[str, Sequence[str]] | None) -> list[str]:
    """Choose without help: `fields`, the only array that can be fields, or the only two that are alike."""
    for name in FIELDS:
        if name in arrays:
            return [name]
    if len(arrays) == 1:
        return list(arrays)
    large = [name for name, array in arrays.items() if len(array.shape) >= 3]
    if len(large) == 1:
        return large
    if len(large) == 2 and _is_component(large, arrays, dimensions):
        return sorted(large, key=natural)
    several = list(islice(sorted(large, key=natural), 8))
    found = [tuple(arrays[name].shape) for name in several]
    shapes = ", ".join(map(str, found))
    stack = f"; {STACK}" if len(set(found)) == 1 and len(found[0]) == 4 else ""
    raise DataError(
        f"expected one array, or one named 'fields', got {', '.join(several) or 'no array'} in {place}"
        f"{f', of shapes {shapes}' if several else ''}; name the fields so, or choose with --field NAME (field=){stack}"
    )


def _is_component(
    names: Sequence[str], arrays: Mapping[str, Lazy], dimensions: Mapping[str, Sequence[str]] | None
) -> bool:
    """Return whether arrays are of one size and each is one component, without an axis of components."""
    shapes = [tuple(arrays[name].shape) for name in names]
    alike = shapes[0] == shapes[1]
    if dimensions is not None:
        sizes = [dict(zip(dimensions[name], arrays[name].shape, strict=False)) for name in names]
        alike = alike or sizes[0] == sizes[1]  # in another order
        own = any(LETTER.get(each.lower()) == "c" for name in names for each in dimensions[name])
    else:
        own = len(shapes[0]) > 3 and 2 in (shapes[0][0], shapes[0][-3], shapes[0][-1])
    return alike and not own


def _chosen(arrays: Mapping[str, Lazy], reading: Reading, place: str) -> list[str]:
    """Return the names that the user's text stands for."""
    assert reading.field is not None
    names: list[str] = []
    for part in (each.strip().strip("/") for each in reading.field.split(",")):
        exact = [part] if part in arrays else [name for name in arrays if name.rpartition("/")[2] == part]
        inside = [name for name in arrays if name.rpartition("/")[0] == part]
        begins = [name for name in arrays if part and name.startswith(part)]
        found = next((each for each in (exact, inside, begins) if each), [])
        found = [name for name in found if len(arrays[name].shape) >= 3] or found
        if not found or (exact and len(found) > 1):
            listed = ", ".join(islice(sorted(found or arrays, key=natural), 8)) or "no array"
            raise DataError(
                f"expected {'one array' if found else 'an array'} named {part!r} in {place}, got {listed}; "
                "give its whole path in the file"
            )
        names += sorted(found, key=natural)
    if len(set(names)) < len(names):
        raise DataError(
            f"expected a different array for each component, got {', '.join(names)} in {place}; name each once"
        )
    return names
