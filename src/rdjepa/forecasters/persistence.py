"""The two forecasts that cost nothing: a forecaster that does not beat them has learned nothing."""

import numpy as np

HORIZONS = 5


def persistence(context: np.ndarray, horizons: int = HORIZONS) -> np.ndarray:
    """Repeat the last given frame.

    Args:
        context: (B, frames, H, W, C), any units.
        horizons: number N of forecasts.

    Returns:
        (B, N, H, W, C).
    """
    return np.repeat(context[:, -1:], horizons, axis=1)


def extrapolation(context: np.ndarray, horizons: int = HORIZONS) -> np.ndarray:
    """Continue the last change at a constant rate: x + h (x - x_before).

    Args:
        context: (B, frames, H, W, C) with at least two frames, any units.
        horizons: number N of forecasts.

    Returns:
        (B, N, H, W, C).

    Raises:
        ValueError: the context has a single frame.
    """
    if context.shape[1] < 2:
        raise ValueError(f"expected a context of at least 2 frames, got {context.shape[1]}; give more frames")
    last = context[:, -1:]
    lead = np.arange(1, horizons + 1, dtype=context.dtype).reshape(1, -1, 1, 1, 1)
    return last + lead * (last - context[:, -2:-1])
