"""Field arrays: the order of their axes, and the checks of every array that a user gives."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError

COMPONENTS = 2

Array = TypeVar("Array", bound=Any)


def channels_first(x: Array) -> Array:
    """Turn (..., H, W, C), the order on disk, into (..., C, H, W), the order of the models.

    A NumPy array comes back contiguous; a tensor comes back as a view.
    """
    if hasattr(x, "movedim"):
        return x.movedim(-1, -3)
    return np.ascontiguousarray(np.moveaxis(x, -1, -3))  # type: ignore[return-value]


def channels_last(x: Array) -> Array:
    """Turn (..., C, H, W) into (..., H, W, C): the inverse of `channels_first`."""
    if hasattr(x, "movedim"):
        return x.movedim(-3, -1)
    return np.ascontiguousarray(np.moveaxis(x, -3, -1))  # type: ignore[return-value]


def require_multiples(sides: Sequence[int], size: int) -> None:
    """Refuse sides of a grid that blocks of points do not divide.

    Raises:
        DataError: a side is not a multiple of `size`.
    """
    if any(side % size for side in sides):
        raise DataError(
            f"expected fields whose sides are multiples of {size}, got {' x '.join(map(str, sides))}; "
            "interpolate or crop them first"
        )


def block_means(fields: np.ndarray, size: int) -> np.ndarray:
    """Average fields (..., H, W, C) over blocks of points, so that they have `size` points per side.

    The mean over a domain is kept; structures below the new grid are lost.

    Raises:
        DataError: a side is not a multiple of `size`.
    """
    height, width, components = fields.shape[-3:]
    require_multiples((height, width), size)
    if (height, width) == (size, size):
        return fields
    blocks = fields.reshape(*fields.shape[:-3], size, height // size, size, width // size, components)
    return blocks.mean(axis=(-4, -2), dtype=np.float64).astype(fields.dtype)


def validate(fields: np.ndarray, minimum_frames: int = FORECASTING.length, multiple_of: int = 1) -> np.ndarray:
    """Check the fields of one trajectory and return them as float32.

    Args:
        fields: (T, H, W, 2) of a floating dtype; anything but float32 is cast to it.
        minimum_frames: smallest number of frames: one forecasting window by default.
        multiple_of: H and W have to be multiples of this; each model has its own value.

    Returns:
        (T, H, W, 2) float32, contiguous; the given array itself if it was so already.

    Raises:
        DataError: the number of axes, components, dtype, frames or grid is unfit, or a value is not finite.
    """
    fields = np.asarray(fields)
    if fields.ndim != 4:
        raise DataError(
            f"expected fields with four axes (frames, height, width, components), got shape {fields.shape}; "
            "reorder or split the array, for example with numpy.moveaxis"
        )
    if not np.issubdtype(fields.dtype, np.floating):
        raise DataError(
            f"expected fields of a floating dtype, got {fields.dtype}; "
            "convert them to physical values with .astype('float32')"
        )
    frames, height, width, components = fields.shape
    if components != COMPONENTS:
        raise DataError(
            f"expected {COMPONENTS} components on the last axis, got {components} in shape {fields.shape}; "
            "select the two components of the system, or move their axis last"
        )
    if frames < minimum_frames:
        raise DataError(
            f"expected at least {minimum_frames} frames on the first axis, got {frames}; "
            "save more frames of each trajectory"
        )
    if min(height, width) < 2 or height % multiple_of or width % multiple_of:
        rule = f"a grid whose sides are multiples of {multiple_of}" if multiple_of > 1 else "a grid of at least 2 x 2"
        raise DataError(f"expected {rule}, got {height} x {width}; resample or crop the fields")
    bad = int(np.count_nonzero(~np.isfinite(fields)))
    if bad:
        raise DataError(
            f"expected finite fields, got {bad} values that are NaN or infinite; "
            "fill them, or cut the trajectory there, since frames must stay equally spaced in time"
        )
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(fields, dtype=np.float32)
    if single is not fields and not np.isfinite(single).all():
        raise DataError(
            f"expected fields within the range of float32, got a magnitude of {np.abs(fields).max():.3g}; "
            "rescale the fields"
        )
    return single
