"""A context as users give it, as the array that a forecaster takes.

Frames before the newest four are welcome: a network does not see them, what is fitted to a context does. Where one
component was measured, the second is the same field one frame earlier (`rdjepa.data.fields.with_second`), so of five
frames of it or more the first only says what stood before the second. Before the first of four stands its linear
continuation backwards, as in a file of four frames.
"""

from typing import Any

import numpy as np

from rdjepa.data.fields import array_of, measured, with_second
from rdjepa.data.readers import Reading, recordings
from rdjepa.data.readers.loading import called
from rdjepa.data.readers.named import is_xarray
from rdjepa.data.soundness import single
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import DataError
from rdjepa.forecasters.base import CONTEXT


def read_context(
    given: Any, grid: int | None, components: int, alone: bool = False, names: tuple[str, ...] = ()
) -> np.ndarray:
    """Return contexts (T, H, W, C) or (B, T, H, W, C), T at least 4, as float32 after a look at shape and values.

    Args:
        given: an array, a tensor, nested lists, or an object of xarray, whose dimensions are found by their names.
        grid: points per side; any when None.
        components: their number C.
        alone: one component was measured: contexts (..., T, H, W, 1), of which the first frame is left out where there
            are more than 4, or with the second that this package puts beside it.
        names: of the components in their order; an object of xarray that has all of them is taken by these.

    Raises:
        DataError: wrong shape, no finite real number at every point, or a second component where one was measured.
    """
    array = _real(given, names)
    one = alone and array.shape[-1:] == (1,)
    height, width = ("H", "W") if grid is None else (grid, grid)
    sides = array.shape[-3:-1] if grid is None else (grid, grid)
    if array.ndim not in (4, 5) or not len(array) or array.shape[-4] < CONTEXT or array.shape[-3:-1] != sides:
        raise DataError(
            f"expected a context of shape (T, {height}, {width}, {1 if alone else components}), T at least {CONTEXT}, "
            f"got {array.shape}; give whole frames on the model's grid (--resample averages finer ones over blocks of "
            "points)"
        )
    if not one and array.shape[-1] != components:
        raise DataError(
            f"expected a context of {components} components on its last axis, got {array.shape[-1]} in shape "
            f"{array.shape}; give those that the forecaster was adapted to, in the same order"
        )
    if not np.isfinite(array).all():
        raise DataError("expected a finite context, got NaN or infinite values; clean the frames first")
    array = single(array)
    if one:
        made = with_second(np.moveaxis(array, -4, 0))
        return np.moveaxis(made[1:] if len(made) > CONTEXT else made, 0, -4)
    if alone and any(measured(each) > 1 for each in array.reshape(-1, *array.shape[-4:])):
        raise DataError(
            "expected a context of the one component that was adapted to, beside which stands the same field one frame "
            "earlier, got another second component; give that component alone, as context[..., :1]"
        )
    return array


def _real(given: Any, names: tuple[str, ...]) -> np.ndarray:
    """Return an array of real numbers, one at every point; of an object of xarray axes and components in our order.

    Raises:
        DataError: masked values, others than real numbers, or rows of different lengths.
    """
    if isinstance(given, Trajectory):
        raise DataError("expected a context, got a Trajectory; give four of its frames, as trajectory.fields[-4:]")
    if is_xarray(given):
        recording = next(recordings(given, Reading()))
        every = called(recording, names) or tuple(range(recording.components))
        parts = [recording.read(index, 0, recording.frames, every) for index in range(recording.count)]
        return np.stack(parts) if "b" in recording.axes else parts[0]
    given = array_of(given)
    try:
        array = np.ma.asarray(given)  # of a list, too, this keeps the masks
    except ValueError as error:
        raise DataError("expected a context of equal frames, got rows of different lengths; mend them") from error
    masked = np.ma.is_masked(array)
    if masked or array.dtype.kind not in "fiu":
        got = "masked ones" if masked else array.dtype
        raise DataError(f"expected a context of real numbers, got {got}; give what was measured, as floating numbers")
    return np.asarray(array)
