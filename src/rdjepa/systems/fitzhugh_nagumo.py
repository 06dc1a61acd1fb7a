"""FitzHugh-Nagumo: an activator u and an inhibitor v that diffuses far faster, which form Turing labyrinths.

    du/dt = gamma_u lap(u) + u - u^3 - v + alpha
    dv/dt = gamma_v lap(v) + beta (u - v)

Sources: FitzHugh, Biophysical Journal 1 (1961); Nagumo, Arimoto, Yoshizawa, Proceedings of the IRE 50 (1962).

Choices that the paper leaves open are listed in SYSTEM.notes. The step cannot be raised: with gamma_v = 100 the
fourth-order Laplacian and the Runge-Kutta method are stable up to dt = 0.0026.
"""

from typing import Any

import numpy as np

from rdjepa.pde import screening
from rdjepa.pde.grid import Grid
from rdjepa.pde.random_fields import smooth_noise, white_noise
from rdjepa.pde.sampling import Box
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System


def kinetics(u: Any, v: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """Return the reaction terms."""
    return u - u * u * u - v + alpha, beta * (u - v)


def equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    """Return the one equilibrium, u = v with u^3 = alpha."""
    u = float(np.cbrt(p["alpha"]))
    return ((u, u),)


def _white(grid: Grid, rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    return np.stack([rng.uniform(low, high) * white_noise(grid, rng) for _ in range(2)])


def _noise(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    return _white(grid, rng, 0.04, 0.06)


def _strong_noise(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    return _white(grid, rng, 0.08, 0.12)


def _correlated_noise(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    cutoff = rng.uniform(4, 10)
    return np.stack([rng.uniform(0.04, 0.06) * smooth_noise(grid, rng, cutoff) for _ in range(2)])


def _box(alpha: tuple[float, float], beta: tuple[float, float]) -> Box:
    return Box({"gamma_u": (1.0, 1.0), "gamma_v": (100.0, 100.0), "alpha": alpha, "beta": beta})


_BOXES = (_box((0.005, 0.018), (0.22, 0.35)),)
_INITIAL = (InitialCondition("white noise", _noise),)

SYSTEM = System(
    name="fitzhugh-nagumo",
    title="FitzHugh-Nagumo",
    label="FitzHugh–Nagumo",
    reference="R. FitzHugh, Biophys. J. 1, 445 (1961); J. Nagumo, S. Arimoto, S. Yoshizawa, Proc. IRE 50, 2061 (1962)",
    coefficients=(
        Coefficient("gamma_u", "diffusivity of the activator", "length^2/time"),
        Coefficient("gamma_v", "diffusivity of the inhibitor", "length^2/time"),
        Coefficient("alpha", "constant stimulus", "1/time"),
        Coefficient("beta", "rate of the inhibitor", "1/time"),
    ),
    kinetics=kinetics,
    diffusivity_names=("gamma_u", "gamma_v"),
    regimes={
        "id": Regime(_BOXES, _INITIAL),
        "coeff-ood": Regime((_box((0.018, 0.024), (0.35, 0.40)),), _INITIAL),
        "ic-ood": Regime(
            _BOXES, (InitialCondition("loud noise", _strong_noise), InitialCondition("smooth noise", _correlated_noise))
        ),
    },
    numerics=Numerics(length=128.0, dt=2e-3, first=1.0, last=40.0, method="rk4", laplacian=4),
    screens=(screening.Finite(10.0), screening.MinFinalContrast(0.01), screening.MaxFineShare(0.05)),
    equilibria=equilibria,
    notes=(
        "A Gaussian random field is read as independent noise at each pixel, separately for u and v.",
        "Frames are saved at t = 1, 2, ..., 40: the growth of the pattern is in the window, the raw noise is not.",
        "Coefficients out of distribution are alpha in [0.018, 0.024] with beta in [0.35, 0.40]; with beta in "
        "[0.18, 0.22] three of four draws end in uniform oscillation.",
        "Initial conditions out of distribution are twice as loud, or smooth with a cutoff of 4 to 10 periods.",
    ),
)
