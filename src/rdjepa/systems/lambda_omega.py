"""Lambda-Omega: an oscillatory medium whose growth and rotation rates depend on the amplitude r alone.

    du/dt = D_u lap(u) + rho [ alpha (1 - r^2) u - (omega_0 - beta r^2) v ]
    dv/dt = D_v lap(v) + rho [ (omega_0 - beta r^2) u + alpha (1 - r^2) v ],    r^2 = u^2 + v^2

Source: Sherratt, On the evolution of periodic plane waves in reaction-diffusion systems of lambda-omega type,
SIAM J. Appl. Math. 54 (1994).

Choices that the paper leaves open are listed in SYSTEM.notes.
"""

from typing import Any

import numpy as np

from rdjepa.pde import screening
from rdjepa.pde.grid import Grid
from rdjepa.pde.phase_defects import oscillation, random_pairs
from rdjepa.pde.random_fields import plane_phase, random_wavevector, smooth_noise
from rdjepa.pde.sampling import Box
from rdjepa.pde.shapes import blob
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System


def kinetics(u: Any, v: Any, rho: Any, alpha: Any, omega_0: Any, beta: Any) -> tuple[Any, Any]:
    """Return the reaction terms."""
    squared = u * u + v * v
    growth = alpha * (1 - squared)
    rotation = omega_0 - beta * squared
    return rho * (growth * u - rotation * v), rho * (rotation * u + growth * v)


def equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    """Return the resting state; every other homogeneous state rotates."""
    return ((0.0, 0.0),)


def _with_noise(grid: Grid, rng: np.random.Generator, state: np.ndarray) -> np.ndarray:
    return state + rng.uniform(0.03, 0.10) * np.stack([smooth_noise(grid, rng, 4) for _ in range(2)])


def _spirals(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    defects = random_pairs(grid, rng, int(rng.integers(1, 3)))
    arms = rng.choice([-1.0, 1.0]) * rng.uniform(2, 8) * defects.nearest(grid)
    # The width over which the amplitude recovers from a zero.
    core = np.sqrt(2 * p["D_u"] / (p["rho"] * p["alpha"]))
    phase = defects.phase(grid) + arms + rng.uniform(0, 2 * np.pi)
    return _with_noise(grid, rng, oscillation(phase, defects.amplitude(grid, core)))


def _targets(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    centers = [grid.random_point(rng) for _ in range(rng.integers(1, 3))]
    distance = np.min([grid.distance(center) for center in centers], axis=0)
    turns = rng.choice([-1.0, 1.0]) * rng.uniform(1, 3)
    phase = rng.uniform(0, 2 * np.pi) + 2 * np.pi * turns * distance / (0.5 * grid.length)
    dip = np.max([blob(grid, center, rng.uniform(0.08, 0.20)) for center in centers], axis=0)
    return _with_noise(grid, rng, oscillation(phase, 1 - rng.uniform(0.3, 0.8) * dip))


def _waves(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    phase = plane_phase(grid, random_wavevector(rng, 3)) + rng.uniform(0, 2 * np.pi)
    return _with_noise(grid, rng, oscillation(phase + rng.uniform(0.1, 0.5) * smooth_noise(grid, rng, 3)))


SYSTEM = System(
    name="lambda-omega",
    title="Lambda-Omega",
    label="Lambda–Omega",
    reference="J. A. Sherratt, SIAM J. Appl. Math. 54, 1374-1385 (1994)",
    coefficients=(
        Coefficient("D_u", "diffusivity of u", "length^2/time"),
        Coefficient("D_v", "diffusivity of v", "length^2/time"),
        Coefficient("rho", "reaction rate", "1/time"),
        Coefficient("alpha", "attraction to unit amplitude"),
        Coefficient("omega_0", "rotation rate at rest"),
        Coefficient("beta", "slowing of the rotation with squared amplitude"),
    ),
    kinetics=kinetics,
    diffusivity_names=("D_u", "D_v"),
    regimes={
        "id": Regime(
            (
                Box(
                    {
                        "D_u": (2.5e-4, 7.5e-4),
                        "D_v": (2.5e-4, 7.5e-4),
                        "rho": (0.85, 1.20),
                        "alpha": (0.75, 1.25),
                        "omega_0": (0.85, 1.20),
                        "beta": (0.20, 0.70),
                    }
                ),
            ),
            (
                InitialCondition("spiral defects", _spirals),
                InitialCondition("target waves", _targets),
                InitialCondition("oblique waves", _waves),
            ),
        ),
    },
    numerics=Numerics(length=2.0, origin=-1.0, dt=2e-3, first=3.0, last=12.0),
    screens=(screening.Finite(10.0), screening.MinChangeShare(0.02, 0.9)),
    equilibria=equilibria,
    notes=(
        "The two diffusivities are drawn independently.",
        "Spirals are 1 or 2 neutral pairs whose arms wind by 2 to 8 radians per unit distance from the nearest core.",
        "Targets have 1 or 2 centers, 1 to 3 turns over half a side, and an amplitude dip of 30 to 80 % at a center.",
        "Oblique waves have up to 3 periods along a side and smooth phase noise of 0.1 to 0.5 radians.",
        "Every family gets smooth noise of 3 to 10 %, cut off at 4 periods.",
    ),
)
