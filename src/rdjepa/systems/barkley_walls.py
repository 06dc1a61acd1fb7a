"""Barkley between walls: the boundary study's three variants, Neumann, Robin and Dirichlet (S1.5).

Kinetics and coefficients are those of `barkley`. The three share their random streams, so before screening the same
index has the same coefficients and the same initial state; the periodic system has streams of its own. Choices that
the paper leaves open are listed in the notes.
"""

from dataclasses import replace

import numpy as np

from rdjepa.pde.boundary import Boundary
from rdjepa.pde.grid import Grid
from rdjepa.pde.system import Coefficients, InitialCondition, Numerics, Regime, System
from rdjepa.systems import barkley

COLLAR = 10  # cells next to a wall that are in the resting state initially
RISE = 10  # cells behind the collar over which the wave rises to its full amplitude
KAPPA = 0.15


def _collar(grid: Grid) -> np.ndarray:
    """Return a mask (H, W): 0 within `COLLAR` cells of a wall, 1 beyond another `RISE`, twice differentiable between.

    Then the initial state satisfies all three wall conditions, and its Laplacian has no jump.
    """
    cells = np.arange(grid.size)
    inside = np.minimum(cells, cells[::-1]) - COLLAR + 1
    s = np.clip(inside / (RISE + 1), 0.0, 1.0)
    profile = s**3 * (10 - 15 * s + 6 * s**2)
    return profile[:, None] * profile


def _broken_wave(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    return _collar(grid) * barkley.broken_wave(grid, p, rng, radius=(0.25, 0.33))


def _between(boundary: Boundary) -> System:
    numerics: Numerics = replace(barkley.SYSTEM.numerics, laplacian=2, boundary=boundary)
    return replace(
        barkley.SYSTEM,
        name=f"barkley-{boundary.kind}",
        title=f"Barkley, {boundary.kind.capitalize()} walls",
        label=boundary.kind.capitalize(),
        family="barkley-walls",
        regimes={
            "id": Regime(
                barkley.SYSTEM.regime("id").boxes, (InitialCondition("broken wave with collar", _broken_wave),)
            )
        },
        numerics=numerics,
        notes=(
            "A ghost cell holds g times its neighbor inside: g = 1 (Neumann), (2 - kappa h) / (2 + kappa h) (Robin), "
            "-1 (Dirichlet).",
            "The substeps are reaction, diffusion, reaction, each by the explicit midpoint rule; only u diffuses.",
            "The broken wave is that of the periodic system within a disk of radius 25 to 33 % of the side.",
            "A mask brings both components to rest within 10 cells of the walls and rises to 1 over the next 10.",
        ),
    )


NEUMANN = _between(Boundary("neumann"))
ROBIN = _between(Boundary("robin", KAPPA))
DIRICHLET = _between(Boundary("dirichlet"))
