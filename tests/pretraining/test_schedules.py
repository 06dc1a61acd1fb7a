import math

import pytest

from rdjepa.pretraining.schedules import cosine, ema_momentum, learning_rate


def test_learning_rate_of_the_paper():
    def rate(step):
        return learning_rate(step, 200_000, 5_000, 7e-5, 1e-6)

    assert rate(0) == pytest.approx(7e-5 / 5_000)
    assert rate(4_999) == pytest.approx(7e-5)
    assert rate(5_000) == pytest.approx(7e-5)
    assert rate(199_999) == pytest.approx(1e-6)
    assert all(rate(s) >= rate(s + 500) for s in range(5_000, 199_000, 500))


def test_momentum_of_the_paper():
    assert ema_momentum(0, 200_000, 0.996, 0.99995) == pytest.approx(0.996)
    assert ema_momentum(199_999, 200_000, 0.996, 0.99995) == pytest.approx(0.99995)


def test_cosine_is_halfway_in_the_middle():
    assert cosine(2.0, 4.0, 0.5) == pytest.approx(3.0)
    assert cosine(2.0, 4.0, 7.0) == 4.0


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_between_its_ends_a_schedule_is_the_cosine_of_the_share_of_its_steps(quarter):
    expected = 1 + 4 * (1 + math.cos(math.pi * quarter / 4))  # from 9 to 1
    assert learning_rate(10 + 25 * quarter, 111, 10, 9.0, 1.0) == pytest.approx(expected)
    assert ema_momentum(25 * quarter, 101, 9.0, 1.0) == pytest.approx(expected)


def test_a_run_of_one_step_has_the_values_of_the_beginning():
    assert learning_rate(0, 1, 0, 9.0, 1.0) == ema_momentum(0, 1, 9.0, 1.0) == 9.0
