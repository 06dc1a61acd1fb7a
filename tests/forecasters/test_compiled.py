"""The compiled steps of an equation of two components: the same numbers as those of tensor operations."""

import pytest
import torch

from cubics import BOUNDS, FINE, WALLS, coefficients, drawn
from rdjepa.forecasters import compiled, kernels
from rdjepa.forecasters.cubic import Advance
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.squares import squares

NARROW = tuple(0.1 * bound for bound in BOUNDS)  # which states reach


@pytest.fixture
def without(monkeypatch):
    """Call a function where nothing takes compiled code."""

    def called(function):
        with monkeypatch.context() as patched:
            patched.setattr(compiled, "takes", lambda *tensors: False)
            return function()

    return called


@pytest.mark.parametrize(("dtype", "least"), [(torch.float64, 1e-13), (torch.float32, 1e-5)], ids=["double", "single"])
@pytest.mark.parametrize("bounds", [BOUNDS, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("domain", [PLAIN, FINE, WALLS], ids=["points", "cells", "walls"])
def test_an_interval_ends_where_that_of_tensors_does(without, domain, bounds, dtype, least):
    advance = Advance(coefficients(3).to(dtype), tuple(bound.to(dtype) for bound in bounds), (6, 4), domain)
    state = advance.refined(drawn(3, 2, 6, 4).to(dtype))
    assert compiled.takes(advance.kinetics, state)
    found, expected = advance.interval(state), without(lambda: advance.interval(state))
    torch.testing.assert_close(found, expected, rtol=0, atol=least)


@pytest.mark.parametrize(
    ("domain", "through"),
    [(PLAIN, False), (Domain(walls=True), False), (FINE, False), (FINE, True), (WALLS, True), (Domain(finer=3), False)],
    ids=["periodic", "walls", "cells", "through cells", "through cells at walls", "nine points a cell"],
)
def test_squares_are_those_of_tensors(without, domain, through):
    given = drawn(2, 4, 2, 8, 6, size=0.5).cumsum(1), coefficients(2), BOUNDS, domain, through
    found, expected = squares(*given), without(lambda: squares(*given))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6 * other.abs().max().item())
    torch.testing.assert_close(found.value, expected.value, rtol=1e-12, atol=0)


def test_what_is_no_number_stays_it():
    state = drawn(1, 2, 4, 4)
    state[0, 0, 1, 2] = torch.nan
    found = Advance(coefficients(), NARROW, (4, 4), PLAIN).react(state)
    assert found.isnan().nonzero().tolist() == [[0, 0, 1, 2], [0, 1, 1, 2]]


def test_other_numbers_of_components_and_derivatives_are_left_to_tensors():
    state = drawn(1, 2, 4, 4)
    assert compiled.takes(coefficients()[..., :-1], state)
    assert not compiled.takes(drawn(1, 1, 4), state[:, :1])
    assert not compiled.takes(coefficients()[..., :-1], state.requires_grad_())


def test_where_nothing_can_be_written_it_is_compiled_for_the_process_alone(monkeypatch):
    asked, compile = [], kernels.njit

    def refused(**options):
        asked.append("cache" in options)
        if "cache" in options:
            raise RuntimeError("cannot cache function: no locator available")
        return compile(**options)

    monkeypatch.setattr(kernels, "njit", refused)
    assert kernels.kept(lambda x: x + 1)(1) == 2
    assert asked == [True, False]
