"""Forecasts beyond five frames: the newest frames, forecast ones among them, are the next context."""

from collections.abc import Callable

import numpy as np

from rdjepa.checks import Count, checked
from rdjepa.data.readers.sizes import require_memory
from rdjepa.forecasters.base import HORIZONS

EXCESS = 1.0  # how far a stable forecast may leave the range of the support, in widths of that range


def rollout(forecast: Callable[[np.ndarray], np.ndarray], context: np.ndarray, length: int) -> np.ndarray:
    """Repeat a forecast until there are enough frames, each time from the newest: of four, all are forecast ones.

    The first five frames are the forecast itself. A trajectory that is no longer finite is not continued: all frames
    after it are NaN.

    Args:
        forecast: context (B, T, H, W, C) to forecast (B, 5, H, W, C).
        context: (T, H, W, C), or (B, T, H, W, C), consecutive frames, oldest first; every forecast has as many.
        length: number N of frames.

    Returns:
        (N, H, W, C), or (B, N, H, W, C), float32.

    Raises:
        ArgumentError: no whole number of frames.
        InsufficientMemoryError: they do not fit into memory.
    """
    length = checked(length, Count, "frames")
    given = np.asarray(context)
    latest = given if given.ndim == 5 else given[None]
    require_memory(length * latest[:, 0].size * 4, "the rollout")
    made = np.full((len(latest), length, *latest.shape[2:]), np.nan, dtype=np.float32)
    for first in range(0, length, HORIZONS):
        going = np.isfinite(latest).all(axis=(1, 2, 3, 4))
        if not going.any():
            break
        with np.errstate(over="ignore", invalid="ignore"):  # what runs away is left to run, and is said afterwards
            block = np.array(forecast(latest[going]), dtype=np.float32)
        ended = np.logical_or.accumulate(~np.isfinite(block).all(axis=(2, 3, 4)), axis=1)
        block[:, 1:][ended[:, :-1]] = np.nan
        made[going, first : first + HORIZONS] = block[:, : length - first]
        newest = np.full((len(latest), HORIZONS, *latest.shape[2:]), np.nan, dtype=np.float32)
        newest[going] = block
        latest = np.concatenate([latest, newest], axis=1)[:, -latest.shape[1] :]
    return made if given.ndim == 5 else made[0]


def stable_frames(made: np.ndarray, low: np.ndarray, high: np.ndarray) -> int:
    """Return how many frames of a rollout are stable, counted from the first.

    A frame is stable while it and all before it are finite, and no component leaves the range of the support by more
    than `EXCESS` times the width of that range.

    Args:
        made: (N, H, W, C).
        low: (C,) smallest values of the support.
        high: (C,) largest values.
    """
    margin = EXCESS * (np.asarray(high) - low)
    # A comparison with NaN is false, so frames that are not finite are outside.
    inside = ((made >= low - margin) & (made <= high + margin)).all(axis=(1, 2, 3))
    return len(made) if inside.all() else int(inside.argmin())
