"""A rollout is the repeated forecast, and what runs away is said."""

from functools import partial

import numpy as np
import pytest

import rdjepa
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.adaptation.rollout import rollout, stable_frames
from rdjepa.errors import ArgumentError, DataError, InsufficientMemoryError
from rdjepa.forecasters.linear import Linear

CONTEXT = np.random.default_rng(0).uniform(0.5, 1.0, (4, 3, 3, 2)).astype(np.float32)


def powers(factor):
    """The forecast of a field that is multiplied by a factor in every interval."""
    steps = factor ** np.arange(1, 6).reshape(1, 5, 1, 1, 1)
    return lambda context: context[:, -1:] * steps


def linear(weights):
    """A forecaster whose first frame is a weighted sum of the last four, and whose others repeat that."""
    model = Linear()
    last = np.eye(4)[3]
    window = np.eye(4)
    for h in range(5):
        last = np.asarray(weights) @ window
        window = np.vstack([window[1:], last])
        model.weights[h] = model.weights.new_tensor(last)
    return Forecaster(model, rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)), {"range": [[-1.0] * 2, [1.0] * 2]})


@pytest.mark.parametrize("length", [1, 4, 5, 6, 23])
def test_a_linear_forecast_is_raised_to_its_powers(length):
    made = rollout(powers(0.9), CONTEXT, length)
    expected = CONTEXT[-1] * 0.9 ** np.arange(1, length + 1).reshape(-1, 1, 1, 1)
    assert made.dtype == np.float32 and np.allclose(made, expected, rtol=1e-5)


def test_a_recurrence_over_four_frames_goes_on_through_every_seam():
    weights = np.array([0.1, -0.3, 0.2, 0.9])
    frames = list(CONTEXT.astype(float))
    for _ in range(17):
        frames.append(np.tensordot(weights, np.stack(frames[-4:]), 1))
    forecaster = linear(weights)
    made = forecaster.rollout(CONTEXT, 17)
    assert np.allclose(made, np.stack(frames[4:]), atol=1e-5)
    assert np.allclose(made[:5], forecaster.forecast(CONTEXT), atol=1e-6)
    assert forecaster.stable_frames(CONTEXT, made) == 17


def test_a_longer_context_keeps_its_length():
    lengths = []

    def forecast(context):
        lengths.append(context.shape[1])
        return context[:, [0]].repeat(5, axis=1) + np.arange(1, 6, dtype=np.float32).reshape(-1, 1, 1, 1)

    frames = np.arange(7, dtype=np.float32).reshape(-1, 1, 1, 1)
    made = rollout(forecast, frames, 12)[:, 0, 0, 0]
    assert lengths == [7, 7, 7] and made.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5, 6]


def test_contexts_do_not_influence_each_other():
    both = rollout(powers(1.1), np.stack([CONTEXT, 2 * CONTEXT]), 12)
    assert np.array_equal(both[0], rollout(powers(1.1), CONTEXT, 12))
    assert np.allclose(both[1], 2 * both[0])


def test_a_trajectory_that_is_no_longer_finite_ends_and_the_others_go_on():
    made = rollout(powers(1e10), np.stack([CONTEXT, 0 * CONTEXT]), 15)
    assert np.isfinite(made[0, :3]).all() and np.isnan(made[0, 5:]).all()
    assert not made[1].any()


def test_nothing_is_after_a_frame_that_is_not_finite():
    def missing(context, h):
        return context[:, -1:] * np.where(np.arange(5) == h, np.nan, 1.0).reshape(1, 5, 1, 1, 1)

    for h in (0, 2, 4):
        made = rollout(partial(missing, h=h), CONTEXT, 12)
        assert np.isfinite(made[:h]).all() and np.isnan(made[h:]).all()


def test_stable_frames_end_one_width_outside_of_the_range():
    low, high = np.array([0.0, 0.0]), np.array([1.0, 2.0])
    made = np.zeros((6, 2, 2, 2))
    assert stable_frames(made, low, high) == 6
    for frame, component, value in ((4, 0, 2.01), (3, 1, -2.01), (2, 1, np.nan)):
        made[frame, 0, 0, component] = value
        assert stable_frames(made, low, high) == frame
    made[:] = 2.0
    assert stable_frames(made[..., :1], low[:1], high[:1]) == 6


def test_a_rollout_that_leaves_the_range_of_the_support_warns_from_which_frame():
    forecaster = linear([0, 0, 0, 1.2])
    context = np.ones((4, 3, 3, 2), dtype=np.float32)
    # 1.2^6 = 2.99 is within one width, 2, of the range from -1 to 1, and 1.2^7 = 3.58 is not
    with pytest.warns(UserWarning, match="not stable from frame 7 of 20"):
        made = forecaster.rollout(context, 20)
    assert np.isfinite(made).all() and len(made) == 20


@pytest.mark.parametrize("length", [0, -3, 2.5, "many", True])
def test_a_length_that_is_no_number_of_frames_is_refused(length):
    with pytest.raises(ArgumentError, match="expected frames to be a"):
        rollout(powers(1.0), CONTEXT, length)


def test_what_does_not_fit_into_memory_or_is_no_context_is_refused():
    with pytest.raises(InsufficientMemoryError, match="frames"):
        rollout(powers(1.0), CONTEXT, 2**31 - 1)
    with pytest.raises(DataError, match="finite context"):
        linear([0, 0, 0, 1.0]).rollout(CONTEXT * np.nan, 7)
    with pytest.raises(DataError, match="a context of shape"):
        linear([0, 0, 0, 1.0]).rollout(CONTEXT[:3], 7)
