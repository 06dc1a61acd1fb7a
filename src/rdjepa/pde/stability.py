"""The largest time step for which explicit diffusion is stable, checked before anything is integrated."""

import math

from rdjepa.errors import ArgumentError
from rdjepa.pde.laplacian import STENCILS
from rdjepa.pde.system import Numerics, System

# Where the stability polynomial of each method leaves [-1, 1] on the negative real axis. Strang splitting with walls
# advances diffusion by the midpoint rule; with the spectral Laplacian diffusion is exact.
REAL_AXIS = {"euler": 2.0, "strang": 2.0, "rk4": 2.785293563405282}

DRAWS = 30  # of diffusivities that follow from other numbers


def fastest(system: System, regime: str) -> tuple[float, float]:
    """Return the largest diffusivities of u and v in a regime, of its ranges or, where they are derived, of draws."""
    if any(box.derive for box in system.regime(regime).boxes):
        drawn = [system.diffusivities(system.draw(seed, regime)) for seed in range(DRAWS)]
        return max(first for first, _ in drawn), max(second for _, second in drawn)
    first, second = (system.range(name, regime)[1] for name in system.diffusivity_names)
    return first, second


def diffusive_limit(numerics: Numerics, diffusivities: tuple[float, float]) -> float:
    """Return the largest stable step of the diffusion part alone; infinite where diffusion is integrated exactly."""
    fastest = max(diffusivities)
    if numerics.laplacian == "spectral" or fastest <= 0:
        return math.inf
    return REAL_AXIS[numerics.method] * numerics.grid.spacing**2 / (STENCILS[numerics.laplacian].largest * fastest)


def check_step(numerics: Numerics, diffusivities: tuple[float, float]) -> None:
    """Check that the step is within the diffusive limit and that the diffusivities are finite and not negative.

    Raises:
        ArgumentError: one of them is not; the message gives the limit.
    """
    if not all(math.isfinite(value) and value >= 0 for value in diffusivities):
        found = " and ".join(f"{value:g}" for value in diffusivities)
        raise ArgumentError(f"expected finite diffusivities of u and v, 0 or more, got {found}; correct their ranges")
    limit = diffusive_limit(numerics, diffusivities)
    if numerics.dt > limit:
        raise ArgumentError(
            f"expected dt up to the diffusive limit {limit:.4g} of {numerics.method} with spacing "
            f"{numerics.grid.spacing:.4g} and diffusivity {max(diffusivities):g}, got {numerics.dt:g}; lower dt"
        )
