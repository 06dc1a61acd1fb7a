"""Every draw of the family is an equation of its own: bounded, resolved in time and length, and with known states."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy

from rdjepa import systems
from rdjepa.data import simulate as simulation
from rdjepa.data.simulate import simulate
from rdjepa.errors import ArgumentError, SimulationError
from rdjepa.pde.distance import Apart, Nearest
from rdjepa.pde.integrators import integrator
from rdjepa.pde.rollout import rollout
from rdjepa.pde.screening import Finite
from rdjepa.pde.stability import check_step
from rdjepa.systems import family_forms, family_kinds
from rdjepa.systems.describe import describe

FAMILY = systems.get("family")
KINDS = [box.name for box in FAMILY.regime("id").boxes]
each_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def draws(kind, count=20):
    first = KINDS.index(kind)
    return [FAMILY.draw(seed) for seed in range(first, first + count * len(KINDS), len(KINDS))]


def jacobian(p, u, v, step=1e-6):
    columns = [
        (np.array(FAMILY.reaction(u + du, v + dv, p)) - np.array(FAMILY.reaction(u - du, v - dv, p))) / (2 * step)
        for du, dv in ((step, 0), (0, step))
    ]
    return np.stack(columns, axis=1)


def test_it_is_a_role_of_its_own_and_no_system_of_the_paper():
    assert systems.role("family") == "family"
    assert systems.family_names() == systems.FAMILIES == ("family",)
    assert "family" not in systems.names() + systems.wall_names()
    assert "family" in systems.every_name()


def test_kinds_take_turns():
    assert [FAMILY.kind(seed) for seed in range(2 * len(KINDS))] == KINDS * 2
    assert {systems.get(name).kind(3) for name in systems.names()} == {""}


def test_coefficients_are_declared_repeatable_and_new_in_every_draw():
    declared = {c.name for c in FAMILY.coefficients}
    assert declared == set(FAMILY.kinetic_names) | set(FAMILY.diffusivity_names) | set(family_forms.LEVELS)
    found = [FAMILY.draw(seed, "id", "pool", attempt) for seed in range(9) for attempt in range(2)]
    assert all(set(p) == declared for p in found)
    assert FAMILY.draw(4, "id", "pool", 1) == found[9]
    assert len({tuple(p.values()) for p in found}) == len(found)
    with pytest.raises(ArgumentError, match="drawn from a range"):
        FAMILY.range("f10")


@each_kind
def test_steps_are_stable_and_kinetics_slow_against_them(kind):
    numerics = FAMILY.numerics
    for p in draws(kind):
        check_step(numerics, FAMILY.diffusivities(p))
        assert max(FAMILY.diffusivities(p)) * numerics.dt / numerics.grid.spacing**2 <= 0.2 * (1 + 1e-9)
        # The length over which u diffuses at the rate of the kinetics is some grid cells, whatever the units.
        u, v = (p[f"{c}_0"] + p[f"{c}_1"] * np.linspace(-0.9, 0.9, 7) for c in "uv")
        rate = np.sqrt((jacobian(p, *np.meshgrid(u, v)) ** 2).sum() / 49)
        assert 0.65 < np.sqrt(p["D_u"] / rate) / numerics.grid.spacing < 3.1
        assert rate * numerics.dt < 0.08


@pytest.mark.parametrize("kind", ["damped cubic", "oscillatory"])
def test_far_out_the_polynomial_kinds_come_back(kind):
    angle = np.linspace(0, 2 * np.pi, 200)
    for p in draws(kind):
        radius = 100 * (p["u_1"] + p["v_1"])
        u, v = radius * np.cos(angle), radius * np.sin(angle)
        f, g = FAMILY.reaction(u, v, p)
        assert (u * f + v * g < 0).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("damped cubic", "bistable")])
def test_initial_states_depart_from_a_steady_state(kind):
    for p in draws(kind):
        rates = FAMILY.reaction(p["u_0"], p["v_0"], p)
        assert np.abs(rates).max() < 1e-9 * max(abs(value) for value in p.values())


def test_activator_and_inhibitor_are_stable_without_diffusion_and_patterned_with_it():
    for p in draws("activator-inhibitor"):
        local = jacobian(p, 0.0, 0.0)
        assert np.linalg.eigvals(local).real.max() < 0
        squares = np.geomspace(1e-3, 1e3, 400) / p["D_u"]
        growth = [np.linalg.eigvals(local - k * np.diag([p["D_u"], p["D_v"]])).real.max() for k in squares]
        assert max(growth) > 0


def test_the_kinetics_are_the_equation_of_the_module():
    symbols = {name: sympy.Symbol(name) for name in FAMILY.kinetic_names}
    u, v = sympy.symbols("u v")
    s = 1 / (1 + symbols["h"] * u + symbols["k"] * u**2)
    rational = {"p": u * v * s, "q": u**2 * v * s, "r": u**2 * s / (1 + symbols["n"] * v)}
    for side, rate in zip("fg", FAMILY.kinetics(u, v, *symbols.values()), strict=True):
        terms = [symbols[f"{side}{i}{j}"] * u**i * v**j for i in range(4) for j in range(4 - i)]
        terms += [symbols[side + name] * term for name, term in rational.items()]
        assert sympy.simplify(rate - sum(terms)) == 0


def test_one_kernel_serves_all_kinds():
    short = replace(FAMILY, numerics=replace(FAMILY.numerics, first=0.01, last=0.02, frames=2))
    made = []
    for seed in range(len(KINDS)):
        p = short.draw(seed)
        assert np.isfinite(rollout(short, p, short.start(p, seed).state)).all()
        made.append(integrator.cache_info().misses)
    assert len(set(made)) == 1


def test_initial_states_stay_within_reach():
    seen = set()
    for seed in range(40):
        p = FAMILY.draw(seed)
        state, name = FAMILY.start(p, seed)
        seen.add(name)
        for field, c in zip(state, "uv", strict=True):
            assert np.abs(field - p[f"{c}_0"]).max() <= p[f"{c}_1"] * (1 + 1e-12)
    assert seen == {each.name for each in FAMILY.regime("id").initial_conditions}


def test_a_trajectory_knows_its_kind_and_its_distance():
    trajectory = simulate("family", 4)
    assert trajectory.kind == FAMILY.kind(4)
    assert trajectory.nearest is not None
    assert trajectory.nearest.name in systems.HELD_OUT
    assert trajectory.nearest.distance >= systems.APART.least
    assert trajectory.fields.shape == (40, 128, 128, 2)


def brief(**changes):
    return replace(FAMILY, numerics=replace(FAMILY.numerics, last=3.0, frames=2), **changes)


def test_a_draw_that_is_too_near_is_refused_and_counted(monkeypatch):
    monkeypatch.setattr(simulation, "ATTEMPTS", 3)
    everything = Apart(systems.APART.references, 1.1)
    with pytest.raises(SimulationError, match=r"3 rejections: \d x distance to [a-z-]+ below"):
        simulate(brief(apart=everything, screens=(Finite(100.0),)), 4)


def test_a_draw_whose_distance_is_no_number_is_refused(monkeypatch):
    monkeypatch.setattr(simulation, "ATTEMPTS", 2)
    monkeypatch.setattr(Apart, "nearest", lambda *_: Nearest("barkley", float("nan")))
    with pytest.raises(SimulationError, match=r"2 rejections: 2 x distance nan to barkley below"):
        simulate(brief(screens=(Finite(100.0),)), 4)


def test_draws_that_never_pass_end_with_counted_reasons(monkeypatch):
    monkeypatch.setattr(simulation, "ATTEMPTS", 4)
    with pytest.raises(SimulationError, match=r"family/pool/id/00001 .* 4 rejections: 4 x amplitude above"):
        simulate(brief(screens=(Finite(1e-9),)), 1)


def test_a_description_lists_the_kinds():
    text = describe(FAMILY)
    assert all(f"  {kind}: " in text for kind in KINDS)
    assert all(f"ln_cells [{np.log(0.7):.3g}" in line for line in text.splitlines() if line.startswith("  excitable"))


def test_scales_are_logarithms():
    assert family_kinds.Scales((1, np.e), (1, 1)).ranges == {"ln_rate": (0, 1), "ln_cells": (0, 0)}
