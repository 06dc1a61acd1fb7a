"""The distance between kinetics is zero after the symmetries, small for near forms, large for other equations."""

import numpy as np
import pytest

from rdjepa import systems
from rdjepa.pde.distance import distance, distance_beyond, visited
from rdjepa.pde.rollout import rollout
from rdjepa.pde.screening import first_reason
from rdjepa.systems import family_forms, family_kinds

REFERENCES = {each.system.name: each for each in systems.APART.references}
LEAST = systems.APART.least
# Where trajectories were measured to go; the references' ranges are a little wider.
RANGES = {
    "lambda-omega": ((-0.99, 0.99), (-0.99, 0.99)),
    "barkley": ((0.0, 1.0), (0.0, 0.68)),
    "oregonator": ((0.003, 0.73), (0.014, 0.28)),
}


def states(name, wider=0.0):
    u, v = (np.linspace(low, high + wider * (high - low), 12) for low, high in RANGES[name])
    return np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)


def kinetics(name, seed=0, factors=()):
    system = systems.get(name)
    p = system.draw(seed)
    p |= {key: p[key] * factor for key, factor in factors}
    return lambda u, v: system.reaction(u, v, p)


def moved(reaction, points, scale=(1.0, 1.0), shift=(0.0, 0.0), time=1.0, exchanged=False):
    """The same equation for (u, v) -> scale (u, v) + shift, t -> t / time, and its states; then u and v exchanged."""

    def other(u, v):
        u, v = (v, u) if exchanged else (u, v)
        rates = reaction((u - shift[0]) / scale[0], (v - shift[1]) / scale[1])
        rates = [time * factor * rate for factor, rate in zip(scale, rates, strict=True)]
        return tuple(rates[::-1] if exchanged else rates)

    points = points * scale + np.array(shift)
    return other, points[:, ::-1] if exchanged else points


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("seed", range(3))
def test_a_held_out_equation_is_at_distance_zero_from_itself(name, seed):
    assert distance(kinetics(name, seed), states(name), REFERENCES[name]) < 0.05


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize(
    "change",
    [
        {"scale": (3.0, 0.2)},
        {"scale": (-1.0, 2.0)},
        {"scale": (1.5, -0.7), "shift": (2.0, -1.0)},
        {"time": 40.0},
        {"exchanged": True},
        {"scale": (-0.5, 4.0), "shift": (0.3, 5.0), "time": 0.1, "exchanged": True},
    ],
    ids=("scaled", "reflected", "shifted", "faster", "exchanged", "all"),
)
def test_the_symmetries_keep_it_there(name, change):
    reaction, points = moved(kinetics(name), states(name), **change)
    assert distance(reaction, points, REFERENCES[name]) < 0.05


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_coefficients_a_fifth_out_of_range_and_another_ratio_of_time_scales_are_near(name, factor):
    drawn = [key for key in systems.get(name).kinetic_names if key not in ("rho", "epsilon")]
    near = kinetics(name, factors=[(key, factor) for key in drawn])
    u_slower = lambda u, v: (near(u, v)[0] / 3, near(u, v)[1])  # noqa: E731
    for reaction in (near, u_slower):
        assert distance(reaction, states(name), REFERENCES[name]) < LEAST / 2


@pytest.mark.parametrize("name", REFERENCES)
def test_weak_further_terms_are_near_and_strong_ones_are_not(name):
    """Terms of a tenth of the kinetics' own size leave a distance of at most a tenth."""
    reaction, points = kinetics(name), states(name)
    size = [np.sqrt((rate**2).mean()) for rate in reaction(*points.T)]

    def with_terms(share):
        terms = lambda u, v: (np.sin(9 * u + 5 * v), np.cos(7 * u - 8 * v))  # noqa: E731
        return lambda u, v: tuple(
            f + share * s * term for f, s, term in zip(reaction(u, v), size, terms(u, v), strict=True)
        )

    assert distance(with_terms(0.1), points, REFERENCES[name]) < 0.13
    assert distance(with_terms(2.0), points, REFERENCES[name]) > LEAST


@pytest.mark.parametrize("name", ["gray-scott", "fitzhugh-nagumo", "brusselator", "schnakenberg"])
def test_the_sources_but_the_other_oscillator_are_far(name):
    ranges = {"gray-scott": ((0.25, 1), (0, 0.37)), "fitzhugh-nagumo": ((-1.1, 1.0), (-0.35, 0.49))}
    low, high = np.array(ranges.get(name, ((0.45, 2.3), (0.7, 3.0)))).T
    points = low + (high - low) * np.random.default_rng(0).random((144, 2))
    assert min(distance(kinetics(name), points, each) for each in REFERENCES.values()) > LEAST


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("seed", range(3))
def test_on_a_range_two_fifths_wider_an_exact_copy_is_far_by_the_screen_and_near_by_the_stricter_measure(name, seed):
    reaction, points = kinetics(name, seed), states(name, wider=0.4)
    assert distance(reaction, points, REFERENCES[name]) > LEAST
    assert distance_beyond(reaction, points, REFERENCES[name]) < 0.01
    moved_reaction, there = moved(reaction, points, (-0.5, 4.0), (0.3, 5.0), 0.1, exchanged=True)
    assert distance_beyond(moved_reaction, there, REFERENCES[name]) < 0.01


def test_the_stricter_measure_is_never_larger_and_leaves_unrelated_kinetics_far():
    reaction, points = (lambda u, v: (u * u - v**3, np.sin(u) - 2 * v)), states("lambda-omega")
    for reference in REFERENCES.values():
        assert LEAST < distance_beyond(reaction, points, reference) <= distance(reaction, points, reference)


def test_the_distance_of_an_unrelated_kinetics_does_not_depend_on_units():
    reaction, points = (lambda u, v: (u * u - v**3, np.sin(u) - 2 * v)), states("lambda-omega")
    for reference in REFERENCES.values():
        before = distance(reaction, points, reference)
        other, there = moved(reaction, points, (3.0, -0.2), (1.0, 4.0), 7.0, True)
        after = distance(other, there, reference)
        assert after == pytest.approx(before, abs=0.02)
        assert LEAST < before <= 1


def test_the_states_are_the_range_without_outliers():
    fields = np.random.default_rng(0).uniform((0, 1), (2, 5), size=(4, 32, 32, 2))
    fields[0, 0, 0] = 1e6
    points = visited(fields)
    assert points.shape == (144, 2)
    assert points.min(axis=0) == pytest.approx((0, 1), abs=0.05)
    assert points.max(axis=0) == pytest.approx((2, 5), abs=0.05)


def lambda_omega(p):
    """Its kinetics among the family's."""
    rate, growth, rotation, shear = p["rho"], p["alpha"], p["omega_0"], p["beta"]
    terms = {"f10": growth, "f01": -rotation, "f30": -growth, "f12": -growth, "f21": shear, "f03": shear}
    terms |= {"g01": growth, "g10": rotation, "g03": -growth, "g21": -growth, "g12": -shear, "g30": -shear}
    return {key: rate * value for key, value in terms.items()}


def barkley(p):
    a, b, rate = p["a"], p["b"], 1 / p["epsilon"]
    terms = {"f10": -b / a, "f20": 1 + b / a, "f30": -1.0, "f11": -1 / a, "f21": 1 / a}
    return {key: rate * value for key, value in terms.items()} | {"g10": 1.0, "g01": -1.0}


@pytest.mark.parametrize("name", ["lambda-omega", "barkley"])
def test_the_family_could_draw_them_and_refuses_them(name):
    family, p = systems.get("family"), systems.get(name).draw(5)
    mine = family_forms.kinetics_of({"lambda-omega": lambda_omega, "barkley": barkley}[name](p))
    fields = states(name).reshape(1, 12, 12, 2)
    u, v = fields.T
    for mine_rate, rate in zip(family.reaction(u, v, mine), systems.get(name).reaction(u, v, p), strict=True):
        np.testing.assert_allclose(mine_rate, rate, rtol=1e-9, atol=1e-9)
    assert family.apart is not None
    nearest = family.apart.nearest(family, mine, fields)
    assert nearest.name == name and nearest.distance < 0.05 < family.apart.least
    # Terms that cancel almost: a percent of each is ten times as much of their sum.
    changed = {key: value * (1 + 0.01 * (-1) ** i) for i, (key, value) in enumerate(mine.items())}
    assert family.apart.nearest(family, changed, fields).distance < family.apart.least


@pytest.mark.slow
def test_exact_barkley_from_the_familys_states_mostly_passes_its_screen_and_is_near_by_the_stricter_measure():
    """The figures are those of docs/explanation/data.md; the scales are those of the family's excitable kind."""
    family, scales, found = systems.get("family"), family_kinds.Scales((2, 7), (0.7, 1.4)), []
    for seed in range(14):
        drawn = systems.get("barkley").draw(seed)
        form = family_forms.Form(barkley(drawn), base=(0.0, 0.0), reach=(1.0, drawn["a"] / 2), ratio=0.1)
        box = family_kinds._kind("barkley", lambda _: form, scales, {}, family.kinetics)  # noqa: B023
        p = box.draw(np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            fields = rollout(family, p, family.start(p, seed).state)
        if first_reason(family.screens, fields) is None:
            reaction = lambda u, v, p=p: family.reaction(u, v, p)  # noqa: E731
            found.append(
                (
                    systems.APART.nearest(family, p, fields).distance,
                    distance_beyond(reaction, visited(fields), REFERENCES["barkley"]),
                )
            )
    accepted = [(plain, beyond) for plain, beyond in found if plain >= LEAST]
    assert (len(found), len(accepted)) == (10, 7)
    assert min(plain for plain, _ in accepted) == pytest.approx(0.47, abs=0.01)
    assert max(plain for plain, _ in accepted) == pytest.approx(0.70, abs=0.01)
    assert sorted(beyond < 0.1 for _, beyond in accepted) == [False] + [True] * 6
