"""Distances from the support, in units of what is known to be alike."""

import numpy as np
import torch

from rdjepa.adaptation.novelty import Familiar, familiar
from rdjepa.data.statistics import Normalizer

UNIT = Normalizer((0.0, 0.0), (1.0, 1.0), "support")


class Mean(torch.nn.Module):
    """Describes a context by the mean of its newest frame."""

    def embed(self, context):
        return context[:, -1].mean(dim=(-2, -1))


class Blind(torch.nn.Module):
    def embed(self, context):
        return None


def levels(*values):
    """A trajectory whose frame t has the value values[t] everywhere."""
    return np.tile(np.array(values, dtype=np.float32).reshape(-1, 1, 1, 1), (1, 4, 4, 2))


def test_novelty_is_the_distance_from_the_nearest_window_in_units_of_the_reach():
    known = Familiar(np.array([[0.0, 0.0], [4.0, 0.0]]), 0.5)
    assert np.allclose(known.novelty(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 2.0]])), [0, 2, 4])


def test_the_reach_is_that_of_the_trajectories_of_the_calibration():
    support = [levels(*range(12))]  # newest frames of the four windows are 3, 4, 5 and 6
    found = familiar(Mean(), support, UNIT, [levels(*range(5, 14))])  # one window, 8: it is 2 away in both components
    assert np.allclose(found.latents[:, 0], [3, 4, 5, 6]) and np.isclose(found.reach, 2 * np.sqrt(2))


def test_without_a_calibration_it_is_that_between_trajectories_or_between_windows_that_share_no_frame():
    first, second = levels(*range(9)), levels(*np.arange(9) + 7.0)
    assert np.isclose(familiar(Mean(), [first, second], UNIT).reach, 7 * np.sqrt(2))
    assert np.isclose(familiar(Mean(), [levels(*range(20))], UNIT).reach, 9 * np.sqrt(2))
    assert np.isclose(familiar(Mean(), [levels(*range(12))], UNIT).reach, 3 * np.sqrt(2))  # all overlap


def test_a_forecaster_without_a_pretrained_encoder_has_none():
    assert familiar(Blind(), [levels(*range(12))], UNIT) is None
