"""Schnakenberg: a substrate-depletion oscillator, near its oscillation threshold for these ranges.

    du/dt = D_u lap(u) + rho ( a - u + u^2 v )
    dv/dt = D_v lap(v) + rho ( b - u^2 v )

Source: Schnakenberg, Simple chemical reaction systems with limit cycle behavior, J. Theor. Biol. 81 (1979).

Choices that the paper leaves open are listed in SYSTEM.notes. Initial conditions are built as for the Brusselator, as
the paper prescribes.
"""

from typing import Any

from rdjepa.pde import perturbations, screening
from rdjepa.pde.sampling import Box
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System


def kinetics(u: Any, v: Any, rho: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the reaction terms."""
    return rho * (a - u + u * u * v), rho * (b - u * u * v)


def equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    """Return the one equilibrium (a + b, b / (a + b)^2)."""
    total = p["a"] + p["b"]
    return ((total, p["b"] / total**2),)


def _box(a: tuple[float, float], rho: tuple[float, float]) -> Box:
    return Box({"D_u": (1e-4, 3e-4), "D_v": (5e-4, 1.2e-3), "rho": rho, "a": a, "b": (0.84, 0.88)})


_BOXES = (_box((0.03, 0.06), (8.0, 12.0)),)
_INITIAL = (InitialCondition("smooth", perturbations.about(equilibria, perturbations.smooth)),)
_OTHERS = (InitialCondition("rings or ovals", perturbations.about(equilibria, perturbations.rings_or_ovals)),)

SYSTEM = System(
    name="schnakenberg",
    title="Schnakenberg",
    reference="J. Schnakenberg, J. Theor. Biol. 81, 389-400 (1979)",
    coefficients=(
        Coefficient("D_u", "diffusivity of the activator", "length^2/time"),
        Coefficient("D_v", "diffusivity of the substrate", "length^2/time"),
        Coefficient("rho", "reaction rate", "1/time"),
        Coefficient("a", "supply of the activator"),
        Coefficient("b", "supply of the substrate"),
    ),
    kinetics=kinetics,
    diffusivity_names=("D_u", "D_v"),
    regimes={
        "id": Regime(_BOXES, _INITIAL),
        "coeff-ood": Regime(
            tuple(_box(a, rho) for a in ((0.02, 0.03), (0.06, 0.07)) for rho in ((7.0, 8.0), (12.0, 13.0))), _INITIAL
        ),
        "ic-ood": Regime(_BOXES, _OTHERS),
    },
    numerics=Numerics(length=2.0, origin=-1.0, dt=1e-3, first=2.0, last=4.0),
    screens=(
        screening.Finite(10.0),
        screening.MinMeanChange(0.005),
        screening.MinMeanChange(0.002, last=19),
        screening.MinFinalContrast(0.01),
        screening.MaxFineShare(0.05),
    ),
    equilibria=equilibria,
    notes=(
        "Perturbations are relative to the equilibrium, independent for u and v, and keep at least 5 % of it.",
        "Noise of 2 to 10 % cut off at 2.5 to 6 periods, a sine of 1 to 5 %, a Gaussian of 5 to 30 %.",
        "Coefficients out of distribution are a in [0.02, 0.03] or [0.06, 0.07] with rho in [7, 8] or [12, 13].",
        "Initial conditions out of distribution are 1 to 3 rings or 4 to 10 ovals of 10 to 30 %, with weak noise.",
    ),
)
