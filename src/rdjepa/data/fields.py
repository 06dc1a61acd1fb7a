"""Field arrays: the order of their axes, and their components."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from rdjepa.errors import DataError

COMPONENTS = 2

Array = TypeVar("Array", bound=Any)


def array_of(given: Any) -> Any:
    """Return a tensor as an array of NumPy; anything else as it is.

    Raises:
        DataError: a tensor without a value at every point: a sparse one, or one of shape alone.
    """
    if not hasattr(given, "detach"):
        return given
    if str(given.layout) != "torch.strided" or given.device.type == "meta":
        got = "one on the device meta" if given.device.type == "meta" else f"one of layout {given.layout}"
        raise DataError(f"expected a dense tensor with its values, got {got}; give an array, or call .to_dense() on it")
    given = given.detach().cpu()
    return (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()  # NumPy has no bfloat16


def channels_first(x: Array) -> Array:
    """Turn (..., H, W, C), the order on disk, into (..., C, H, W), the order of the models.

    A NumPy array comes back contiguous; a tensor comes back as a view.
    """
    return _moved(x, -1, -3)


def channels_last(x: Array) -> Array:
    """Turn (..., C, H, W) into (..., H, W, C): the inverse of `channels_first`."""
    return _moved(x, -3, -1)


def _moved(x: Any, source: int, target: int) -> Any:
    return x.movedim(source, target) if hasattr(x, "movedim") else np.ascontiguousarray(np.moveaxis(x, source, target))


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

    The mean over a domain is kept; structures below the new grid are lost. Means of whole numbers are float32.

    Raises:
        DataError: a side is not a multiple of `size`.
    """
    height, width, components = fields.shape[-3:]
    require_multiples((height, width), size)
    if (height, width) == (size, size):
        return fields
    rows, columns = height // size, width // size
    blocks = fields.reshape(*fields.shape[:-3], size, rows, size, columns, components)
    total = np.zeros((*fields.shape[:-3], size, size, components))
    for row, column in np.ndindex(rows, columns):  # `mean` over both axes takes six times as long
        total += blocks[..., row, :, column, :]
    return (total / (rows * columns)).astype(fields.dtype if fields.dtype.kind == "f" else np.float32)


def with_second(fields: np.ndarray) -> np.ndarray:
    """Return one component (T, H, W, 1) as two, (T, H, W, 2): beside each frame stands the frame before it.

    The models take the state of a system, which one component of two is not: the same u may rise or fall. What u was
    one frame earlier tells which, and by Takens' theorem it generically replaces the component that was not measured.
    The pair also resembles those of the pretraining systems, where the second component follows the first with a delay;
    a copy of u would add nothing, and zeros would be a component without scale. No frame is lost, and no window sees
    frames that follow it: before the first frame stands its linear continuation backwards, 2 u(0) - u(1).

    Raises:
        DataError: there is only one frame.
    """
    if len(fields) < 2:
        raise DataError("expected at least 2 frames of one component, got 1; give more, or a second component")
    both = np.repeat(fields, 2, axis=-1)
    both[0, ..., 1] = (2 * fields[0] - fields[1])[..., 0]
    both[1:, ..., 1] = fields[:-1, ..., 0]
    return both


def measured(fields: np.ndarray) -> int:
    """Return how many components of (T, H, W, C) were measured: one where the second is what `with_second` makes."""
    several = len(fields) > 1 and fields.shape[-1] == COMPONENTS
    made = several and np.array_equal(fields[1:, ..., 1], fields[:-1, ..., 0])
    return 1 if made else fields.shape[-1]
