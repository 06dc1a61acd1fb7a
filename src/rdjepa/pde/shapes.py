"""Localized shapes on a periodic grid: masks between 0 and 1, each (H, W), with lengths in the unit of the domain."""

import numpy as np

from rdjepa.pde.grid import Grid


def step(distance: np.ndarray, width: float) -> np.ndarray:
    """Return a smooth step from 0 (negative distance) to 1 (positive distance) with a tanh profile of that width."""
    return 0.5 * (1 + np.tanh(distance / width))


def blob(grid: Grid, center: np.ndarray, sigma: float) -> np.ndarray:
    """Return a Gaussian of unit height and standard deviation `sigma`."""
    return np.exp(-0.5 * (grid.distance(center) / sigma) ** 2)


def oval(grid: Grid, center: np.ndarray, sigmas: tuple[float, float], angle: float) -> np.ndarray:
    """Return a Gaussian of unit height with one standard deviation along `angle` (radians) and another across."""
    along, across = grid.rotated(center, angle)
    return np.exp(-0.5 * ((along / sigmas[0]) ** 2 + (across / sigmas[1]) ** 2))


def ring(grid: Grid, center: np.ndarray, radius: float, width: float) -> np.ndarray:
    """Return a ring of unit height with Gaussian profile of standard deviation `width`."""
    return np.exp(-0.5 * ((grid.distance(center) - radius) / width) ** 2)


def square(grid: Grid, center: np.ndarray, half_width: float) -> np.ndarray:
    """Return a hard-edged square, 1 inside."""
    x, y = grid.offsets(center)
    return ((np.abs(x) <= half_width) & (np.abs(y) <= half_width)).astype(np.float64)


def disk(grid: Grid, center: np.ndarray, radius: float, width: float) -> np.ndarray:
    """Return a disk with a smooth edge, 1 inside."""
    return step(radius - grid.distance(center), width)
