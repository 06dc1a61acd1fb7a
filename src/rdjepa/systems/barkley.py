"""Barkley: the excitable medium of textbook spiral waves; only the activator u diffuses.

    du/dt = D_u lap(u) + u (1 - u) (u - (v + b) / a) / epsilon
    dv/dt = u - v

Source: Barkley, A model for fast computer simulation of waves in excitable media, Physica D 49 (1991).

Choices that the paper leaves open are listed in SYSTEM.notes. The Strang splitting has the reaction outside.
"""

from typing import Any

import numpy as np

from rdjepa.pde import screening
from rdjepa.pde.grid import Grid
from rdjepa.pde.random_fields import smooth_noise
from rdjepa.pde.sampling import Box
from rdjepa.pde.shapes import disk, step
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System


def kinetics(u: Any, v: Any, a: Any, b: Any, epsilon: Any) -> tuple[Any, Any]:
    """Return the reaction terms."""
    return u * (1 - u) * (u - (v + b) / a) / epsilon, u - v


def equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    """Return the resting and the fully excited state."""
    return ((0.0, 0.0), (1.0, 1.0))


def broken_wave(
    grid: Grid, p: Coefficients, rng: np.random.Generator, radius: tuple[float, float] = (0.30, 0.42)
) -> np.ndarray:
    """Draw an excited slab that is cut off on one side, within a disk whose radius is in units of the domain length.

    The free end of the slab curls into a spiral; the refractory slab behind it sets the direction of propagation.

    Returns:
        (2, H, W) state, both components between 0 and 1.
    """
    middle = grid.origin + 0.5 * grid.length
    center = middle + grid.length * rng.uniform(-0.15, 0.15, size=2)
    ahead, aside = grid.rotated(center, rng.uniform(0, 2 * np.pi))
    width, length, edge = rng.uniform(6, 14), rng.uniform(15, 30), rng.uniform(1, 3)
    inside = disk(grid, center, rng.uniform(*radius) * grid.length, edge)
    excited = step(ahead, edge) * step(width - ahead, edge) * step(aside, edge)
    refractory = step(ahead + length, edge) * step(-ahead, edge)
    u = excited * inside * (1 + rng.uniform(0, 0.05) * smooth_noise(grid, rng, 4))
    v = (
        p["a"]
        * rng.uniform(0.4, 0.6)
        * refractory
        * inside
        * (1 + rng.uniform(0.05, 0.15) * smooth_noise(grid, rng, 4))
    )
    return np.stack([np.clip(u, 0, 1), np.clip(v, 0, 1)])


SYSTEM = System(
    name="barkley",
    title="Barkley",
    reference="D. Barkley, Physica D 49, 61-70 (1991)",
    coefficients=(
        Coefficient("D_u", "diffusivity of the activator", "length^2/time"),
        Coefficient("D_v", "diffusivity of the inhibitor", "length^2/time"),
        Coefficient("a", "inverse slope of the excitation threshold in v"),
        Coefficient("b", "excitation threshold at rest, times a"),
        Coefficient("epsilon", "ratio of the two time scales"),
    ),
    kinetics=kinetics,
    diffusivity_names=("D_u", "D_v"),
    regimes={
        "id": Regime(
            (
                Box(
                    {
                        "D_u": (0.90, 1.10),
                        "D_v": (0.0, 0.0),
                        "a": (0.72, 0.78),
                        "b": (0.015, 0.028),
                        "epsilon": (0.018, 0.024),
                    }
                ),
            ),
            (InitialCondition("broken wave", broken_wave),),
        ),
    },
    numerics=Numerics(
        length=150.0, dt=1e-2, first=5.0, last=15.0, size=256, stored=128, method="strang", laplacian="spectral"
    ),
    screens=(screening.Finite(10.0), screening.Within(0, -0.1, 1.1)),
    equilibria=equilibria,
    notes=(
        "The substeps are reaction, diffusion, reaction: half the error of the other order at the same cost.",
        "A broken wave is an excited slab of width 6 to 14, cut off on one side, ahead of a refractory slab of length "
        "15 to 30 with v of 40 to 60 % of a; its edges are 1 to 3 wide.",
        "Its center lies within 15 % of the side from the middle, its direction is any, and a disk of radius 30 to "
        "42 % of the side bounds it.",
        "Noise is smooth and multiplies: up to 5 % in u, 5 to 15 % in v, cut off at 4 periods; the background stays at "
        "rest, below the excitation threshold.",
    ),
)
