"""Persistence and linear extrapolation: forecasts without parameters that any trained forecaster should beat."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.simple import Simple


def persistence(context: np.ndarray, horizons: int = HORIZONS) -> np.ndarray:
    """Repeat the newest context frame.

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
        ArgumentError: the context has a single frame.
    """
    if context.shape[1] < 2:
        raise ArgumentError(f"expected a context of at least 2 frames, got {context.shape[1]}; give more frames")
    last = context[:, -1:]
    lead = np.arange(1, horizons + 1, dtype=context.dtype).reshape(1, -1, 1, 1, 1)
    return last + lead * (last - context[:, -2:-1])


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"persistence": persistence, "extrapolation": extrapolation}


class Trivial(Simple):
    """A rule for every point, the base of the two in this module; `predict` is the rule of tensors.

    Attributes:
        rule: function from context (B, 4, H, W, C) to forecast (B, 5, H, W, C).
    """

    rule: Callable[[np.ndarray], np.ndarray]

    def settings(self) -> dict[str, Any]:
        """Return no settings: a rule takes any number of components."""
        return {}

    def in_physical_units(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the rule itself: it is the same in all units."""
        return type(self).rule


class Persistence(Trivial):
    """Repeat the newest frame."""

    rule = staticmethod(persistence)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        (context,) = features
        return context[:, -1:].repeat(1, HORIZONS, 1, 1, 1)


class Extrapolation(Trivial):
    """Continue the last change at a constant rate."""

    rule = staticmethod(extrapolation)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        (context,) = features
        last, before = context[:, -1:], context[:, -2:-1]
        lead = torch.arange(1, HORIZONS + 1, dtype=context.dtype, device=context.device)[:, None, None, None]
        return last + lead * (last - before)
