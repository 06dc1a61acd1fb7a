import numpy as np
import pytest

from rdjepa.errors import DataError
from rdjepa.evaluation.growth import growth
from rdjepa.evaluation.metrics import relative_l2

RNG = np.random.default_rng(0)
TRUTH = RNG.standard_normal((8, 6, 6, 2))
NEWEST = RNG.standard_normal((6, 6, 2))


def test_errors_are_those_of_the_metric_frame_by_frame():
    made = TRUTH + RNG.standard_normal(TRUTH.shape)
    found = growth(made, TRUTH, NEWEST, np.array([0.5, 0.0]))
    for frame, truth in enumerate(TRUTH):
        assert found.forecast[frame] == pytest.approx(relative_l2(made[frame], truth))
        assert found.persistence[frame] == pytest.approx(relative_l2(NEWEST, truth))
        assert found.climatology[frame] == pytest.approx(relative_l2(np.broadcast_to([0.5, 0.0], truth.shape), truth))


def test_skill_ends_at_the_first_frame_that_is_no_better_than_either():
    made = TRUTH.copy()
    assert growth(made, TRUTH, NEWEST, np.zeros(2)).skilful == 8
    made[5] = NEWEST
    assert growth(made, TRUTH, NEWEST, np.zeros(2)).skilful == 5
    made[3] = 0
    assert growth(made, TRUTH, NEWEST, np.zeros(2)).skilful == 3
    made[1] = np.nan
    assert growth(made, TRUTH, NEWEST, np.zeros(2)).skilful == 1


def test_only_frames_that_both_have_are_compared():
    assert len(growth(TRUTH, TRUTH[:3], NEWEST, np.zeros(2)).forecast) == 3
    assert len(growth(TRUTH[:2], TRUTH, NEWEST, np.zeros(2)).forecast) == 2
    with pytest.raises(DataError, match="start earlier"):
        growth(TRUTH, TRUTH[:0], NEWEST, np.zeros(2))
