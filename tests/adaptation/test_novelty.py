"""Distances from the support, in units of what is known to be alike."""

import numpy as np
import pytest

from rdjepa.adaptation.novelty import embed, familiar, last_contexts
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.familiar import Familiar
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.rdjepa import build


def rows(*values):
    return np.array(values, dtype=np.float32)[:, None]


def test_novelty_is_the_distance_from_the_nearest_window_in_units_of_the_reach():
    known = Familiar(np.array([[0.0, 0.0], [4.0, 0.0]]), 0.5)
    assert np.allclose(known.novelty(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 2.0]])), [0, 2, 4])


def test_the_reach_is_that_of_the_windows_of_the_calibration():
    found = familiar(rows(3, 4, 5, 6), [4], rows(5, 8, 2.5))
    assert found.reach == 2 and np.allclose(found.novelty(rows(10)), 2)


def test_without_a_calibration_it_is_that_between_trajectories_or_between_windows_that_share_no_frame():
    assert familiar(rows(0, 1, 7, 9), [2, 2]).reach == 8  # 9 is 8 away from 1, the nearest of the other
    assert familiar(rows(*range(20)), [20]).reach == 9
    assert familiar(rows(*range(4)), [4]).reach == 3  # all overlap


def test_windows_of_one_trajectory_are_apart_where_they_share_no_frame():
    latents = np.random.default_rng(0).standard_normal((23, 2))
    apart = [
        min(np.linalg.norm(one - other) for j, other in enumerate(latents) if abs(i - j) >= FORECASTING.length)
        for i, one in enumerate(latents)
    ]
    assert familiar(latents, [23]).reach == pytest.approx(max(apart))


@pytest.mark.parametrize("frames", [9, 14])
def test_contexts_of_whole_windows_and_the_last_ones_are_all_contexts(frames):
    fields = np.random.default_rng(frames).standard_normal((frames, 2, 2, 1))
    every = np.stack([fields[start : start + 4] for start in range(frames - 3)])
    found = np.concatenate([FORECASTING.stack(fields).context, last_contexts(fields)])
    assert np.array_equal(found, every)


def test_a_support_of_equal_windows_makes_everything_else_new():
    assert (
        familiar(rows(2, 2), [1, 1]).novelty(rows(2, 3)).tolist()[0]
        == 0
        < 1
        < familiar(rows(2, 2), [2]).novelty(rows(3))
    )


def test_a_combination_is_described_by_its_network_without_any_fit(tiny, monkeypatch):
    network, normalizer = RDJEPAForecaster(build("tiny", seed=0)), Normalizer((0.0, 0.0), (1.0, 1.0))
    contexts = np.random.default_rng(0).standard_normal((2, 4, tiny.grid, tiny.grid, 2)).astype(np.float32)
    monkeypatch.setattr(Equation, "fitted", None)
    alone, combined = (embed(model, contexts, normalizer) for model in (network, Combined(network)))
    assert alone is not None and combined is not None and np.array_equal(alone, combined)


def test_what_no_support_could_be_is_refused():
    for latents, reach in ((rows(1)[0], 1.0), (rows(1)[:0], 1.0), (rows(1), -1.0), (rows(1), float("nan"))):
        with pytest.raises(ArgumentError, match="expected"):
            Familiar(latents, reach)
