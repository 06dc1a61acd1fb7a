from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rdjepa.data import simulate as module
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError
from rdjepa.pde import rollout
from rdjepa.pde.screening import first_reason
from rdjepa.pde.system import InitialCondition
from rdjepa.systems import get, names

# Relative error of forecasting the last frame for one interval, mean over trajectories: measured with a prototype.
PERSISTENCE = {
    "gray-scott": 0.034,
    "brusselator": 0.170,
    "ginzburg-landau": 0.472,
    "schnakenberg": 0.131,
    "lambda-omega": 0.142,
    "oregonator": 0.056,
}


@cache
def trajectory(name: str, seed: int = 0, regime: str = "id", split: str = "pool") -> Trajectory:
    return simulate(name, seed, regime, split)


def persistence(fields: np.ndarray, horizon: int) -> float:
    """Mean relative error of the last of four frames as a forecast, over windows that reach five frames further."""
    errors = [
        np.linalg.norm(fields[t + horizon] - fields[t]) / np.linalg.norm(fields[t + horizon])
        for t in range(3, len(fields) - 5)
    ]
    return float(np.mean(errors))


@pytest.mark.parametrize("name", names())
def test_a_trajectory_of_every_system(name):
    system, t = get(name), trajectory(name)
    assert t.fields.shape == (40, 128, 128, 2)
    assert t.fields.dtype == np.float32
    assert np.isfinite(t.fields).all()
    assert np.array_equal(t.times, np.linspace(system.numerics.first, system.numerics.last, 40))
    assert t.key == Key(name, "pool", "id", 0)
    assert t.length == system.numerics.length
    assert t.boundary == "periodic"
    assert dict(t.coefficients) == system.draw(0, attempt=t.attempt)
    assert t.initial_condition in {family.name for family in system.regime("id").initial_conditions}
    assert len(t.rejected) == t.attempt
    assert set(t.software) == {"rdjepa", "numpy", "scipy", "numba"}
    assert first_reason(system.screens, t.fields) is None


@pytest.mark.parametrize("name", ["brusselator", "lambda-omega"])
def test_equal_keys_give_equal_bits_and_another_key_another_trajectory(name):
    first, again = trajectory(name), simulate(name)
    assert np.array_equal(first.fields, again.fields)
    assert dict(first.coefficients) == dict(again.coefficients)
    for other in (trajectory(name, 1), trajectory(name, 0, "id", "test")):
        assert not np.allclose(first.fields, other.fields, atol=1e-2)
        assert dict(other.coefficients) != dict(first.coefficients)


def test_a_numpy_seed_is_a_seed():
    assert trajectory("schnakenberg").key == simulate("schnakenberg", np.int64(0)).key  # type: ignore[arg-type]


@pytest.mark.parametrize("regime", ["coeff-ood", "ic-ood"])
def test_other_regimes_draw_from_their_own_distribution(regime):
    system, t = get("schnakenberg"), trajectory("schnakenberg", 0, regime)
    assert dict(t.coefficients) == system.draw(0, regime, attempt=t.attempt)
    assert t.initial_condition in {family.name for family in system.regime(regime).initial_conditions}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("turing",), "expected the name of a system, got 'turing'; known: gray-scott"),
        (("barkley", 0, "ic-ood"), "expected a regime of barkley, got 'ic-ood'; known: id"),
        (("barkley", 0, ["id"]), r"expected a regime of barkley, got \['id'\]"),
        (("barkley", 0, "id", "train"), "expected a split, got 'train'; known: pool, validation, test"),
        (("barkley", -1), "expected seed to be a whole number.*, got -1"),
        (("barkley", 1.5), "expected seed to be a whole number.*, got 1.5"),
        (("barkley", True), "expected seed to be a whole number.*, got True"),
    ],
)
def test_bad_input_is_answered_with_what_was_expected(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        simulate(*arguments)


def short(monkeypatch: pytest.MonkeyPatch, screen) -> None:
    """Let `simulate` see a Brusselator of a few steps with one screen."""
    system = get("brusselator")
    numerics = replace(system.numerics, size=32, stored=32, first=0.0, last=0.01, frames=3)
    monkeypatch.setattr(module, "get", lambda name: replace(system, numerics=numerics, screens=(screen,)))


def test_a_rejected_draw_is_drawn_again_from_the_next_attempt(monkeypatch):
    verdicts = iter(["too dull", "too wild", None])
    short(monkeypatch, lambda fields: next(verdicts))
    t = simulate("brusselator", 4)
    assert (t.attempt, t.rejected) == (2, ("too dull", "too wild"))
    assert dict(t.coefficients) == get("brusselator").draw(4, attempt=2)
    assert dict(t.coefficients) != get("brusselator").draw(4)


def test_a_draw_that_blows_up_is_drawn_again_whatever_the_screens(monkeypatch):
    short(monkeypatch, lambda fields: None)
    rates = iter([np.nan, np.inf, 1.0])
    integrate = rollout.rollout
    monkeypatch.setattr(rollout, "rollout", lambda *arguments: next(rates) * integrate(*arguments))
    t = simulate("brusselator", 4)
    assert (t.attempt, t.rejected) == (2, ("a value is not finite",) * 2)
    assert np.isfinite(t.fields).all()


@pytest.mark.parametrize("dtype", ["int64", "float32", "complex128"])
def test_initial_states_of_another_dtype_are_refused(dtype):
    system = get("brusselator")
    made = InitialCondition("flat", lambda grid, p, rng: np.ones((2, grid.size, grid.size), dtype))
    with pytest.raises(ArgumentError, match=f"float64, got .2, 128, 128. and {dtype} from 'flat'"):
        simulate(replace(system, regimes={"id": replace(system.regime("id"), initial_conditions=(made,))}))


def test_hopeless_screens_are_reported_with_their_reasons(monkeypatch):
    short(monkeypatch, lambda fields: "too dull")
    monkeypatch.setattr(module, "ATTEMPTS", 3)
    with pytest.raises(RuntimeError, match=r"brusselator/pool/id/00004 .* 3 rejections: 3 x too dull; widen"):
        simulate("brusselator", 4)


def test_barkley_stays_between_rest_and_excitation_and_does_both():
    u = trajectory("barkley").fields[..., 0]
    assert -0.1 < u.min() < 0.05
    assert 0.95 < u.max() < 1.1


def test_oregonator_concentrations_stay_positive_and_bounded():
    u, v = np.moveaxis(trajectory("oregonator").fields, -1, 0)
    assert u.min() > 0
    assert 0.3 < u.max() < 1.2
    assert 0 < v.min() < v.max() < 1


def test_gray_scott_concentrations_are_fractions():
    fields = trajectory("gray-scott").fields
    assert fields.min() > -1e-6
    assert fields.max() < 1 + 1e-6


def test_ginzburg_landau_amplitude_saturates_near_one():
    """Euler inflates |psi|^2 by about dt gamma_i^2 / 2, at most 4 % for these ranges."""
    amplitude = np.hypot(*np.moveaxis(trajectory("ginzburg-landau").fields, -1, 0))
    assert 0.9 < np.median(amplitude[-1]) < 1.03
    assert amplitude.max() < 1.1


@pytest.mark.parametrize("name", PERSISTENCE)
def test_forecasting_no_change_is_as_wrong_as_was_measured(name):
    """Within a factor of three of the measured mean, and the further ahead the worse."""
    errors = np.mean([[persistence(trajectory(name, seed).fields, h) for h in (1, 5)] for seed in range(3)], axis=0)
    assert PERSISTENCE[name] / 3 < errors[0] < 3 * PERSISTENCE[name]
    assert errors[1] > 1.5 * errors[0]
