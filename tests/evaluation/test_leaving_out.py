import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.evaluation import curve_file
from rdjepa.evaluation.learning_curve import LearningCurve
from rdjepa.evaluation.leaving_out import counts, draws, measure, spans
from rdjepa.forecasters.persistence import extrapolation, persistence


def constant(level, frames=9, size=4):
    return Trajectory(np.full((frames, size, size, 2), level, np.float32), np.arange(float(frames)))


def halving(error):
    """A fit whose forecast of constant fields has the relative error `error(K)` exactly."""
    return lambda support: lambda context: persistence(context) * (1 + error(len(support)))


@pytest.mark.parametrize(
    ("available", "tried"),
    [(1, (1,)), (2, (1, 2)), (4, (1, 2, 4)), (9, (1, 2, 5, 9)), (10, (1, 2, 5, 10)), (60, (1, 2, 5, 10, 20, 50, 60))],
)
def test_the_series_ends_with_all_that_are_available(available, tried):
    assert counts(available) == tried


@pytest.mark.parametrize(("trajectories", "number"), [(2, 1), (5, 5), (7, 3), (12, 4)])
def test_draws_part_the_trajectories_and_take_turns(trajectories, number):
    found = draws(trajectories, number, seed=3)
    assert found == draws(trajectories, number, seed=3)
    assert trajectories == 2 or found != draws(trajectories, number, seed=4)
    for draw in found:
        assert sorted(draw.order + draw.left_out) == list(range(trajectories)) and draw.left_out
    left = [i for draw in found for i in draw.left_out]
    assert len(set(left)) == min(len(left), trajectories)


def test_a_known_error_comes_back_for_every_k_and_draw():
    trajectories = [constant(level) for level in (1, 2, 3, 4, 5, 6)]
    rows = measure(trajectories, {"stub": halving(lambda k: 1 / (1 + k))}, {"persistence": persistence}, number=3)
    curve = LearningCurve(tuple(rows), "stub", 6)
    assert curve.counts == (1, 2, 5) and curve.names == ("persistence", "stub")
    for k in curve.counts:
        found = curve.summary("stub", k)
        assert found == pytest.approx((1 / (1 + k),) * 3, rel=1e-5)
    assert curve.summary("persistence", 0) == (0, 0, 0) and curve.summary("stub", 0) is None
    fall, bar = curve.fall()
    assert fall == pytest.approx(0.5, rel=1e-4) and bar == 0.02


def test_supports_are_nested_and_never_hold_what_is_measured_on():
    trajectories = [constant(level) for level in range(1, 8)]
    seen = []

    def fit(support):
        levels = [float(each.fields.flat[0]) for each in support]

        def forecast(context):
            seen.append((levels, float(context.flat[0])))
            return persistence(context)

        return forecast

    measure(trajectories, {"stub": fit}, {}, number=2)
    assert all(unseen not in levels for levels, unseen in seen)
    supports = [levels for levels, _ in seen]
    assert all(a == b[: len(a)] for a, b in pairwise(supports) if len(a) <= len(b))


def test_rows_are_kept_after_every_fit_and_known_ones_are_not_measured_again(tmp_path):
    trajectories, calls = [constant(level) for level in (1, 2, 3)], []

    def fit(support):
        calls.append(len(support))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return halving(lambda k: 0.1 * k)(support)

    path = tmp_path / "rows.csv"
    given: dict = {"number": 2, "identity": lambda name, support, left_out: f"{name}{support}{left_out}"}
    with pytest.raises(KeyboardInterrupt):
        measure(trajectories, {"stub": fit}, {}, keep=lambda rows: curve_file.write(rows, path), **given)
    rows = measure(trajectories, {"stub": fit}, {}, known=curve_file.read(path), **given)
    assert calls == [1, 2, 2, 1, 2]
    assert rows == measure(trajectories, {"stub": halving(lambda k: 0.1 * k)}, {}, **given)


def test_spans_of_time_part_a_trajectory():
    whole = Trajectory(np.random.default_rng(0).standard_normal((41, 4, 4, 2)).astype(np.float32), np.arange(41.0))
    parts = spans(whole)
    assert [len(part.fields) for part in parts] == [10, 10, 10, 11]
    assert np.array_equal(np.concatenate([part.fields for part in parts]), whole.fields)
    assert np.array_equal(np.concatenate([part.times for part in parts]), whole.times)
    assert len(spans(dataclasses.replace(whole, fields=whole.fields[:18]))) == 2
    with pytest.raises(DataError, match="or one of 18 frames to be cut"):
        spans(dataclasses.replace(whole, fields=whole.fields[:17]))
    whole.fields[10:20, ..., 1] = 3
    with pytest.raises(DataError, match="component 1 between 3 and 3 in frames 10 to 19, a span of time of the only"):
        spans(whole)


def test_too_few_trajectories_and_draws_are_refused():
    with pytest.raises(DataError, match="one of them to be left out, got 1"):
        draws(1, 1)
    with pytest.raises(ArgumentError, match="expected draws to be"):
        draws(3, 0)


def test_extrapolation_of_a_line_has_no_error():
    line = Trajectory(np.arange(1, 19, dtype=np.float32)[:, None, None, None] * np.ones((1, 4, 4, 2)), np.arange(18.0))
    found = {row.value for row in measure([line, line], {}, {"extrapolation": extrapolation}, number=1)}
    assert max(found) < 1e-6


def test_draws_that_leave_out_the_same_shuffle_the_others_anew():
    found = draws(10, 10)
    for one, again in zip(found[:5], found[5:], strict=True):
        assert one.left_out == again.left_out and one.order != again.order


def test_at_most_eight_windows_of_a_trajectory_are_measured_on():
    seen = []

    def forecast(context):
        seen.extend(context[:, 0, 0, 0, 0].tolist())
        return persistence(context)

    rising = Trajectory(np.ones((23, 4, 4, 2), np.float32) * np.arange(1, 24)[:, None, None, None], np.arange(23.0))
    measure([rising, rising], {}, {"stub": forecast}, number=1)
    assert seen == [*range(1, 16, 2)]  # every other one of fifteen
