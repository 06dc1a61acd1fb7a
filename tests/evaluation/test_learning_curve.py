import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.evaluation import curve_file
from rdjepa.evaluation.learning_curve import LearningCurve, Measured, counts, draws, measure, spans
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


def test_rows_come_back_from_their_file_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [Measured("a, b", 1, 0, h, 0.1 / h, "x") for h in range(1, 6)]
    assert curve_file.read(curve_file.write(rows, path)) == rows and curve_file.is_curve(path)
    whole = path.read_text()
    for text in (whole.replace("0.1,", "nan,"), whole + "a,1", whole.replace(",1,", ",one,"), "a,b\n1,2\n", "\x00\xff"):
        path.write_text(text, "latin-1")
        with pytest.raises(DataError, match=r"expected .*; give a file that `rdjepa learning-curve` wrote"):
            curve_file.read(path)
    with pytest.raises(DataError, match="no such file"):
        curve_file.read(tmp_path / "missing.csv")


def test_spans_of_time_part_a_trajectory():
    whole = Trajectory(np.random.default_rng(0).standard_normal((41, 4, 4, 2)).astype(np.float32), np.arange(41.0))
    parts = spans(whole)
    assert [len(part.fields) for part in parts] == [10, 10, 10, 11]
    assert np.array_equal(np.concatenate([part.fields for part in parts]), whole.fields)
    assert np.array_equal(np.concatenate([part.times for part in parts]), whole.times)
    assert len(spans(dataclasses.replace(whole, fields=whole.fields[:18]))) == 2
    with pytest.raises(DataError, match="or one of 18 frames to be cut"):
        spans(dataclasses.replace(whole, fields=whole.fields[:17]))


def curve(errors, trivial, draws=3, noise=0.0):
    """A curve with given errors by K, and draws that differ by `noise`."""
    rows = [
        Measured("stub", k, draw, 1, error * (1 + noise * (draw - 1) * (-1) ** place))
        for place, (k, error) in enumerate(errors.items())
        for draw in range(draws)
    ]
    rows += [Measured(name, 0, draw, 1, error) for name, error in trivial.items() for draw in range(draws)]
    return LearningCurve(tuple(rows), "stub", 5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            curve({1: 0.4, 2: 0.2}, {"persistence": 1.0}),
            "K is not enough yet: from K = 1 to K = 2 the error changes by -50%",
        ),
        (curve({1: 0.4, 2: 0.398}, {"persistence": 1.0}), "K = 1 is about enough"),
        (curve({1: 0.4, 2: 0.35}, {"persistence": 1.0}, noise=0.3), "K = 1 is about enough"),
        (
            curve({1: 0.4, 2: 0.5}, {"persistence": 1.0}),
            "More of them make it worse: from K = 1 to K = 2",
        ),
        (curve({1: 0.4, 2: 0.2}, {"persistence": 0.1}), "not below that of persistence, 0.1: give more updates"),
        (curve({1: 0.4, 2: 0.2}, {"persistence": 0.3, "extrapolation": 0.1}), "--base linear"),
        (curve({1: 0.4}, {"persistence": 1.0}), "record at least one more trajectory"),
        (curve({1: 0.4, 2: 0.2}, {"persistence": 1.0}, draws=1), "raise --draws"),
    ],
)
def test_the_advice_follows_the_errors_and_is_one_sentence(given, words):
    advice = given.advice()
    assert words in advice and advice.endswith(".") and advice.count(". ") == 0 and "\n" not in advice


def test_a_better_regression_is_named():
    given = curve({1: 0.4, 2: 0.399}, {"persistence": 1.0})
    rows = (*given.rows, *(Measured("rates", 2, draw, 1, 0.05) for draw in range(3)))
    assert "remains (rates has 0.05)" in dataclasses.replace(given, rows=rows).advice()


def test_too_few_trajectories_and_draws_are_refused():
    with pytest.raises(DataError, match="one of them to be left out, got 1"):
        draws(1, 1)
    with pytest.raises(ArgumentError, match="expected draws to be"):
        draws(3, 0)


def test_bars_are_those_of_paired_differences():
    given = curve({1: 0.4, 2: 0.2}, {}, draws=4, noise=0.1)
    falls = [0.4 * (1 + 0.1 * d) - 0.2 * (1 - 0.1 * d) for d in range(-1, 3)]
    mean = np.mean([0.4 * (1 + 0.1 * d) for d in range(-1, 3)])
    bar = 1.637744 * np.std(falls, ddof=1) / math.sqrt(4)  # the quantile 0.9 for three degrees of freedom
    assert given.fall() == pytest.approx((np.mean(falls) / mean, bar / mean), rel=1e-5)


def test_extrapolation_of_a_line_has_no_error():
    line = Trajectory(np.arange(1, 19, dtype=np.float32)[:, None, None, None] * np.ones((1, 4, 4, 2)), np.arange(18.0))
    found = {row.value for row in measure([line, line], {}, {"extrapolation": extrapolation}, number=1)}
    assert max(found) < 1e-6


def test_leaving_out_the_same_again_makes_no_bar_shorter():
    found = draws(3, 12)
    alike = [tuple(sorted(draw.left_out)) for draw in found]
    assert len(set(alike)) == 3

    def curve(number):
        errors = {left_out: 0.1 * (1 + place) for place, left_out in enumerate(alike[:3])}
        return LearningCurve(
            tuple(
                Measured("stub", k, draw, 1, errors[alike[draw]] if k == 1 else 0.05)
                for draw in range(number)
                for k in (1, 2)
            ),
            "stub",
            3,
        )

    assert curve(3).fall() == pytest.approx(curve(12).fall())
    assert curve(3).fall()[1] > 0.1
