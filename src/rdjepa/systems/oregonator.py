"""Oregonator: two-variable model of the Belousov-Zhabotinsky reaction, an excitable medium, here an oscillatory one.

    du/dt = D_u lap(u) + (rho / epsilon) [ u (1 - u) - f v (u - q) / (u + q) ]
    dv/dt = D_v lap(v) + rho (u - v)

Source: Field, Noyes, Oscillations in chemical systems IV, J. Chem. Phys. 60 (1974), in the reduced form.

Choices that the paper leaves open are listed in SYSTEM.notes. The homogeneous equilibrium is linearly unstable for
all coefficients in range, so noise on the background is kept weak: its growth would fill the domain before the window
ends.
"""

from typing import Any

import numpy as np

from rdjepa.pde import screening
from rdjepa.pde.grid import Grid
from rdjepa.pde.random_fields import smooth_noise
from rdjepa.pde.sampling import Box
from rdjepa.pde.shapes import blob, ring, step
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System


def kinetics(u: Any, v: Any, rho: Any, epsilon: Any, f: Any, q: Any) -> tuple[Any, Any]:
    """Return the reaction terms."""
    return rho / epsilon * (u * (1 - u) - f * v * (u - q) / (u + q)), rho * (u - v)


def equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    """Return the positive equilibrium (u*, u*) and the origin."""
    # With u = v the first equation becomes u^2 + (f + q - 1) u - q (1 + f) = 0.
    half = 0.5 * (p["f"] + p["q"] - 1)
    rest = float(-half + np.sqrt(half**2 + p["q"] * (1 + p["f"])))
    return ((rest, rest), (0.0, 0.0))


def _excited(grid: Grid, p: Coefficients, rng: np.random.Generator, excited: np.ndarray) -> np.ndarray:
    """Return the equilibrium with weak relative noise, (2, H, W), excited where the mask is near 1."""
    rest = equilibria(p)[0][0]
    level, cutoff = rng.uniform(0.001, 0.008), rng.uniform(3, 6)
    u, v = (rest * (1 + level * smooth_noise(grid, rng, cutoff)) for _ in range(2))
    return np.stack([u + rng.uniform(0.5, 0.9) * excited, v])


def _blobs(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    spots = [blob(grid, grid.random_point(rng), rng.uniform(0.06, 0.15)) for _ in range(rng.integers(1, 6))]
    return _excited(grid, p, rng, np.max(spots, axis=0))


def _rings(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    rings = [
        ring(grid, grid.random_point(rng), rng.uniform(0.15, 0.30), rng.uniform(0.04, 0.08))
        for _ in range(rng.integers(1, 3))
    ]
    return _excited(grid, p, rng, np.max(rings, axis=0))


def _broken_front(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    ahead, aside = grid.rotated(grid.random_point(rng), rng.uniform(0, 2 * np.pi))
    width, length = rng.uniform(0.05, 0.10), rng.uniform(0.4, 0.7)
    beside = step(aside + length, 0.04) * step(length - aside, 0.04)
    front = np.exp(-0.5 * (ahead / width) ** 2) * beside * step(aside, 0.04)
    behind = step(-ahead - width, 0.04) * step(ahead + 4 * width, 0.04) * beside
    state = _excited(grid, p, rng, front)
    state[1] += rng.uniform(0.1, 0.25) * behind
    return state


SYSTEM = System(
    name="oregonator",
    title="Oregonator",
    reference="R. J. Field, R. M. Noyes, J. Chem. Phys. 60, 1877-1884 (1974)",
    coefficients=(
        Coefficient("D_u", "diffusivity of the activator", "length^2/time"),
        Coefficient("D_v", "diffusivity of the catalyst", "length^2/time"),
        Coefficient("rho", "reaction rate", "1/time"),
        Coefficient("epsilon", "ratio of the two time scales"),
        Coefficient("f", "stoichiometric factor"),
        Coefficient("q", "ratio of rate constants"),
    ),
    kinetics=kinetics,
    diffusivity_names=("D_u", "D_v"),
    regimes={
        "id": Regime(
            (
                Box(
                    {
                        "D_u": (4e-5, 1.6e-4),
                        "D_v": (1e-5, 8e-5),
                        "rho": (0.70, 1.40),
                        "epsilon": (0.040, 0.080),
                        "f": (1.10, 1.55),
                        "q": (0.0015, 0.0045),
                    }
                ),
            ),
            (
                InitialCondition("blobs", _blobs),
                InitialCondition("rings", _rings),
                InitialCondition("broken front", _broken_front),
            ),
        ),
    },
    numerics=Numerics(length=2.0, origin=-1.0, dt=2e-4, first=0.2, last=0.8),
    screens=(
        screening.Finite(10.0),
        screening.MinMeanChange(0.01),
        screening.Within(0, 0.0, 1.2),
        screening.Within(1, 0.0, 1.0),
        screening.MaxFineShare(0.05),
    ),
    equilibria=equilibria,
    notes=(
        "Excitation raises u by 0.5 to 0.9 in 1 to 5 blobs (0.06 to 0.15), 1 or 2 rings (radius 0.15 to 0.30, width "
        "0.04 to 0.08) or a front (width 0.05 to 0.10) that is cut off on one side.",
        "Behind a front v is raised by 0.1 to 0.25 over four widths; v stays below 0.5, where the step is stable.",
        "Noise is relative, 0.1 to 0.8 %, cut off at 3 to 6 periods: more would fill the unstable background.",
    ),
)
