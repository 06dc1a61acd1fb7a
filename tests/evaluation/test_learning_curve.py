import dataclasses
import math

import numpy as np
import pytest

from rdjepa.evaluation.learning_curve import LearningCurve
from rdjepa.evaluation.leaving_out import Measured, draws


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


@pytest.mark.parametrize("errors", [{1: 0.4, 2: 0.2}, {1: 0.4, 2: 0.4}, {1: 0.4, 2: 0.5}])
@pytest.mark.parametrize("trivial", [{"persistence": 1.0}, {"persistence": 0.1}, {"extrapolation": 0.1}])
def test_of_what_is_fitted_in_closed_form_no_updates_are_advised(errors, trivial):
    advice = dataclasses.replace(curve(errors, trivial), trained=False).advice()
    assert "updates" not in advice and "base" not in advice and advice.endswith(".")


def test_a_better_regression_is_named():
    given = curve({1: 0.4, 2: 0.399}, {"persistence": 1.0})
    rows = (*given.rows, *(Measured("rates", 2, draw, 1, 0.05) for draw in range(3)))
    assert "remains (rates has 0.05)" in dataclasses.replace(given, rows=rows).advice()


def test_bars_are_those_of_paired_differences():
    given = curve({1: 0.4, 2: 0.2}, {}, draws=4, noise=0.1)
    falls = [0.4 * (1 + 0.1 * d) - 0.2 * (1 - 0.1 * d) for d in range(-1, 3)]
    mean = np.mean([0.4 * (1 + 0.1 * d) for d in range(-1, 3)])
    bar = 1.637744 * np.std(falls, ddof=1) / math.sqrt(4)  # the quantile 0.9 for three degrees of freedom
    assert given.fall() == pytest.approx((np.mean(falls) / mean, bar / mean), rel=1e-5)


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
