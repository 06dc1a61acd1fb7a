"""Magnified motion: what it leaves alone, what it makes of slow frames, and what a network's error becomes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rdjepa.forecasters.rd_jepa import EncoderTuned, RDJEPAForecaster
from rdjepa.models.magnification import SMALLEST, about, magnification
from rdjepa.models.rdjepa import RDJEPA, ModelConfig
from tiny import TINY


def contexts(*motions: float, side: int = 16) -> torch.Tensor:
    """Return a context for each motion, the root mean square change from its oldest frame to its newest."""
    torch.manual_seed(0)
    start, change = torch.randn(2, len(motions), 1, 2, side, side)
    change = change / change.square().mean(dim=(1, 2, 3, 4), keepdim=True).sqrt()
    times = torch.linspace(0, 1, 4)[None, :, None, None, None]
    return start + torch.tensor(motions)[:, None, None, None, None] * times * change


def change(frames: torch.Tensor) -> torch.Tensor:
    """Return the root mean square change of every context."""
    return (frames[:, -1] - frames[:, 0]).square().mean(dim=(1, 2, 3)).sqrt()


def magnified(context: torch.Tensor, motion: float) -> torch.Tensor:
    """Return a magnified context."""
    return about(context[:, -1:], context, magnification(context, motion))


def test_slow_contexts_move_as_asked_and_fast_ones_are_not_touched():
    context = contexts(0.01, 0.1, 0.5, 2.0)
    found = magnified(context, 0.5)
    torch.testing.assert_close(change(found[:2]), torch.full((2,), 0.5))
    assert torch.equal(found[2:], context[2:])
    assert torch.equal(found[:, -1], context[:, -1])  # the newest frame is what it was


def test_nothing_is_magnified_with_no_motion():
    context = contexts(0.0, 0.01, 2.0)
    assert torch.equal(magnified(context, 0.0), context)


def test_a_field_at_rest_is_not_divided_by_zero():
    context = contexts(0.0)
    assert magnification(context, 0.5).item() == pytest.approx(0.5 / SMALLEST)
    assert torch.equal(magnified(context, 0.5), context)


def test_samples_do_not_depend_on_each_other():
    context = contexts(0.01, 0.3, 2.0)
    apart = torch.cat([magnified(each[None], 0.5) for each in context])
    assert torch.equal(magnified(context, 0.5), apart)


def test_a_constant_that_is_added_to_fields_changes_no_factor():
    context = contexts(0.05, 0.2).double()
    torch.testing.assert_close(magnification(context + 3.0, 0.5), magnification(context, 0.5))


def test_reduced_again_by_the_same_factor_frames_are_what_they_were():
    context = contexts(0.01, 0.2, 2.0).double()
    factor = magnification(context, 0.5)
    enlarged = about(context[:, -1:], context, factor)
    torch.testing.assert_close(about(context[:, -1:], enlarged, 1 / factor), context)


def test_magnified_frames_are_to_first_order_those_of_fewer_frames():
    def frames(interval: float) -> torch.Tensor:
        times = interval * torch.arange(-3, 1, dtype=torch.float64)[None, :, None, None, None]
        return torch.sin(times + torch.linspace(0, 6, 256, dtype=torch.float64).view(1, 1, 1, 16, 16))

    errors = []
    for interval in (0.04, 0.02, 0.01):
        slow = frames(interval)
        seen = about(slow[:, -1:], slow, torch.full((1, 1, 1, 1, 1), 4.0, dtype=torch.float64))
        errors.append(float((seen - frames(4 * interval)).abs().max()))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2, atol=0.1)


@pytest.fixture
def network() -> RDJEPA:
    """Return a tiny network without pretraining."""
    torch.manual_seed(0)
    return RDJEPA(TINY).eval()


@pytest.mark.parametrize("kind", [RDJEPAForecaster, EncoderTuned])
def test_a_forecaster_magnifies_forecasts_and_reduces(network: RDJEPA, kind: type[RDJEPAForecaster]):
    forecaster = kind(network).eval()
    context = contexts(0.02, 2.0, side=TINY.grid)
    factor = magnification(context, 0.5)
    with torch.no_grad():
        enlarged = forecaster(about(context[:, -1:], context, factor))
        forecaster.config = replace(network.config, motion=0.5)
        torch.testing.assert_close(forecaster(context), about(context[:, -1:], enlarged, 1 / factor))


def test_of_slow_frames_a_forecaster_changes_no_more_than_a_network_does_of_fast_ones(network: RDJEPA):
    forecaster = RDJEPAForecaster(network).eval()
    forecaster.config = replace(network.config, motion=0.5)
    context = contexts(0.5, side=TINY.grid)
    slow = about(context[:, -1:], context, torch.full((1, 1, 1, 1, 1), 0.01))
    with torch.no_grad():
        ratio = (forecaster(slow) - slow[:, -1:]).norm() / (forecaster(context) - context[:, -1:]).norm()
    assert float(ratio) == pytest.approx(0.01, rel=1e-3)


def test_motion_is_part_of_the_configuration_where_it_is_not_the_papers():
    assert "motion" not in TINY.to_dict()
    moving = replace(TINY, motion=0.5)
    assert ModelConfig.from_dict(moving.to_dict()) == moving
