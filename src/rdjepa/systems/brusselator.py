"""Brusselator: a chemical oscillator; most draws oscillate and would also form Turing patterns.

    du/dt = D_u lap(u) + rho [ A - (B + 1) u + u^2 v ]
    dv/dt = D_v lap(v) + rho [ B u - u^2 v ]

Source: Prigogine, Lefever, Symmetry breaking instabilities in dissipative systems II, J. Chem. Phys. 48 (1968).

Choices that the paper leaves open are listed in SYSTEM.notes. The homogeneous oscillation needs B > 1 + A^2. The
Turing wavelength, 2 pi (D_u D_v)^(1/4) / sqrt(A rho), is only 2.1 to 3.4 cells for nine draws in ten, so initial states
are smooth and trajectories in which that lattice-scale pattern has grown are screened out.
"""

from typing import Any

from rdjepa.pde import perturbations, screening
from rdjepa.pde.sampling import Box
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System


def kinetics(u: Any, v: Any, rho: Any, A: Any, B: Any) -> tuple[Any, Any]:
    """Return the reaction terms."""
    return rho * (A - (B + 1) * u + u * u * v), rho * (B * u - u * u * v)


def equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    """Return the one equilibrium (A, B / A)."""
    return ((p["A"], p["B"] / p["A"]),)


def _box(A: tuple[float, float], B: tuple[float, float], rho: tuple[float, float]) -> Box:
    return Box({"D_u": (1e-4, 3e-4), "D_v": (5e-4, 1.2e-3), "rho": rho, "A": A, "B": B})


_BOXES = (_box((0.7, 1.1), (2.0, 2.6), (8.0, 12.0)),)
_INITIAL = (InitialCondition("smooth", perturbations.about(equilibria, perturbations.smooth)),)
_OTHERS = (InitialCondition("rings or ovals", perturbations.about(equilibria, perturbations.rings_or_ovals)),)

SYSTEM = System(
    name="brusselator",
    title="Brusselator",
    reference="I. Prigogine, R. Lefever, J. Chem. Phys. 48, 1695-1700 (1968)",
    coefficients=(
        Coefficient("D_u", "diffusivity of the activator", "length^2/time"),
        Coefficient("D_v", "diffusivity of the substrate", "length^2/time"),
        Coefficient("rho", "reaction rate", "1/time"),
        Coefficient("A", "supply of the activator"),
        Coefficient("B", "conversion of activator into substrate"),
    ),
    kinetics=kinetics,
    diffusivity_names=("D_u", "D_v"),
    regimes={
        "id": Regime(_BOXES, _INITIAL),
        "coeff-ood": Regime((_box((1.1, 1.2), (2.6, 2.8), (12.0, 13.0)),), _INITIAL),
        "ic-ood": Regime(_BOXES, _OTHERS),
    },
    numerics=Numerics(length=2.0, origin=-1.0, dt=1e-3, first=2.0, last=4.0),
    screens=(
        screening.Finite(20.0),
        screening.MinMeanChange(0.005),
        screening.MinMeanChange(0.002, last=19),
        screening.MinFinalContrast(0.01),
        screening.MaxFineShare(0.05),
    ),
    equilibria=equilibria,
    notes=(
        "Perturbations are relative to the equilibrium, independent for u and v, and keep at least 5 % of it.",
        "Noise of 2 to 10 % cut off at 2.5 to 6 periods, a sine of 1 to 5 %, a Gaussian of 5 to 30 %.",
        "Coefficients out of distribution are A in [1.1, 1.2], B in [2.6, 2.8] and rho in [12, 13].",
        "Initial conditions out of distribution are 1 to 3 rings or 4 to 10 ovals of 10 to 30 %, with weak noise.",
    ),
)
