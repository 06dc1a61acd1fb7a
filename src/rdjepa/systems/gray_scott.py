"""Gray-Scott: an autocatalyst v consumes a substrate u that is fed to the reactor.

    du/dt = D_u lap(u) + rho [ f (1 - u) - u v^2 ]
    dv/dt = D_v lap(v) + rho [ u v^2 - (f + k) v ]

Source: Pearson, Complex patterns in a simple system, Science 261 (1993). Time is t = tau / 1000 (S1.2 of the paper), so
rho = 1000, the diffusivities are 1000 times 2e-5 and 1e-5, and f and k keep the values of the literature.

Choices that the paper leaves open are listed in SYSTEM.notes. Five-point differences at this resolution are visibly
anisotropic: spots are a few cells wide and become squares.
"""

from typing import Any

import numpy as np

from rdjepa.pde import screening
from rdjepa.pde.grid import Grid
from rdjepa.pde.random_fields import plane_phase, random_wavevector, smooth_noise, white_noise
from rdjepa.pde.sampling import Box, around
from rdjepa.pde.shapes import blob, ring, square
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System


def kinetics(u: Any, v: Any, rho: Any, f: Any, k: Any) -> tuple[Any, Any]:
    """Return the reaction terms."""
    return rho * (f * (1 - u) - u * v * v), rho * (u * v * v - (f + k) * v)


def equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    """Return the state without autocatalyst, and the two with it where they exist."""
    f, loss = p["f"], p["f"] + p["k"]
    # With u = (f + k) / v the first equation becomes (f + k) v^2 - f v + f (f + k) = 0.
    discriminant = f * f - 4 * f * loss * loss
    if discriminant < 0:
        return ((1.0, 0.0),)
    roots = [(f + sign * np.sqrt(discriminant)) / (2 * loss) for sign in (1, -1)]
    return (1.0, 0.0), *((loss / v, v) for v in roots)


def _state(rng: np.random.Generator, seed: np.ndarray) -> np.ndarray:
    """Return u = 1 - a q and v = b q for a seed q between 0 and 1."""
    return np.stack([1 - rng.uniform(0.4, 0.6) * seed, rng.uniform(0.2, 0.35) * seed])


def _smooth_seed(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    noise = smooth_noise(grid, rng, rng.uniform(1.5, 4))
    return 1 / (1 + np.exp(-4 * (noise - rng.uniform(0.3, 1.0))))


def _blob_seed(grid: Grid, rng: np.random.Generator, fewest: int, most: int) -> np.ndarray:
    count = rng.integers(fewest, most + 1)
    blobs = [rng.uniform(0.6, 1.0) * blob(grid, grid.random_point(rng), rng.uniform(0.04, 0.10)) for _ in range(count)]
    return np.max(blobs, axis=0)


def _fourier(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    return _state(rng, _smooth_seed(grid, rng))


def _blobs(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    return _state(rng, _blob_seed(grid, rng, 3, 15))


def _mixture(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    return _state(rng, np.maximum(_smooth_seed(grid, rng), _blob_seed(grid, rng, 1, 5)))


def _noisy(grid: Grid, rng: np.random.Generator, seed: np.ndarray) -> np.ndarray:
    return np.clip(_state(rng, seed) + 0.01 * np.stack([white_noise(grid, rng), white_noise(grid, rng)]), 0, 1)


def _squares(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    shapes = [square(grid, grid.random_point(rng), rng.uniform(0.06, 0.16)) for _ in range(rng.integers(2, 7))]
    return _noisy(grid, rng, np.max(shapes, axis=0))


def _rings(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    shapes = [ring(grid, grid.random_point(rng), rng.uniform(0.15, 0.45), 0.05) for _ in range(rng.integers(1, 4))]
    return _noisy(grid, rng, np.max(shapes, axis=0))


def _stripes(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    phase = plane_phase(grid, random_wavevector(rng, 3)) + rng.uniform(0, 2 * np.pi)
    return _noisy(grid, rng, (np.sin(phase) > 0.5).astype(np.float64))


def _box(f: float, k: float, share: float) -> Box:
    return Box(
        {
            "D_u": around(2e-2, 0.05),
            "D_v": around(1e-2, 0.05),
            "rho": (1000.0, 1000.0),
            "f": around(f, share),
            "k": around(k, share),
        }
    )


# (f, k) of one pattern each. A mixture of small boxes, since most of the rectangle that they span forms no pattern.
_CENTERS = ((0.008, 0.046), (0.020, 0.056), (0.040, 0.060), (0.029, 0.057), (0.058, 0.065))
_OTHER_CENTERS = ((0.014, 0.054), (0.018, 0.051), (0.030, 0.062))
_BOXES = tuple(_box(f, k, 0.06) for f, k in _CENTERS)
_INITIAL = (
    InitialCondition("smooth", _fourier),
    InitialCondition("blobs", _blobs),
    InitialCondition("mixture", _mixture),
)
_OTHER_INITIAL = (
    InitialCondition("squares", _squares),
    InitialCondition("rings", _rings),
    InitialCondition("stripes", _stripes),
)

SYSTEM = System(
    name="gray-scott",
    title="Gray-Scott",
    label="Gray–Scott",
    reference="J. E. Pearson, Complex patterns in a simple system, Science 261, 189-192 (1993)",
    coefficients=(
        Coefficient("D_u", "diffusivity of the substrate", "length^2/time"),
        Coefficient("D_v", "diffusivity of the autocatalyst", "length^2/time"),
        Coefficient("rho", "reaction rate: units of tau per unit of t", "1/time"),
        Coefficient("f", "feed rate per unit of tau"),
        Coefficient("k", "removal rate per unit of tau"),
    ),
    kinetics=kinetics,
    diffusivity_names=("D_u", "D_v"),
    regimes={
        "id": Regime(_BOXES, _INITIAL),
        "coeff-ood": Regime(tuple(_box(f, k, 0.025) for f, k in _OTHER_CENTERS), _INITIAL),
        "ic-ood": Regime(_BOXES, _OTHER_INITIAL),
    },
    numerics=Numerics(length=2.0, origin=-1.0, dt=1e-4, first=0.05, last=1.0),
    screens=(
        screening.Finite(10.0),
        screening.MinMeanChange(0.005),
        screening.MinMeanChange(0.002, last=19),
        screening.MinFinalContrast(0.01),
        screening.MaxFineShare(0.05),
    ),
    equilibria=equilibria,
    notes=(
        "Initial states are u = 1 - a q, v = b q with a in [0.4, 0.6], b in [0.2, 0.35] and a seed q between 0 and 1.",
        "Smooth seeds are a logistic of Gaussian noise, cut off at 1.5 to 4 periods; blobs are 3 to 15 Gaussians.",
        "Coefficients out of distribution lie within 2.5 % of three other known centers, clear of every source box.",
        "Initial conditions out of distribution are hard squares, rings or stripes with 1 % pixel noise.",
    ),
)
