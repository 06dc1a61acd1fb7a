import pytest
import torch
from noise import source

from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import build
from rdjepa.pretraining.diagnostics import diagnose, normalized, positions, rankme, signs_of_collapse, spread
from rdjepa.pretraining.targets import TargetConfig

HEALTHY = {"target_std": 0.8, "target_rank": 40.0, "target_cosine": 0.3, "skill_mean": 0.8}


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
def test_rankme_is_the_entropy_of_centered_singular_values(shape):
    features = torch.randn(shape) + 3
    values = torch.linalg.svdvals(features - features.mean(0))
    share = values / values.sum()
    wanted = torch.exp(-(share * share.clamp_min(1e-12).log()).sum())
    assert rankme(features) == pytest.approx(float(wanted), rel=1e-3)


def test_rankme_counts_directions():
    directions = torch.linalg.qr(torch.randn(64, 5)).Q
    assert rankme(torch.randn(4_000, 5) @ directions.T) == pytest.approx(5, abs=0.1)
    assert rankme(torch.ones(10, 8)) == pytest.approx(1, abs=1e-6)


def test_spread_tells_equal_targets_from_unrelated_ones():
    equal = spread(normalized(torch.randn(1, 4, 32).expand(30, 4, 32)))
    assert equal["target_std"] == pytest.approx(0, abs=1e-6)
    assert equal["target_cosine"] == pytest.approx(1, abs=1e-5)
    unrelated = spread(normalized(torch.randn(300, 4, 32)))
    assert unrelated["target_std"] == pytest.approx(1, abs=0.05)
    assert unrelated["target_cosine"] == pytest.approx(0, abs=0.02)
    assert unrelated["target_rank"] > 28


def test_targets_that_know_only_their_position_have_no_spread_although_positions_differ():
    by_position = torch.randn(1, 16, 32).expand(50, 16, 32)
    assert spread(normalized(by_position))["target_std"] == pytest.approx(0, abs=1e-6)


def test_positions_are_spread_over_the_grid():
    assert positions(256, 16).tolist() == [17 * index for index in range(16)]  # each row and each column once


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"target_std": 0.05}, "hardly differ"),
        ({"target_rank": 1.5}, "few directions"),
        ({"target_cosine": 0.99}, "same way"),
        ({"skill_mean": -0.1}, "no better"),
    ],
)
def test_every_sign_of_collapse_is_named_alone(change, word):
    assert signs_of_collapse(HEALTHY) == []
    (sign,) = signs_of_collapse(HEALTHY | change)
    assert word in sign


def test_a_collapsed_encoder_shows_signs(tiny):
    model = build("tiny", seed=0)
    jepa = JEPA(model.encoder, model.predictor)
    batch = source().batch(0, 0, 4, 8, TargetConfig())
    before = diagnose(jepa, [batch])
    assert before["skill_mean"] == pytest.approx(1 - before["latent_loss"] / before["mean_loss"])
    for parameter in jepa.target_encoder.tokenizer.parameters():
        parameter.zero_()  # the target no longer sees the fields
    signs = " ".join(signs_of_collapse(diagnose(jepa, [batch])))
    assert "hardly differ" in signs
    assert "same way" in signs
