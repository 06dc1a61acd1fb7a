import numpy as np
import pytest

from rdjepa.pde.sampling import Box, around, stream

ADDRESS = ("family", "pool", "id", 3, 0, "coefficients")


def test_equal_addresses_give_equal_draws():
    assert np.array_equal(stream(*ADDRESS).random(5), stream(*ADDRESS).random(5))
    of_numpy: list = [np.str_(part) if isinstance(part, str) else np.int64(part) for part in ADDRESS]
    assert np.array_equal(stream(*ADDRESS).random(5), stream(*of_numpy).random(5))


@pytest.mark.parametrize("place", range(6))
def test_any_change_of_the_address_changes_the_draws(place):
    other: list[str | int] = list(ADDRESS)
    part = other[place]
    other[place] = part + 1 if isinstance(part, int) else part + "x"
    assert not np.any(stream(*ADDRESS).random(5) == stream(*other).random(5))


def test_addresses_are_not_glued_together():
    draws = [stream(*address).random() for address in (("ab", "c"), ("a", "bc"), ("abc",), (1, 2), (12,), ("1", 2))]
    assert len(set(draws)) == len(draws)


def test_draws_of_neighboring_indices_are_uniform_and_uncorrelated():
    draws = np.array([stream("family", index).random() for index in range(2000)])
    assert draws.mean() == pytest.approx(0.5, abs=0.03)
    assert draws.var() == pytest.approx(1 / 12, abs=0.01)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.1


def test_a_box_draws_inside_itself_and_fills_its_range():
    box = Box({"a": (2.0, 3.0), "fixed": (0.1, 0.1)})
    rng = np.random.default_rng(0)
    draws = [box.draw(rng) for _ in range(300)]
    assert {p["fixed"] for p in draws} == {0.1}
    values = np.array([p["a"] for p in draws])
    assert 2.0 <= values.min() < 2.05
    assert 2.95 < values.max() <= 3.0


def test_around_is_relative():
    assert around(2.0, 0.05) == pytest.approx((1.9, 2.1))
