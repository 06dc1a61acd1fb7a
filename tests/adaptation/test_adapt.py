from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from rdjepa import forecasters
from rdjepa.adaptation.adapt import (
    PROFILES,
    AdaptConfig,
    WindowOrder,
    Withheld,
    extended,
    standardized,
    tensors,
    train,
    windows,
)
from rdjepa.data.statistics import Normalizer
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.loss import forecast_loss
from rdjepa.forecasters.rd_jepa import LearningRates, RDJEPAForecaster
from rdjepa.io.tensors import load_tensors, save_tensors
from rdjepa.models.rdjepa import build
from tiny import TINY


def fields(frames=10, seed=0):
    return np.random.default_rng(seed).standard_normal((frames, TINY.grid, TINY.grid, 2)).astype(np.float32)


def forecaster(encoder=0.0, rate=1e-3):
    return RDJEPAForecaster(build("tiny", seed=1), LearningRates(encoder, rate, rate))


def test_paper_profile_is_table_s5():
    paper = PROFILES["paper"]
    assert (paper.steps, paper.batch, paper.weight_decay, paper.betas, paper.clip, paper.seed) == (
        5_000,
        4,
        1e-4,
        (0.9, 0.95),
        1.0,
        777,
    )
    with torch.device("meta"):
        rates = forecasters.build("rd-jepa", "paper").rates
        control = forecasters.build("scratch", "paper").rates
    assert rates == LearningRates(0.0, 1e-5, 2e-4)
    assert control == LearningRates(1e-4, 1e-4, 2e-4)


def test_trajectories_are_standardized_and_channels_come_first():
    (found,) = standardized([fields(9)], Normalizer((1.0, -2.0), (2.0, 4.0)))
    expected = (torch.from_numpy(fields(9)) - torch.tensor([1.0, -2.0])) / torch.tensor([2.0, 4.0])
    torch.testing.assert_close(found, expected.movedim(-1, 1))


def test_windows_hold_the_frames_right_after_the_context(tiny):
    x = fields(11)
    data = windows(forecaster(encoder=1e-3), tensors([x, fields(9, 1)]))
    assert data.targets.shape == (3 + 1, 5, 2, tiny.grid, tiny.grid)
    assert torch.equal(data.features[0][1, -1], torch.from_numpy(x[4]).movedim(-1, 0))
    assert torch.equal(data.targets[1, 0], torch.from_numpy(x[5]).movedim(-1, 0))


def test_frozen_encoder_runs_once_per_window_and_never_moves(tiny):
    model = forecaster()
    before = {k: v.clone() for k, v in model.encoder.state_dict().items()}
    seen = []
    model.encoder.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    data = windows(model, tensors([fields(10)]))
    train(model, data, AdaptConfig(steps=3, batch=2))
    assert sum(seen) == 2
    assert all(torch.equal(before[k], v) for k, v in model.encoder.state_dict().items())


def test_cached_latents_give_the_forecast_of_the_whole_model(tiny):
    model = forecaster()
    data = windows(model, tensors([fields(9)]))
    context = torch.from_numpy(fields(9)[:4]).movedim(-1, 1)[None]
    assert torch.allclose(model.predict(*data.features), model(context), atol=1e-4)


def test_windows_are_extended_before_those_that_are_rehearsed(tiny):
    model = forecaster()
    first, second, other = (tensors([fields(frames, seed)]) for seed, frames in enumerate((11, 10, 12)))
    found = extended(windows(model, first, other), windows(model, second))
    expected = windows(model, [*first, *second], other)
    assert found.own == expected.own == 5
    assert torch.equal(found.targets, expected.targets) and torch.equal(found.magnitudes, expected.magnitudes)
    for one, same in zip(found.features, expected.features, strict=True):
        torch.testing.assert_close(one, same)


@pytest.fixture
def drawn(monkeypatch):
    """The windows of every batch, by what stands for their magnitudes; the loss does not look at them."""
    found = []

    def loss(prediction, targets, magnitudes):
        found.append(magnitudes[:, 0, 0, 0, 0].tolist())
        return prediction.square().mean()

    monkeypatch.setattr("rdjepa.adaptation.adapt.forecast_loss", loss)
    return found


def numbered(data):
    numbers = torch.arange(float(len(data.targets)))
    return replace(data, magnitudes=numbers.reshape(-1, 1, 1, 1, 1) + 0 * data.magnitudes)


def test_half_of_every_batch_is_rehearsed_and_the_other_half_is_of_the_support(tiny, drawn):
    model = forecaster()
    data = windows(model, tensors([fields(12)]), tensors([fields(10, 1)]))
    standard = windows(model, tensors([fields(10, 1)]))
    assert data.own == 4 and torch.equal(data.targets[4:], standard.targets)
    assert all(
        torch.allclose(all_[4:], own, atol=1e-5) for all_, own in zip(data.features, standard.features, strict=True)
    )
    train(model, numbered(data), AdaptConfig(steps=6, batch=4))
    assert all(sorted(number >= data.own for number in batch) == [False, False, True, True] for batch in drawn)
    assert {number for batch in drawn for number in batch} == set(range(6))
    with pytest.raises(ArgumentError, match="a batch of two windows or more to rehearse in, got 1"):
        train(model, data, AdaptConfig(steps=1, batch=1))


def test_what_is_withheld_is_seen_after_the_first_updates_alone(tiny, drawn):
    model = forecaster()
    data = numbered(windows(model, tensors([fields(13)])))
    train(model, data, AdaptConfig(steps=10, batch=2), withheld=Withheld(np.array([1, 4]), 4))
    first, later = (np.concatenate(part) for part in (drawn[:4], drawn[4:]))
    assert {*first} == {0, 2, 3} and {*later} == {*range(5)}
    for start in (0, 5):  # the pass that was begun without them is not finished
        assert sorted(later[start : start + 5]) == [*range(5)]


@pytest.mark.parametrize("encoder", [0.0, 1e-3])
def test_one_window_is_learnt(tiny, encoder):
    model = forecaster(encoder, rate=3e-3)
    y, x = np.mgrid[0 : tiny.grid, 0 : tiny.grid] * 2 * np.pi / tiny.grid
    wave = np.stack([np.stack([np.sin(x - 0.3 * t), np.cos(y + 0.2 * t)], -1) for t in range(9)]).astype(np.float32)
    losses = train(model, windows(model, tensors([wave])), AdaptConfig(steps=40, batch=1))
    assert losses[-1] < 0.35 * losses[0]


def test_batch_entries_do_not_influence_each_other(tiny):
    model = forecaster().eval()
    a, b = torch.randn(2, 1, 4, 2, tiny.grid, tiny.grid)
    with torch.no_grad():
        assert torch.allclose(model(torch.cat([a, b]))[:1], model(a), atol=1e-5)


def test_averaged_weights_are_kept_and_both_are_observed_without_a_change_of_the_training(tiny):
    data = windows(forecaster(), tensors([fields(12)]))
    plain = forecaster()
    losses = train(plain, data, AdaptConfig(steps=4, batch=2))
    seen = {}

    def observe(updates, weights, model):
        assert not model.training
        seen[updates, weights] = [p.clone() for p in model.decoder.parameters()]

    averaged = forecaster()
    assert train(averaged, data, AdaptConfig(steps=4, batch=2, averaging=0.5), None, observe, (1, 2, 4)) == losses
    assert list(seen) == [(n, weights) for n in (1, 2, 4) for weights in ("last", "averaged")]
    assert all(torch.equal(*pair) for pair in zip(seen[1, "last"], seen[1, "averaged"], strict=True))
    # the coefficient of the second update is 2/11, below the given one
    for first, last, mean in zip(seen[1, "last"], seen[2, "last"], seen[2, "averaged"], strict=True):
        assert torch.allclose(mean, first * 2 / 11 + last * 9 / 11, atol=1e-6)
    for model, weights in ((plain, "last"), (averaged, "averaged")):
        assert all(torch.equal(*pair) for pair in zip(model.decoder.parameters(), seen[4, weights], strict=True))


@pytest.mark.parametrize("averaging", [-0.1, 1.0])
def test_averaging_that_never_moves_or_overshoots_is_refused(averaging):
    with pytest.raises(ValueError, match="expected averaging to be a number"):
        AdaptConfig(averaging=averaging)


def test_window_order_passes_over_all_windows_before_it_repeats_one():
    order = WindowOrder(6, 4, np.random.default_rng(0))
    drawn = np.concatenate([order.next() for _ in range(6)])
    for start in range(0, 24, 6):
        assert sorted(drawn[start : start + 6].tolist()) == list(range(6))


def test_loss_that_is_not_finite_stops_training(tiny):
    model = forecaster()
    data = windows(model, tensors([fields(9)]))
    data.targets[:] = torch.nan
    with pytest.raises(FloatingPointError, match="update 1"):
        train(model, data, AdaptConfig(steps=1, batch=1))


def test_a_gradient_that_is_not_finite_changes_no_weight(tiny):
    model = forecaster()
    data = windows(model, tensors([fields(9)]))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    next(model.decoder.parameters()).register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(FloatingPointError, match=r"finite loss and gradient, got .* at update 1"):
        train(model, data, AdaptConfig(steps=2, batch=1))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_unknown_forecaster_lists_the_known_ones():
    with pytest.raises(ValueError, match="rd-jepa, rd-jepa-decoder, scratch"):
        forecasters.build("oracle")


class Normalized(RDJEPAForecaster):
    """Counts means and variances of its forecasts in training."""

    layer: nn.BatchNorm2d

    def predict(self, *features):
        forecast = super().predict(*features)
        return self.layer(forecast.flatten(1, 2)).view_as(forecast)


def test_what_layers_count_in_training_is_kept_with_averaged_weights(tiny):
    found = []
    for averaging in (0.0, 0.9):
        model = Normalized(build("tiny", seed=1), LearningRates(0.0, 1e-3, 1e-3))
        model.layer = nn.BatchNorm2d(10)
        train(model, windows(model, tensors([fields(12)])), AdaptConfig(steps=3, batch=2, averaging=averaging))
        found.append([x.clone() for x in model.layer.buffers()])
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))
    assert found[0][0].abs().max() > 0


class Leveled(RDJEPAForecaster):
    """Follows the mean of its forecasts with a buffer that it assigns anew."""

    level: torch.Tensor

    def predict(self, *features):
        forecast = super().predict(*features)
        if self.training:
            self.level = 0.5 * self.level + forecast.detach().mean()
        return forecast - self.level


def test_a_buffer_that_is_assigned_anew_goes_with_averaged_weights_and_those_observed(tiny):
    found, seen = [], {}
    for averaging in (0.0, 0.9):
        model = Leveled(build("tiny", seed=1), LearningRates(0.0, 1e-3, 1e-3))
        model.register_buffer("level", torch.ones(()))
        config = AdaptConfig(steps=3, batch=2, averaging=averaging)

        def observe(updates, weights, model):
            seen[updates, weights] = model.level.item()

        train(model, windows(model, tensors([fields(12)])), config, None, observe, (2,))
        found.append(model.level.item())
    assert found[0] == found[1] != 1
    assert seen[2, "averaged"] == seen[2, "last"] not in (1, found[0])


class Blurred(RDJEPAForecaster):
    """Leaves out half of the features of its frozen encoder at random, and counts their means, in training."""

    norm: nn.BatchNorm1d

    def features(self, context):
        latent, frame = super().features(context)
        return nn.functional.dropout(self.norm(latent.mT).mT, 0.5, self.training), frame


def test_constant_features_are_those_of_a_network_that_does_not_train(tiny):
    model = Blurred(build("tiny", seed=1), LearningRates(0.0, 1e-3, 1e-3))
    model.norm = nn.BatchNorm1d(tiny.width)
    found = windows(model.train(), tensors([fields(10)]))
    assert torch.equal(found.features[0], windows(model.eval(), tensors([fields(10)])).features[0])
    assert not model.norm.num_batches_tracked
    seen = []
    model.decoder.register_forward_hook(lambda module, inputs, output: seen.append(module.training))
    train(model, found, AdaptConfig(steps=1, batch=1))
    assert seen == [True] and not model.training


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_complex_weights_are_trained(averaging, tmp_path):
    class Spectral(RDJEPAForecaster):
        def predict(self, *features):
            forecast = super().predict(*features)
            return torch.fft.irfft2(torch.fft.rfft2(forecast) * self.factor, s=forecast.shape[-2:])

        def parameter_groups(self):
            return [*super().parameter_groups(), {"params": [self.factor], "lr": 1e-3}]

    model = Spectral(build(TINY, seed=1), LearningRates(0.0, 1e-3, 1e-3))
    model.factor = nn.Parameter(torch.ones(TINY.grid, TINY.grid // 2 + 1, dtype=torch.complex64))
    train(model, windows(model, tensors([fields(10)])), AdaptConfig(steps=2, batch=1, averaging=averaging))
    assert model.factor.isfinite().all() and (model.factor != 1).any()
    save_tensors(tmp_path / "x.safetensors", model.state_dict(), {})
    assert torch.equal(load_tensors(tmp_path / "x.safetensors")[0]["factor"], model.factor)


def test_updates_are_those_of_adamw_with_all_settings_on_the_windows_of_the_seed(tiny):
    config = AdaptConfig(steps=3, batch=2, weight_decay=30.0, betas=(0.5, 0.7), clip=0.01, seed=5)
    made, plain = forecaster().double(), forecaster().double()
    data = windows(made, [each.double() for each in tensors([fields(12)])])
    train(made, data, config)
    groups, order = plain.parameter_groups(), WindowOrder(data.own, 2, np.random.default_rng(5))
    optimizer = torch.optim.AdamW(groups, betas=config.betas, weight_decay=config.weight_decay)
    plain.train()
    for _ in range(config.steps):
        index = torch.from_numpy(order.next())
        optimizer.zero_grad()
        forecast_loss(plain.predict(*(part[index] for part in data.features)), data.targets[index]).backward()
        nn.utils.clip_grad_norm_([each for group in groups for each in group["params"]], config.clip)
        optimizer.step()
    for (name, one), other in zip(made.named_parameters(), plain.parameters(), strict=True):
        # softmax is blind to a shift of all keys: the gradient of their bias is rounding, which AdamW makes a step of
        assert name.endswith("key.bias") or torch.allclose(one, other, rtol=1e-6, atol=1e-8), name
