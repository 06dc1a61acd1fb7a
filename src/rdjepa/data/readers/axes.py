"""The order of the axes of an array: as letters that a user gives, by names in a file, or guessed from the shape.

Letters: b trajectories, t frames, y rows, x columns, c components, 1 an axis of one point that means nothing.
"""

import re
from collections.abc import Sequence

from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError, DataError

NAMES = {
    "b": "b batch sample samples trajectory trajectories member realization run runs ensemble case seed",
    "t": "t time times frame frames step steps timestep snapshot",
    "y": "y row rows height lat latitude y_grid",
    "x": "x col cols column columns width lon longitude x_grid",
    "c": "c channel channels component components field fields species variable variables",
}
LETTER = {name: letter for letter, names in NAMES.items() for name in names.split()}
FEW = 4  # an axis of at most so many points may be that of the components
MANY = 32  # and at the end, behind a square grid, one of at most so many, if that of the frames can be another
STACK = "if each is a trajectory, stack them to one array 'fields', (B, T, H, W, C), or give a file for each"
EXAMPLE = 'for example --axes "t y x c" (axes="t y x c")'


def parse(text: str) -> str:
    """Return the letters of an order such as "t y x c" or "t,y,x,c" without what separates them.

    Raises:
        ArgumentError: an unknown letter, one twice, or no frames, rows or columns.
    """
    letters = re.sub(r"[\s,]", "", text.lower())
    real = letters.replace("1", "")
    if set(real) - set(NAMES) or len(set(real)) < len(real) or not set("tyx") <= set(real):
        raise ArgumentError(
            f"expected an order of axes with t, y and x, and b, c or 1 where there are such, each once, got {text!r}; "
            f"give one letter for each axis, {EXAMPLE}"
        )
    return letters


def fit(letters: str, shape: Sequence[int], place: str) -> str:
    """Return the letters if they fit an array, which has one axis for each.

    Raises:
        DataError: another number of axes, or an axis "1" of several points.
    """
    if len(letters) != len(shape) or any(a == "1" and n != 1 for a, n in zip(letters, shape, strict=False)):
        raise DataError(
            f"expected one letter for each axis of shape {tuple(shape)} in {place}, and 1 for single points only, got "
            f"{' '.join(letters)!r}; correct the order of axes, {EXAMPLE}"
        )
    return letters


def named(dimensions: Sequence[str], shape: Sequence[int], place: str) -> str:
    """Return the letters of named dimensions; an unknown name is left out where there is one point only.

    Raises:
        DataError: an unknown name, two names for the same, or none of frames.
    """
    letters = "".join(
        LETTER.get(str(name).lower(), "1" if points == 1 else "?")
        for name, points in zip(dimensions, shape, strict=True)
    )
    real = letters.replace("1", "")
    if set(real) <= set("yxc"):
        raise _single(shape, place)
    if "?" in real or len(set(real)) < len(real) or not set("tyx") <= set(real):
        raise DataError(
            f"expected dimensions with names such as time, y, x, component, got {', '.join(map(str, dimensions))} in "
            f"{place}; say their order, {EXAMPLE}"
        )
    return letters


def guess(shape: Sequence[int], place: str, separate: bool = False) -> str:
    """Guess the order of unnamed axes from their lengths.

    The order of this package, (T, H, W, 2) or (B, T, H, W, 2), is taken where it fits. Otherwise an axis of two points,
    or of up to four at its usual place, is that of the components; two neighboring axes of equal length are the grid;
    frames come before it if they can. A last axis that is too short for frames is that of the components.

    Args:
        shape: of the array.
        place: where the array is, for messages.
        separate: the array is one component by itself, so no axis is that of the components.

    Raises:
        DataError: no order fits, none has an axis of frames, a single component has two, or the last axis could be
            that of many components or that of the frames.
    """
    count = len(shape)
    if count == 2 or (count == 3 and shape[-1] <= FEW):  # rows, columns and components at best
        raise _single(shape, place)
    if count in (4, 5) and shape[-1] == 2:
        if separate:
            raise DataError(f"expected arrays of one component each, got shape {tuple(shape)} in {place}; {STACK}")
        return "btyxc"[5 - count :]
    where = None if separate else _components(shape)
    rest = [n for axis, n in enumerate(shape) if axis != where]
    if len(rest) not in (3, 4) or min(rest[-2:]) < 2:
        raise DataError(
            f"expected an array (T, H, W, C) or (B, T, H, W, C), got shape {tuple(shape)} in {place}; say the order of "
            f"its axes, {EXAMPLE}, or reorder it, for example with numpy.moveaxis"
        )
    letters = "btyx"[4 - len(rest) :]
    if rest[-1] != rest[-2] and rest[-3] == rest[-2]:
        letters = letters[:-3] + "yxt"
        if where is None and not separate and count == 4 and shape[0] >= FORECASTING.length and shape[-1] <= MANY:
            if shape[-1] < FORECASTING.length:
                return "tyxc"
            raise DataError(
                f"expected an order of axes that can be guessed, got shape {tuple(shape)} in {place}, of {shape[0]} "
                f"frames of {shape[-1]} components or of {shape[0]} trajectories of {shape[-1]} frames; say which, as "
                '--axes "t y x c" or "b y x t" (axes=)'
            )
    if where is None:
        return letters
    return letters[:where] + "c" + letters[where:]


def _single(shape: Sequence[int], place: str) -> DataError:
    """Return what refuses an array without an axis that could be that of the frames."""
    return DataError(
        f"expected at least {FORECASTING.length} frames, got shape {tuple(shape)} in {place}, which looks like that of "
        "a single one; give several on an axis of their own, as (T, H, W, C)"
    )


def _components(shape: Sequence[int]) -> int | None:
    """Return the axis that holds the components; None if the array is one component."""
    pairs = [axis for axis, points in enumerate(shape) if points == 2]
    if len(shape) >= 4 and len(pairs) == 1:
        return pairs[0]
    usual = (len(shape) - 1, len(shape) - 3)  # (..., H, W, C) and (..., C, H, W)
    few = [axis for axis in usual if len(shape) >= 4 and shape[axis] <= FEW]
    return few[0] if few else None
