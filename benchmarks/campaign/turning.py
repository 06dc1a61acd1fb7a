"""Turning waves: a linear system on a small grid, whose trajectories take milliseconds."""

import numpy as np

from rdjepa.pde.system import Box, Coefficient, InitialCondition, Numerics, Regime, System


def turning(u, v, omega):
    return omega * v, -omega * u


def waves(grid, p, rng):
    x, y = grid.coordinates()
    phase = 2 * np.pi * (x + y) / grid.length + rng.uniform(0, 2 * np.pi)
    return np.stack([np.sin(phase), np.cos(phase)])


SYSTEM = System(
    name="turning",
    title="Turning waves",
    reference="none",
    coefficients=(Coefficient("D", "diffusivity"), Coefficient("omega", "rate")),
    kinetics=turning,
    diffusivity_names=("D", "D"),
    regimes={"id": Regime((Box({"D": (0.01, 0.02), "omega": (1.0, 2.0)}),), (InitialCondition("waves", waves),))},
    numerics=Numerics(length=6.0, dt=0.002, first=0.1, last=1.6, size=64, stored=64, frames=14),
    screens=(),
)
