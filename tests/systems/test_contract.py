"""What every system promises, whatever its equation."""

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import sympy

from rdjepa.pde.grid import Grid
from rdjepa.pde.laplacian import STENCILS
from rdjepa.pde.sampling import Box
from rdjepa.pde.screening import Finite
from rdjepa.pde.system import Coefficient, InitialCondition, Numerics, Regime, System
from rdjepa.systems import get, names

SOURCES = ("gray-scott", "fitzhugh-nagumo", "brusselator", "ginzburg-landau", "schnakenberg")
HELD_OUT = ("lambda-omega", "barkley", "oregonator")
DECAY = System(  # as short as a user's system can be
    name="decay",
    title="Decay",
    reference="of this test",
    coefficients=(Coefficient("D", "diffusivity"), Coefficient("k", "rate")),
    kinetics=lambda u, v, k: (-k * u, k * u - v),
    diffusivity_names=("D", "D"),
    regimes={
        "id": Regime(
            (Box({"D": (0.01, 0.02), "k": (0.5, 1.0)}),),
            (InitialCondition("noise", lambda grid, p, rng: rng.random((2, grid.size, grid.size))),),
        )
    },
    numerics=Numerics(length=1.0, dt=1e-4, first=0.0, last=0.02, size=32, stored=32, frames=12),
    screens=(Finite(),),
)
SYSTEMS = [*map(get, names()), DECAY]
EXPLICIT = [system for system in SYSTEMS if system.numerics.laplacian != "spectral"]
each_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


def regimes(systems):
    """Every regime of some systems, as the arguments of a test."""
    cells = [
        pytest.param(system, regime, id=f"{system.name}-{regime}") for system in systems for regime in system.regimes
    ]
    return pytest.mark.parametrize(("system", "regime"), cells)


each_regime = regimes(SYSTEMS)

# S1.2 and S1.3 of the paper. Gray-Scott: f and k around five centers, time in units of 1000 tau.
CENTERS = ((0.008, 0.046), (0.020, 0.056), (0.040, 0.060), (0.029, 0.057), (0.058, 0.065))
PAPER = {
    "gray-scott": {"D_u": (1.9e-2, 2.1e-2), "D_v": (0.95e-2, 1.05e-2), "rho": (1000, 1000)},
    "fitzhugh-nagumo": {"gamma_u": (1, 1), "gamma_v": (100, 100), "alpha": (0.005, 0.018), "beta": (0.22, 0.35)},
    "brusselator": {"D_u": (1e-4, 3e-4), "D_v": (5e-4, 1.2e-3), "rho": (8, 12), "A": (0.7, 1.1), "B": (2.0, 2.6)},
    "ginzburg-landau": {"epsilon": (0.002, 0.010), "nu": (1, 1), "gamma_r": (1, 1), "gamma_i": (0.5, 9)},
    "schnakenberg": {"D_u": (1e-4, 3e-4), "D_v": (5e-4, 1.2e-3), "rho": (8, 12), "a": (0.03, 0.06), "b": (0.84, 0.88)},
    "lambda-omega": {
        "D_u": (2.5e-4, 7.5e-4),
        "D_v": (2.5e-4, 7.5e-4),
        "rho": (0.85, 1.20),
        "alpha": (0.75, 1.25),
        "omega_0": (0.85, 1.20),
        "beta": (0.20, 0.70),
    },
    "barkley": {"D_u": (0.9, 1.1), "D_v": (0, 0), "a": (0.72, 0.78), "b": (0.015, 0.028), "epsilon": (0.018, 0.024)},
    "oregonator": {
        "D_u": (4e-5, 1.6e-4),
        "D_v": (1e-5, 8e-5),
        "rho": (0.70, 1.40),
        "epsilon": (0.040, 0.080),
        "f": (1.10, 1.55),
        "q": (0.0015, 0.0045),
    },
}
# Table S1: side, points of integration, largest step, first and last saved time.
TABLE = {
    "gray-scott": (2, 128, 1e-4, 0.05, 1),
    "fitzhugh-nagumo": (128, 128, 2e-3, 1, 40),
    "brusselator": (2, 128, 1e-3, 2, 4),
    "ginzburg-landau": (2, 128, 1e-3, 2, 10),
    "schnakenberg": (2, 128, 1e-3, 2, 4),
    "lambda-omega": (2, 128, 2e-3, 3, 12),
    "barkley": (150, 256, 1e-2, 5, 15),
    "oregonator": (2, 128, 2e-4, 0.2, 0.8),
}


def inside(value: float, bounds: tuple[float, float]) -> bool:
    low, high = bounds
    return low * (1 - 1e-12) <= value <= high * (1 + 1e-12)


def test_names_are_the_sources_then_the_held_out_then_the_users():
    assert names()[:8] == SOURCES + HELD_OUT == tuple(PAPER)
    assert all(get(name).name == name for name in names())


def test_unknown_names_and_regimes_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"got 'grey-scott'; known: gray-scott, fitzhugh-nagumo, .*, oregonator"):
        get("grey-scott")
    with pytest.raises(ValueError, match="regime of barkley, got 'ood'; known: id"):
        get("barkley").regime("ood")
    with pytest.raises(ValueError, match="known: id, coeff-ood, ic-ood"):
        get("gray-scott").draw(0, "ood")


@pytest.mark.parametrize("name", PAPER)
def test_sources_have_three_regimes_and_held_out_systems_one(name):
    assert tuple(get(name).regimes) == (("id", "coeff-ood", "ic-ood") if name in SOURCES else ("id",))


@pytest.mark.parametrize("name", PAPER)
def test_numerics_are_those_of_the_table(name):
    n = get(name).numerics
    assert (n.length, n.size, n.dt, n.first, n.last) == TABLE[name]
    assert (n.frames, n.stored) == (40, 128)
    methods = {"fitzhugh-nagumo": ("rk4", 4), "barkley": ("strang", "spectral")}
    assert (n.method, n.laplacian) == methods.get(name, ("euler", 2))


@pytest.mark.parametrize("name", PAPER)
def test_coefficients_lie_in_the_ranges_of_the_paper(name):
    system = get(name)
    draws = [system.draw(seed) for seed in range(300)]
    for p in draws:
        assert set(p) == {c.name for c in system.coefficients}
        assert all(inside(p[c], bounds) for c, bounds in PAPER[name].items())
    for c, (low, high) in PAPER[name].items():
        assert system.range(c) == pytest.approx((low, high))
        values = [p[c] for p in draws]
        assert max(values) - min(values) >= 0.9 * (high - low)


@pytest.mark.parametrize("name", PAPER)
def test_choices_and_steady_states_are_stated(name):
    system = get(name)
    assert system.notes
    assert system.equilibria(system.draw(0))


def test_gray_scott_draws_from_every_center_and_near_it():
    near = [
        [i for i, (f, k) in enumerate(CENTERS) if abs(p["f"] / f - 1) <= 0.06 and abs(p["k"] / k - 1) <= 0.06]
        for p in (get("gray-scott").draw(seed) for seed in range(300))
    ]
    assert all(near)
    assert {i for centers in near for i in centers} == set(range(5))


def test_ginzburg_landau_draws_from_five_regimes_with_different_rotation():
    boxes = get("ginzburg-landau").regime("id").boxes
    ranges = sorted(box.ranges["gamma_i"] for box in boxes)
    assert len(boxes) == 5
    assert all(low[1] < high[0] for low, high in pairwise(ranges))


@pytest.mark.parametrize("name", SOURCES)
def test_coefficients_out_of_distribution_avoid_every_box_in_distribution(name):
    """Some coefficient that is drawn has ranges that meet at most in a point."""
    system = get(name)
    for new, old in product(system.regime("coeff-ood").boxes, system.regime("id").boxes):
        apart = [c for c, (low, high) in new.ranges.items() if low >= old.ranges[c][1] or high <= old.ranges[c][0]]
        assert [c for c in apart if old.ranges[c][0] < old.ranges[c][1]]
    for seed, box in product(range(100), system.regime("id").boxes):
        p = system.draw(seed, "coeff-ood")
        assert not all(low <= p[c] <= high for c, (low, high) in box.ranges.items())


@pytest.mark.parametrize("name", SOURCES)
def test_each_regime_changes_only_what_it_is_named_after(name):
    regimes = get(name).regimes
    assert regimes["ic-ood"].boxes == regimes["id"].boxes
    assert regimes["coeff-ood"].initial_conditions == regimes["id"].initial_conditions
    families = [{family.name for family in regimes[r].initial_conditions} for r in ("id", "ic-ood")]
    assert not families[0] & families[1]


@each_regime
def test_equilibria_are_zeros_of_the_kinetics(system, regime):
    for seed in range(20):
        p = system.draw(seed, regime)
        rate = max(abs(value) for value in p.values())
        for u, v in system.equilibria(p):
            assert np.abs(system.reaction(u, v, p)).max() < 1e-12 * max(1, rate)


@regimes(EXPLICIT)  # spectral diffusion is exact, hence stable at any step
def test_diffusion_is_stable_at_the_chosen_step(system, regime):
    """Euler needs dt times the largest eigenvalue below 2, four-stage Runge-Kutta below 2.785."""
    numerics = system.numerics
    largest = max(system.range(c, regime)[1] for c in system.diffusivity_names)
    number = STENCILS[numerics.laplacian].largest * largest * numerics.dt / numerics.grid.spacing**2
    assert number < {"euler": 2.0, "rk4": 2.785}[numerics.method]


def test_the_runge_kutta_limit_is_where_its_polynomial_leaves_the_unit_interval():
    growth = np.polynomial.Polynomial([1, -1, 1 / 2, -1 / 6, 1 / 24])
    assert growth(2.785) < 1 < growth(2.786)
    fhn = get("fitzhugh-nagumo").numerics
    assert 100 * STENCILS[4].largest * 1.31 * fhn.dt > 2.785  # a third more would blow up


@each_system
def test_kinetics_of_symbols_equal_kinetics_of_arrays(system):
    p = system.draw(1)
    symbols = sympy.Symbol("u"), sympy.Symbol("v")
    rates = system.reaction(*symbols, {c: sympy.Symbol(c) for c in p})
    u, v = np.random.default_rng(0).uniform(0.1, 1.5, size=(2, 4))
    arrays = system.reaction(u, v, p)
    for rate, array in zip(rates, arrays, strict=True):
        assert array.shape == (4,)
        for i in range(4):
            assert float(rate.subs({symbols[0]: u[i], symbols[1]: v[i]} | p)) == pytest.approx(array[i], rel=1e-10)


@each_system
def test_equations_are_rendered_with_every_coefficient(system):
    equations = system.latex()
    assert len(equations) == 2
    assert all(equation.startswith(rf"\partial_t {field} = ") for field, equation in zip("uv", equations, strict=True))
    for c in system.coefficients:
        assert sympy.latex(sympy.Symbol(c.name)) in " ".join(equations)
    assert not any(signs in equation for equation in equations for signs in ("+ -", "+ +", "- -"))


@each_system
def test_coefficients_are_described_and_complete(system):
    declared = {c.name for c in system.coefficients}
    assert declared == set(system.kinetic_names) | set(system.diffusivity_names)
    assert all(c.description and c.unit for c in system.coefficients)
    assert system.title
    assert system.reference
    with pytest.raises(ValueError, match="got none named"):
        system.reaction(0.1, 0.1, {})


@each_regime
def test_draws_are_repeatable_and_differ_by_key(system, regime):
    p = system.draw(7, regime, "test", 2)
    assert system.draw(7, regime, "test", 2) == p
    for other in ((8, regime, "test", 2), (7, regime, "pool", 2), (7, regime, "test", 3)):
        assert system.draw(*other) != p


@each_regime
def test_initial_states_are_finite_repeatable_and_come_from_every_family(system, regime):
    p = system.draw(0, regime)
    brief = replace(system, numerics=replace(system.numerics, size=32, stored=32))
    starts = [brief.start(p, seed, regime) for seed in range(24)]
    for start, size in [(system.start(p, 5, regime), system.numerics.size), *((start, 32) for start in starts)]:
        assert start.state.shape == (2, size, size)
        assert np.isfinite(start.state).all()
        assert np.abs(start.state).max() < 5 * max([1, *(abs(x) for e in system.equilibria(p) for x in e)])
    assert {start.family for start in starts} == {f.name for f in system.regime(regime).initial_conditions}
    again = brief.start(p, 5, regime)
    assert again.family == starts[5].family
    assert np.array_equal(again.state, starts[5].state)
    assert not np.array_equal(starts[5].state, starts[6].state)


class Noted:
    """A random generator that knows from which ranges whole numbers were drawn."""

    def __init__(self, rng):
        self.rng, self.ranges = rng, set()

    def __getattr__(self, name):
        return getattr(self.rng, name)

    def integers(self, low, high):
        self.ranges.add((low, high))
        return self.rng.integers(low, high)


COUNTS = {  # of shapes, as the notes have them; the end is left out
    "gray-scott": {"blobs": {(3, 16)}, "mixture": {(1, 6)}, "squares": {(2, 7)}, "rings": {(1, 4)}},
    "brusselator": {"rings or ovals": {(1, 4), (4, 11)}},
    "schnakenberg": {"rings or ovals": {(1, 4), (4, 11)}},
    "ginzburg-landau": {"vortex seeds": {(1, 4)}, "many noisy vortices": {(4, 8)}},
    "lambda-omega": {"spiral defects": {(1, 3)}, "target waves": {(1, 3)}},
    "oregonator": {"blobs": {(1, 6)}, "rings": {(1, 3)}},
    "family": {"spots": {(2, 16)}, "rings": {(1, 5)}, "vortices": {(1, 4)}},
}


@pytest.mark.parametrize("name", [*PAPER, "family"])
def test_numbers_of_shapes_are_drawn_from_the_stated_ranges(name):
    system, found = get(name), {}
    for regime in system.regimes:
        for family in system.regime(regime).initial_conditions:
            rng: Any = Noted(np.random.default_rng(0))
            for _ in range(8):
                family.build(Grid(16, system.numerics.length, system.numerics.origin), system.draw(0, regime), rng)
            found[family.name] = rng.ranges
    assert {family: ranges for family, ranges in found.items() if ranges} == COUNTS.get(name, {})
