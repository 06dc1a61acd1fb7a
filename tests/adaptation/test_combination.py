from dataclasses import replace

import numpy as np
import pytest
import torch

from rdjepa.adaptation.combination import correcting, fit_linear, shares
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.linear import Corrected
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.rdjepa import RDJEPA
from tiny import TINY

PLAIN, CPU = Normalizer((0.0, 0.0), (1.0, 1.0)), torch.device("cpu")
SUPPORT = [
    np.random.default_rng(seed).standard_normal((frames, 8, 8, 2)).cumsum(0).astype(np.float32)
    for seed, frames in enumerate((20, 14, 17))
]


def windows(fields):
    return FORECASTING.stack(torch.from_numpy(fields).movedim(-1, 1))


def key(context):
    return context.contiguous().numpy().tobytes()


class Told(ForecastModel):
    """A network that knows what follows every window of some trajectories, up to errors of its own."""

    grid, name, preset = 8, "told", "tiny"

    def __init__(self, trajectories, error):
        super().__init__()
        generator, self.known = torch.Generator().manual_seed(1), {}
        for fields in trajectories:
            for context, targets in zip(*windows(fields), strict=True):
                self.known[key(context)] = targets + error * torch.randn(targets.shape, generator=generator)

    @classmethod
    def from_preset(cls, preset):
        return cls([], 0.0)

    from_settings = from_preset

    def settings(self):
        return {}

    def predict(self, *features):
        return torch.stack([self.known[key(context)] for context in features[0]])

    def parameter_groups(self):
        return []


def test_a_network_without_error_has_all():
    assert torch.equal(shares(Told(SUPPORT, 0.0), SUPPORT, PLAIN, CPU), torch.ones(HORIZONS, 2))


@pytest.mark.parametrize("error", [0.3, 1.0, 3.0])
def test_no_other_shares_have_a_smaller_error_where_each_trajectory_is_forecast_from_the_others(error):
    network = Told(SUPPORT, error)
    best = shares(network, SUPPORT, PLAIN, CPU)

    def error_of(chosen):
        total = torch.zeros(HORIZONS, 2)
        for i, fields in enumerate(SUPPORT):
            linear = fit_linear(SUPPORT[:i] + SUPPORT[i + 1 :], PLAIN)
            context, targets = windows(fields)
            total += (Corrected(network, linear.beside(chosen))(context) - targets).square().sum((0, 3, 4))
        return total

    assert 0 < best.mean() < 1
    for step in (-0.01, 0.01):
        assert (error_of(best) <= error_of((best + step).clamp(0, 1))).all()


def test_many_trajectories_are_forecast_in_parts(monkeypatch):
    monkeypatch.setattr("rdjepa.adaptation.combination.PARTS", 2)
    network, (one, two, three) = Told(SUPPORT, 1.0), SUPPORT
    products = squares = torch.zeros(HORIZONS, 2, dtype=torch.float64)
    for learned, others in (([two], [one, three]), ([one, three], [two])):
        linear = fit_linear(learned, PLAIN)
        for context, targets in map(windows, others):
            apart, missing = network(context) - linear(context), targets - linear(context)
            products, squares = products + (apart * missing).sum((0, 3, 4)), squares + apart.square().sum((0, 3, 4))
    expected = (products / squares).clamp(0, 1).float()
    torch.testing.assert_close(shares(network, SUPPORT, PLAIN, CPU), expected, atol=1e-4, rtol=0)


def test_units_and_constants_do_not_matter():
    units = Normalizer((3.0, -7.0), (0.5, 20.0))
    other = [(fields * [0.5, 20.0] + [3.0, -7.0]).astype(np.float32) for fields in SUPPORT]

    class Same(Told):
        def predict(self, *features):
            return features[0][:, -1:].expand(-1, HORIZONS, -1, -1, -1)

    found, scaled = shares(Same([], 0.0), SUPPORT, PLAIN, CPU), shares(Same([], 0.0), other, units, CPU)
    torch.testing.assert_close(found, scaled, atol=1e-3, rtol=0)


def test_one_trajectory_cannot_tell():
    with pytest.raises(ArgumentError, match="expected trajectories"):
        shares(Told(SUPPORT, 0.1), SUPPORT[:1], PLAIN, CPU)


def test_a_network_that_corrects_sees_frames_as_they_are():
    network = RDJEPAForecaster(RDJEPA(replace(TINY, motion=0.5)))
    made = correcting(network, SUPPORT, PLAIN)
    assert made.network is network and network.config == TINY
    assert torch.equal(made.linear.weights, fit_linear(SUPPORT, PLAIN).weights)
