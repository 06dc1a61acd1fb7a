import math

import pytest
import torch

from rdjepa.forecasters.base import CONTEXT, HORIZONS, ForecastModel
from rdjepa.forecasters.linear import Corrected, Linear


def oscillation(frames=20, points=16, step=0.4, seed=0):
    """Every point turns at the same rate with its own phase: x[t + 1] = 2 cos(step) x[t] - x[t - 1] exactly."""
    phase = 2 * math.pi * torch.rand(points, points, generator=torch.Generator().manual_seed(seed))
    time = torch.arange(frames)[:, None, None] * step
    return torch.stack([torch.cos(time + phase), 0.5 + torch.sin(time + phase)], dim=1)


def windows(fields):
    cut = fields.unfold(0, CONTEXT + HORIZONS, 1).movedim(-1, 1)
    return cut[:, :CONTEXT], cut[:, CONTEXT:]


class Constant(ForecastModel):
    """A network whose forecast is one trained number."""

    name, preset = "scratch", "tiny"

    def __init__(self):
        super().__init__()
        self.value = torch.nn.Parameter(torch.tensor(0.5))

    @classmethod
    def from_preset(cls, preset):
        return cls()

    from_settings = from_preset

    def settings(self):
        return {}

    def predict(self, *features):
        (context,) = features
        return self.value.expand(len(context), HORIZONS, *context.shape[2:])

    def parameter_groups(self):
        return [{"params": [self.value], "lr": 1.0}]


def test_linear_is_exact_for_harmonic_oscillation_with_an_offset():
    linear = Linear.fit([oscillation()])
    context, future = windows(oscillation(seed=1))
    assert (linear(context) - future).abs().max() < 1e-2  # the ridge keeps it from 0
    assert linear.scale.max() < 1e-2


def test_linear_is_the_least_squares_solution():
    noisy = oscillation() + 0.3 * torch.randn(20, 2, 16, 16, generator=torch.Generator().manual_seed(2))
    linear = Linear.fit([noisy[:12], noisy[8:]])
    parts = [windows(noisy[:12]), windows(noisy[8:])]
    context, future = (torch.cat(each) for each in zip(*parts, strict=True))
    left = linear(context) - future
    torch.testing.assert_close(left.square().mean((0, 3, 4)).sqrt(), linear.scale, rtol=1e-3, atol=1e-5)
    assert left.mean((0, 3, 4)).abs().max() < 1e-4  # orthogonal to the constant
    assert torch.einsum("bnchw,bkchw->nck", left, context).abs().max() / left[:, 0, 0].numel() < 1e-4


def test_corrected_adds_the_networks_output_in_units_of_what_is_left():
    linear = Linear.fit([oscillation() + 0.1 * torch.randn(20, 2, 16, 16, generator=torch.Generator().manual_seed(3))])
    model = Corrected(Constant(), linear)
    context, _ = windows(oscillation())
    expected = linear(context) + 0.5 * linear.scale[:, :, None, None]
    torch.testing.assert_close(model(context), expected)
    torch.testing.assert_close(model.predict(*model.features(context)), expected)
    assert (model.name, model.preset) == ("scratch", "tiny")
    assert [p for group in model.parameter_groups() for p in group["params"]] == [model.network.value]


def test_short_trajectories_and_rebuilding_without_a_network_are_refused():
    with pytest.raises(ValueError, match="at least 9 frames, got 8"):
        Linear.fit([oscillation(8)])
    with pytest.raises(ValueError, match="build the network first"):
        Corrected.from_preset("nano")
    with pytest.raises(ValueError, match="restore the network first"):
        Corrected.from_settings({})
