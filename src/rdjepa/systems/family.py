"""A family of equations: every draw is a two-component reaction-diffusion equation of its own.

    du/dt = D_u lap(u) + sum f_ij u^i v^j + f_p P + f_q Q + f_r R,    i + j <= 3
    dv/dt = D_v lap(v) + sum g_ij u^i v^j + g_p P + g_q Q + g_r R

    P = u v S,    Q = u^2 v S,    R = u^2 S / (1 + n v),    S = 1 / (1 + h u + k u^2)

One kinetics function serves all of them, so the kernel is compiled once. `family_forms` and `family_kinds` have what is
drawn for each kind of equation. A draw that comes near a held-out equation is rejected; where the family is registered,
distance and threshold are set. It is no part of the paper: it is for pretraining on more than five equations.
"""

from typing import Any

import numpy as np

from rdjepa.pde import screening
from rdjepa.pde.grid import Grid
from rdjepa.pde.phase_defects import oscillation, random_pairs
from rdjepa.pde.random_fields import plane_phase, random_wavevector, smooth_noise
from rdjepa.pde.shapes import blob, ring
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System
from rdjepa.systems import family_forms, family_kinds


def kinetics(
    u: Any,
    v: Any,
    f00: Any,
    f10: Any,
    f01: Any,
    f20: Any,
    f11: Any,
    f02: Any,
    f30: Any,
    f21: Any,
    f12: Any,
    f03: Any,
    fp: Any,
    fq: Any,
    fr: Any,
    g00: Any,
    g10: Any,
    g01: Any,
    g20: Any,
    g11: Any,
    g02: Any,
    g30: Any,
    g21: Any,
    g12: Any,
    g03: Any,
    gp: Any,
    gq: Any,
    gr: Any,
    h: Any,
    k: Any,
    n: Any,
) -> tuple[Any, Any]:
    """Return the reaction terms, with one division for all three rational terms."""
    divided = 1 + n * v
    share = u / ((1 + u * (h + k * u)) * divided)
    f = f00 + u * (f10 + u * (f20 + u * f30)) + v * (f01 + u * (f11 + u * f21) + v * (f02 + u * f12 + v * f03))
    g = g00 + u * (g10 + u * (g20 + u * g30)) + v * (g01 + u * (g11 + u * g21) + v * (g02 + u * g12 + v * g03))
    f += share * (divided * v * (fp + fq * u) + fr * u)
    g += share * (divided * v * (gp + gq * u) + gr * u)
    return f, g


def _meaning(name: str) -> str:
    """Return what a rate such as f21 multiplies, in words."""
    side, term = name[0], name[1:]
    what = term.upper() if term in family_forms.RATIONAL else f"u^{term[0]} v^{term[1]}"
    return f"{what} in the rate of {'u' if side == 'f' else 'v'}"


def _state(p: Coefficients, rng: np.random.Generator, grid: Grid, masks: Any) -> np.ndarray:
    """Return base + reach times a mask for u and v, each between -1 and 1, with weak smooth noise, (2, H, W)."""
    level, cutoff = rng.uniform(0.005, 0.03), rng.uniform(3, 8)
    noisy = [np.clip(mask + level * smooth_noise(grid, rng, cutoff), -1, 1) for mask in masks]
    base, reach = (np.array([p[f"u_{i}"], p[f"v_{i}"]])[:, None, None] for i in (0, 1))
    return base + reach * np.stack(noisy)


def _sign(rng: np.random.Generator) -> float:
    return float(rng.choice([-1.0, 1.0]))


def _noise(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    cutoff = rng.uniform(2.5, 9)
    return _state(p, rng, grid, [rng.uniform(0.15, 0.5) * smooth_noise(grid, rng, cutoff) for _ in range(2)])


def _patches(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    def patches() -> np.ndarray:
        noise = smooth_noise(grid, rng, rng.uniform(1.5, 4.5))
        return _sign(rng) * rng.uniform(0.6, 1) / (1 + np.exp(-8 * (noise - rng.uniform(-0.3, 1.0))))

    return _state(p, rng, grid, [patches(), patches() if rng.random() < 0.5 else np.zeros((grid.size,) * 2)])


def _spots(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    def spots() -> np.ndarray:
        count = rng.integers(2, 16)
        width = rng.uniform(0.02, 0.06) * grid.length
        return _sign(rng) * np.max([blob(grid, grid.random_point(rng), width) for _ in range(count)], axis=0)

    return _state(p, rng, grid, [spots(), spots() if rng.random() < 0.5 else np.zeros((grid.size,) * 2)])


def _rings(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    def rings() -> np.ndarray:
        radius, width = rng.uniform(0.06, 0.22, 4) * grid.length, rng.uniform(0.015, 0.04) * grid.length
        shapes = [ring(grid, grid.random_point(rng), each, width) for each in radius[: rng.integers(1, 5)]]
        return _sign(rng) * np.max(shapes, axis=0)

    return _state(p, rng, grid, [rings(), rings() if rng.random() < 0.3 else np.zeros((grid.size,) * 2)])


def _crossed(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    """Draw bands of u across bands of v: every crossing is the end of a wave, which may curl up."""

    def bands() -> np.ndarray:
        bend = rng.uniform(0.2, 0.8) * smooth_noise(grid, rng, 2)
        phase = plane_phase(grid, random_wavevector(rng, 2)) + bend + rng.uniform(0, 2 * np.pi)
        return _sign(rng) * np.tanh(rng.uniform(2, 8) * (np.sin(phase) - rng.uniform(-0.4, 0.8)))

    return _state(p, rng, grid, [bands(), bands()])


def _vortices(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    """Draw states that wind around the base and become spirals where the medium rotates or is excitable."""
    defects = random_pairs(grid, rng, int(rng.integers(1, 4)))
    phase = defects.phase(grid) + rng.uniform(0, 2 * np.pi) + rng.uniform(0, 0.5) * smooth_noise(grid, rng, 3)
    amplitude = rng.uniform(0.6, 1) * defects.amplitude(grid, rng.uniform(0.02, 0.06) * grid.length)
    return _state(p, rng, grid, oscillation(phase, amplitude))


SYSTEM = System(
    name="family",
    title="Family of random equations",
    label="Family",
    reference="drawn at random; no part of the paper",
    coefficients=(
        Coefficient("D_u", "diffusivity of u", "length^2/time"),
        Coefficient("D_v", "diffusivity of v", "length^2/time"),
        *(Coefficient(name, _meaning(name), "1/time") for name in family_forms.RATES),
        Coefficient("h", "saturation of the rational terms, linear in u"),
        Coefficient("k", "saturation of the rational terms, quadratic in u"),
        Coefficient("n", "division of R by v"),
        *(Coefficient(name, f"state from which initial ones depart, {name[0]}") for name in family_forms.LEVELS[:2]),
        *(Coefficient(name, f"how far initial states depart from it, {name[0]}") for name in family_forms.LEVELS[2:]),
    ),
    kinetics=kinetics,
    diffusivity_names=("D_u", "D_v"),
    regimes={
        "id": Regime(
            family_kinds.kinds(kinetics),
            (
                InitialCondition("noise", _noise),
                InitialCondition("patches", _patches),
                InitialCondition("spots", _spots),
                InitialCondition("rings", _rings),
                InitialCondition("crossed bands", _crossed),
                InitialCondition("vortices", _vortices),
            ),
        ),
    },
    numerics=Numerics(length=128 * family_kinds.SPACING, dt=family_kinds.DT, first=2.0, last=41.0),
    screens=(
        screening.Finite(100.0),
        screening.PaceWithin(least=0.03, last=0.01, most=1.2),
        screening.MinStructure(mean=0.3, final=0.15),
        screening.MaxFineShare(0.05),
    ),
    notes=(
        "Time is in saved intervals. The Jacobian over the states of the initial condition has a root mean square of "
        "0.5 to 7 per interval before the next step, its range set by the kind, and a field of that rate diffuses over "
        "0.7 to 3 cells.",
        "D dt / dx^2 is at most 0.2 for both components; where it would be more, time is slowed down, to 0.2 at least.",
        "A state begins at (u_0, v_0) plus or minus (u_1, v_1) times a mask: smooth noise cut off at 2.5 to 9 periods, "
        "patches, 2 to 15 spots, 1 to 4 rings, bands of u across bands of v, or 1 to 3 pairs of vortices; each with "
        "smooth noise of 0.5 to 3 %.",
        "Screens: finite; a mean pace of 0.03 deviations per interval, 0.01 in the later half, at most 1.2 in any; "
        "spatial structure 0.3 of the deviation on average and 0.15 in the last frame; 5 % of variance below 4 cells.",
    ),
)
