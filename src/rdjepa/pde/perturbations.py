"""Relative perturbations of a homogeneous equilibrium, for equations whose patterns grow out of one."""

from collections.abc import Callable

import numpy as np

from rdjepa.pde.grid import Grid
from rdjepa.pde.random_fields import sinusoid, smooth_noise
from rdjepa.pde.shapes import blob, oval, ring
from rdjepa.pde.system import Coefficients


def smooth(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    """Draw a low-pass random field plus a weak sine plus a Gaussian of either sign, (H, W) (S1.2, Brusselator)."""
    noise = rng.uniform(0.02, 0.10) * smooth_noise(grid, rng, rng.uniform(2.5, 6))
    wave = rng.uniform(0.01, 0.05) * sinusoid(grid, rng, 2)
    bump = _signed(rng, 0.05, 0.30) * blob(grid, grid.random_point(rng), rng.uniform(0.12, 0.30))
    return noise + wave + bump


def rings_or_ovals(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    """Draw 1 to 3 rings or 4 to 10 oval Gaussians of either sign, with weak noise, (H, W)."""
    if rng.random() < 0.5:
        parts = [
            _signed(rng, 0.1, 0.3) * ring(grid, grid.random_point(rng), rng.uniform(0.2, 0.5), rng.uniform(0.06, 0.12))
            for _ in range(rng.integers(1, 4))
        ]
    else:
        parts = [
            _signed(rng, 0.1, 0.3)
            * oval(grid, grid.random_point(rng), tuple(rng.uniform(0.05, 0.25, 2)), rng.uniform(0, np.pi))
            for _ in range(rng.integers(4, 11))
        ]
    return np.sum(parts, axis=0) + rng.uniform(0.005, 0.02) * smooth_noise(grid, rng, 8)


def applied(equilibrium: tuple[float, float], relative_u: np.ndarray, relative_v: np.ndarray) -> np.ndarray:
    """Return the equilibrium times (1 + relative perturbation), kept above 5 % of the equilibrium, (2, H, W)."""
    factors = np.maximum(1 + np.stack([relative_u, relative_v]), 0.05)
    return np.array(equilibrium)[:, None, None] * factors


def about(
    equilibria: Callable[[Coefficients], tuple[tuple[float, float], ...]],
    draw: Callable[[Grid, np.random.Generator], np.ndarray],
) -> Callable[[Grid, Coefficients, np.random.Generator], np.ndarray]:
    """Return what builds initial states (2, H, W): the first equilibrium with a perturbation of u and one of v.

    Args:
        equilibria: of the coefficients.
        draw: draws a relative perturbation (H, W).
    """

    def build(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
        return applied(equilibria(p)[0], draw(grid, rng), draw(grid, rng))

    return build


def _signed(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.choice([-1.0, 1.0]) * rng.uniform(low, high))
