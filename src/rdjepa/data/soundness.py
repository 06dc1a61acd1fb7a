"""What every array that a user gives is checked for, and the sentences that refuse it."""

import numpy as np

from rdjepa.data.fields import COMPONENTS
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError

NEGLIGIBLE = 1e-6  # of the magnitude: smaller differences are rounding in float32
SMALLEST_SPREAD = 1e-5  # of a component; its standard deviation is divided by as if it were at least 1e-6 (S2.6)
DIGITS = 1e3  # steps of float32 in the standard deviation of a component, below which a note is due
MIXED = (
    "expected trajectories of as many measured components, got some of one and some of two; choose one of each with "
    "--components (components=), or give them apart"
)
UNEVEN = 0.02  # largest difference between intervals, of their median


def validate(fields: np.ndarray) -> np.ndarray:
    """Check the fields of one trajectory, at least one forecasting window long, and return them as float32.

    Args:
        fields: (T, H, W, 2) of a floating dtype; anything but float32 is cast to it.

    Returns:
        (T, H, W, 2) float32, contiguous; the given array itself if it was so already.

    Raises:
        DataError: the number of axes, components, dtype, frames or grid is unfit, or a value is not finite.
    """
    fields = np.asarray(fields)
    require_axes(fields)
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
    if frames < FORECASTING.length:
        raise DataError(
            f"expected at least {FORECASTING.length} frames on the first axis, got {frames}; "
            "save more frames of each trajectory"
        )
    require_grid(height, width)
    return single(fields)


def require_axes(fields: np.ndarray) -> None:
    """Refuse an array that is not (T, H, W, C).

    Raises:
        DataError: another number of axes.
    """
    if fields.ndim != 4:
        raise DataError(
            f"expected fields with four axes (frames, height, width, components), got shape {fields.shape}; "
            "reorder or split the array, for example with numpy.moveaxis"
        )


def require_grid(height: int, width: int) -> None:
    """Refuse a line of points.

    Raises:
        DataError: a side of one point.
    """
    if min(height, width) < 2:
        raise DataError(f"expected a grid of at least 2 x 2, got {height} x {width}; resample or crop the fields")


def single(fields: np.ndarray, start: int = 0) -> np.ndarray:
    """Return finite real numbers as float32, contiguous; the given array itself if it was so already.

    Args:
        fields: (T, ...).
        start: number of its first frame in the trajectory of which it is a piece.

    Raises:
        DataError: a value is NaN, infinite, or beyond float32.
    """
    if fields.dtype.kind == "f":
        finite = np.isfinite(fields)
        if not finite.all():
            bad = np.count_nonzero(~finite.reshape(len(fields), -1), axis=1)
            first = int(np.flatnonzero(bad)[0])
            raise DataError(
                f"expected finite fields, got {bad[first]} values that are NaN or infinite in frame {start + first}, "
                "the first with such; fill them, or cut the trajectory there, since frames must stay equally spaced "
                "in time"
            )
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(fields, dtype=np.float32)
    if converted is not fields and not np.isfinite(converted).all():
        raise DataError(
            f"expected fields within the range of float32, got a magnitude of {np.abs(fields).max():.3g}; "
            "rescale the fields"
        )
    return converted


def require_change(fields: np.ndarray, where: str = "all frames") -> None:
    """Refuse fields (T, H, W, C) with a component that is constant, to the precision of its numbers.

    Args:
        fields: of `where`.
        where: the frames that these are, in words.

    Raises:
        DataError: a component has one value everywhere, or differs from it in the last digits only, or by less than
            standardization can divide by.
    """
    ranges = zip(fields.min((0, 1, 2)).tolist(), fields.max((0, 1, 2)).tolist(), strict=True)
    for component, (low, high) in enumerate(ranges):
        if reason := why_constant(component, low, high, where):
            raise DataError(reason)


def why_constant(component: object, low: float, high: float, where: str = "all frames") -> str:
    """Return why a component between these values in some frames does not vary, in one sentence; "" where it does."""
    if high - low <= NEGLIGIBLE * max(abs(low), abs(high)):
        return (
            f"expected components that vary, got component {component} between {low:.9g} and {high:.9g} in {where}; "
            "choose other components, or trajectories in which something happens"
            + ", or subtract a constant if these differences are real"
            * (low != high)
        )
    if high - low < SMALLEST_SPREAD:
        return (
            f"expected components that vary by at least {SMALLEST_SPREAD:g}, got component {component} between "
            f"{low:.3g} and {high:.3g} in {where}; give the fields in a smaller unit"
        )
    return ""


def why_repeated(repeated: int, total: int) -> str:
    """Return why trajectories of which some are the same cannot be used together, in one sentence."""
    return f"expected trajectories that differ, got {repeated} of {total} that repeat another; give each once"


def why_rounded(component: object, magnitude: float, spread: float) -> str:
    """Return that a component is coarse in float32, in one sentence; "" where it keeps three digits of its spread."""
    digits = spread / (float(np.finfo(np.float32).eps) * magnitude) if magnitude else np.inf
    if digits >= DIGITS:
        return ""
    return (
        f"component {component} varies by {spread:.2g} in values up to {magnitude:.3g}, so float32 has {digits:.0f} "
        "steps for it; subtract a constant from the data first"
    )


def is_even(values: np.ndarray) -> bool:
    """Return whether finite numbers (n,), such as times, follow each other at one distance, up to their rounding."""
    values = np.asarray(values)
    steps = np.diff(values.astype(np.float64))
    # they are often stored as float32, whose rounding may exceed a hundredth of a short interval
    with np.errstate(over="ignore"):
        kind = np.float32 if (values == values.astype(np.float32)).all() else np.float64
    rounding = 4 * float(np.finfo(kind).eps) * float(abs(values.astype(np.float64)).max(initial=0))
    return not len(steps) or bool(np.ptp(steps) <= UNEVEN * abs(float(np.median(steps))) + rounding)


def require_times(times: np.ndarray, frames: int) -> None:
    """Refuse times that are not one real number per frame, finite, increasing and equally spaced.

    Raises:
        DataError: one of these fails.
    """
    times = np.asarray(times)
    if times.shape != (frames,):
        raise DataError(
            f"expected one time per frame, got times of shape {times.shape} for {frames} frames; "
            "give each frame its time, or leave times out"
        )
    if times.dtype.kind not in "fiu":
        raise DataError(
            f"expected times that are real numbers, got {times.dtype}; give those since the first frame in one unit, "
            "or --interval (interval=)"
        )
    if not np.isfinite(times).all():
        raise DataError("expected finite times, got NaN or infinity; correct them, or give --interval (interval=)")
    steps = np.diff(times.astype(np.float64))
    if len(steps) and steps.min() <= 0:
        where = int(np.argmin(steps))
        raise DataError(
            f"expected times that increase, got {times[where]:g} and then {times[where + 1]:g} in frame {where + 1}; "
            "sort the frames, drop repeated ones, or give --interval (interval=)"
        )
    if not is_even(times):
        raise DataError(
            f"expected equally spaced times, got intervals from {steps.min():g} to {steps.max():g}; "
            "interpolate in time, cut out an even part, or give --interval (interval=) if the times are wrong"
        )
