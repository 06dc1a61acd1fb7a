"""Evaluation through the public function."""

import numpy as np
import pytest

import rdjepa
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, Note
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.persistence import persistence

FIELDS = np.random.default_rng(0).standard_normal((2, 9, 8, 8, 2)).astype(np.float32)


def test_rows_of_a_function_are_told_apart_where_keys_have_the_same_regime_and_index():
    given = [
        Trajectory(fields, np.arange(9.0), key=Key(system, "test"))
        for system, fields in zip(("gray-scott", "barkley"), FIELDS, strict=True)
    ]
    with pytest.warns(Note, match="rows number them by position"):
        rows = rdjepa.evaluate(persistence, given, metrics=["mse"])
    assert [(row.regime, row.trajectory) for row in rows] == [("", 0)] * 5 + [("", 1)] * 5
    assert {row.regime for row in rdjepa.evaluate(persistence, given[:1])} == {"id"}


def test_a_trajectory_that_is_given_twice_is_said():
    with pytest.warns(
        UserWarning, match="trajectories that differ, got 1 of 3 that repeat another; give each once, as"
    ):
        rdjepa.evaluate(persistence, [*FIELDS, FIELDS[0]], metrics=["mse"])


@pytest.mark.parametrize("measure", [rdjepa.evaluate, rdjepa.compare])
def test_metrics_and_contexts_are_checked_before_anything_is_read(measure):
    forecaster = rdjepa.Forecaster(Equation(2), rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)))
    for wrong, words in (
        ({"metrics": []}, "metrics among"),
        ({"metrics": "mse"}, "metrics"),
        ({"context": 3}, "expected a context of at least 4 frames"),
    ):
        with pytest.raises(ArgumentError, match=words):
            measure(forecaster, "no such file", **wrong)


def test_that_a_forecaster_of_any_grid_resamples_nothing_is_said():
    forecaster = rdjepa.Forecaster(Equation(2), rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)))
    with pytest.warns(Note, match="takes fields of any grid, so none are resampled"):
        rdjepa.evaluate(forecaster, FIELDS, resample=True)
