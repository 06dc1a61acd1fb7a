import pytest
import torch
from noise import source

from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import build
from rdjepa.pretraining.loss import jepa_loss
from rdjepa.pretraining.monitor import LatentQueue, averaging_distance, gates, gradient_norms, short_line
from rdjepa.pretraining.targets import TargetConfig


@pytest.fixture
def jepa(tiny):
    model = build("tiny", seed=0)
    return JEPA(model.encoder, model.predictor)


def test_queue_keeps_the_latest_samples_and_tells_systems_apart(jepa):
    queue = LatentQueue(size=6)
    assert queue.measure() == {"samples": 0, "systems": {}}
    data = source()
    for index in range(4):
        batch = data.batch(0, index, 2, 8, TargetConfig())
        queue.push(jepa.targets(batch.futures)[batch.frame_of_query[:, 0]], batch.systems)
    measured = queue.measure()
    assert measured["samples"] == 6
    assert measured["target_rank"] <= 5
    last = [name for index in (1, 2, 3) for name in data.batch(0, index, 2, 8, TargetConfig()).systems]
    assert set(measured["systems"]) == {name for name in last if last.count(name) > 1}


def test_gates_start_at_a_quarter_and_the_average_at_no_distance(jepa):
    assert gates(jepa.predictor) == {"diffusion": [0.25], "reaction": [0.25]}
    assert averaging_distance(jepa) == 0
    with torch.no_grad():
        for parameter in jepa.target_encoder.parameters():
            parameter.mul_(0.5)
    assert averaging_distance(jepa) == pytest.approx(0.5)


@pytest.mark.parametrize("clip", [1e-3, 1e3])
def test_gradient_norms_of_modules_add_up_to_the_norm_before_clipping(jepa, clip):
    batch = source().batch(0, 0, 2, 8, TargetConfig())
    latent = jepa.targets(batch.futures)
    predicted = jepa.predict(batch.context, batch.patches, batch.offsets, batch.mask)
    jepa_loss(predicted, latent[batch.frame_of_query, batch.patches]).backward()
    total = float(torch.nn.utils.clip_grad_norm_([*jepa.encoder.parameters(), *jepa.predictor.parameters()], clip))
    norms = gradient_norms(jepa, total, clip)
    assert sum(n**2 for n in norms.values()) ** 0.5 == pytest.approx(total, rel=1e-3)
    assert {"encoder.tokenizer", "encoder.spatial", "predictor.blocks"} <= norms.keys()


MEASURED = {"latent_loss": 0.4, "skill_mean": 0.8, "skill_persistence": 0.7, "target_std": 0.9, "target_rank": 41.3}


def test_a_training_line_shows_what_was_measured_so_far_and_warnings_first():
    assert short_line({"loss": 0.5, "step": 3}) == "loss 0.5000"
    whole = short_line({"loss": 0.5, "warnings": ["targets span few directions"]} | MEASURED)
    assert whole.startswith("WARNING targets span few directions;")
    assert "skill 0.80 0.70 std 0.90 rank 41" in whole
    assert "\n" not in whole
