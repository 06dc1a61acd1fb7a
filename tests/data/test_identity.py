"""What decides the numbers changes the identity of a system's data; what describes them does not."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rdjepa.data import identity as identities
from rdjepa.data.identity import confirm, digest, fingerprint, identity
from rdjepa.errors import DataError
from rdjepa.io import sealed
from rdjepa.pde import integrators, rollout, screening
from rdjepa.pde.boundary import Boundary
from rdjepa.pde.sampling import Box
from rdjepa.pde.system import InitialCondition, System
from rdjepa.systems import every_name, get

OURS = get("schnakenberg")
EVERY = every_name()


def regimes(change):
    """The regimes of our system, the first of them changed."""
    return {**OURS.regimes, "id": change(OURS.regime("id"))}


def renamed(regime):
    family = regime.initial_conditions[0]
    return replace(regime, initial_conditions=(replace(family, name="another name"),))


def other_state(regime):
    def build(grid, p, rng):
        return 1.01 * regime.initial_conditions[0].build(grid, p, rng)

    return replace(regime, initial_conditions=(InitialCondition("smooth", build),))


def two_families(regime):
    return replace(regime, initial_conditions=regime.initial_conditions * 2)


def wider(regime):
    ranges = dict(regime.boxes[0].ranges) | {"a": (0.03, 0.060001)}
    return replace(regime, boxes=(Box(ranges),))


def reordered(regime):
    return replace(regime, boxes=(Box(dict(reversed(regime.boxes[0].ranges.items()))),))


def other_constant(u, v, rho, a, b):
    return rho * (a - u + u * u * v), rho * (b - 1.001 * u * u * v)


def written_otherwise(u, v, rho, a, b):
    return rho * (a + u * (u * v - 1)), rho * (b - v * u * u)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"title": "Other title", "label": "Other", "reference": "nobody"},
        {"notes": ("One choice, told in other words.",)},
        {"regimes": regimes(renamed)},
        {"kinetics": written_otherwise},
    ],
    ids=lambda change: next(iter(change), "copy"),
)
def test_words_do_not_change_the_identity(change):
    assert identity(replace(OURS, **change)) == identity(OURS)


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"revision": 2}, {"revision"}),
        ({"family": "other"}, {"family", "fingerprint"}),
        ({"numerics": replace(OURS.numerics, dt=0.9e-3)}, {"numerics", "fingerprint"}),
        ({"numerics": replace(OURS.numerics, last=5.0)}, {"numerics"}),
        ({"screens": (screening.Finite(11.0), *OURS.screens[1:])}, {"screens"}),
        ({"screens": OURS.screens[1:]}, {"screens"}),
        ({"regimes": regimes(wider)}, {"regimes"}),
        ({"regimes": regimes(reordered)}, {"regimes", "fingerprint"}),
        ({"regimes": regimes(two_families)}, {"regimes", "fingerprint"}),
        ({"regimes": regimes(other_state)}, {"fingerprint"}),
        ({"kinetics": other_constant}, {"fingerprint"}),
        ({"diffusivity_names": ("D_v", "D_u")}, {"fingerprint"}),
    ],
    ids=(
        *("revision", "family", "step", "window", "threshold", "one screen fewer", "range", "order of coefficients"),
        *("initial conditions", "initial state", "constant", "diffusivities"),
    ),
)
def test_what_decides_the_numbers_changes_the_identity(change, keys):
    before, after = identity(OURS), identity(replace(OURS, **change))
    different = {key for key in before if before[key] != after[key]}
    assert different - {"fingerprint"} == keys - {"fingerprint"}  # a range may move the numbers that are measured, too
    assert keys <= different
    assert digest(replace(OURS, **change)) != digest(OURS)


def test_an_argument_of_a_screen_changes_the_identity():
    def moves(fields: np.ndarray, least: float) -> str | None:
        return None if np.ptp(fields) > least else "at rest"

    def screened(least: float) -> System:
        return replace(OURS, screens=(partial(moves, least=least),))

    assert digest(screened(0.1)) != digest(screened(0.5))


@pytest.mark.parametrize(
    ("name", "change"),
    [("barkley-robin", Boundary("neumann")), ("barkley-neumann", Boundary("dirichlet"))],
)
def test_walls_are_felt_within_the_few_steps(name, change):
    system = get(name)
    assert fingerprint(replace(system, numerics=replace(system.numerics, boundary=change))) != fingerprint(system)


def test_a_changed_integrator_is_noticed_before_data_are_made(monkeypatch):
    confirm(OURS)

    def half_steps(method, laplacian, kinetics, boundary):
        advance = integrators.integrator(method, laplacian, kinetics, boundary)
        return lambda state, p, diffusivities, length, dt, steps: advance(
            state, p, diffusivities, length, 0.5 * dt, 2 * steps
        )

    monkeypatch.setattr(rollout, "integrator", half_steps)
    assert fingerprint(OURS) != identity(OURS)["fingerprint"]
    with pytest.raises(DataError, match=r"schnakenberg to make the numbers of its revision 1.*rdjepa\.data\.identity"):
        confirm(OURS)
    confirm(replace(OURS))  # a user's own system has nothing to be compared with


def test_the_last_bits_do_not_matter():
    def rounded_otherwise(u, v, rho, a, b):
        return rho * (a - u + u * u * v) * (1 + 1e-15), rho * (b - u * u * v) * (1 - 1e-15)

    assert fingerprint(replace(OURS, kinetics=rounded_otherwise)) == fingerprint(OURS)


@pytest.mark.parametrize("name", EVERY)
def test_the_kept_fingerprints_are_those_that_are_measured(name):
    assert sealed.read(identities.KEPT, dict, "")[name] == fingerprint(get(name))


@pytest.mark.parametrize("name", EVERY)
def test_an_identity_is_json_without_words_or_addresses(name):
    system = get(name)
    found = identity(system)
    text = json.dumps(found)
    assert json.loads(text) == found
    assert "0x" not in text
    assert not any(note in text for note in (*system.notes, system.title))


def test_the_identities_of_the_package_measure_nothing(monkeypatch):
    monkeypatch.setattr(identities, "fingerprint", lambda system: pytest.fail("measured"))
    assert len({digest(get(name)) for name in EVERY}) == len(EVERY)


def test_screens_that_are_functions_are_named():
    def calm(fields: np.ndarray) -> str | None:
        return None

    assert identity(replace(OURS, screens=(calm, screening.Finite(3))))["screens"] == [
        ["calm", {}],
        ["Finite", {"limit": 3}],
    ]


DATA = {  # of every system, as long as its revision stays
    "gray-scott": "413d24c1b328",
    "fitzhugh-nagumo": "ccae0a948f37",
    "brusselator": "6de4ee9b46d4",
    "ginzburg-landau": "f5585b2be932",
    "schnakenberg": "2966aceb201a",
    "lambda-omega": "d0fab8a08a86",
    "barkley": "0ff37c5b62f6",
    "oregonator": "ec8dff081ce7",
    "barkley-neumann": "38233b2be30a",
    "barkley-robin": "c5141781ccb5",
    "barkley-dirichlet": "89457049b1b9",
    "family": "e579bed610fa",
}


def test_ranges_thresholds_and_windows_stay_as_long_as_the_revision():
    """What a fingerprint does not measure: boxes that it draws nothing from, screens, and times."""
    assert {name: digest(get(name))[:12] for name in EVERY} == DATA
