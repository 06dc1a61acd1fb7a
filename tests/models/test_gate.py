"""The gate: which of two forecasts it takes where, and a decoder with it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.rd_jepa import EncoderTuned, RDJEPAForecaster
from rdjepa.models.gate import AROUND, CLOSED, Beside, beside, gated
from rdjepa.models.rdjepa import RDJEPA, ModelConfig
from tiny import TINY

GATED = replace(TINY, gated=True)


def contexts(side: int = 32) -> torch.Tensor:
    """Return contexts (3, 4, 2, side, side): at rest, one that a map explains, and noise."""
    torch.manual_seed(0)
    still = torch.randn(2, side, side)
    phase = torch.rand(side, side)
    turning = [torch.stack([torch.cos(0.3 * t + 6 * phase), torch.sin(0.3 * t + 6 * phase)]) for t in range(4)]
    return torch.stack([still.expand(4, -1, -1, -1), torch.stack(turning), torch.randn(4, 2, side, side)])


def network(config: ModelConfig, seed: int = 0) -> RDJEPA:
    """Return a network without pretraining whose decoder has biases, too."""
    torch.manual_seed(seed)
    return RDJEPA(config).eval()


def test_the_weight_of_the_painted_field_is_that_of_two_forecasts_with_known_variances():
    rng = np.random.default_rng(0)
    truth, own, painted = 0.0, rng.normal(0, 0.3, 100_000), rng.normal(0, 0.1, 100_000)
    table = torch.from_numpy(np.stack([own, painted])).float().view(2, 1, 1, 1, -1, 1)
    level = torch.full((1, 1, 100_000, 1), 2 * np.log(0.3))

    def error(logit: float) -> float:
        both = torch.cat([table[1], torch.full_like(table[1], logit)], dim=2)
        return float((gated(both, Beside(table[0], level)) - truth).square().mean())

    best = error(-2 * np.log(0.1))
    assert best < min(error(-2 * np.log(0.1) + 0.5), error(-2 * np.log(0.1) - 0.5), 0.1**2)


def test_where_the_map_leaves_nothing_it_is_taken_and_where_it_leaves_much_the_network():
    context = contexts()
    other = beside(context, HORIZONS)
    painted = torch.cat([torch.ones(3, HORIZONS, 2, 32, 32), torch.full((3, HORIZONS, 2, 32, 32), CLOSED)], dim=2)
    made = gated(painted, other)
    torch.testing.assert_close(made[:2], other.forecast[:2], atol=1e-3, rtol=0)
    torch.testing.assert_close(made[2], torch.ones_like(made[2]), atol=1e-2, rtol=0)


def test_what_is_left_counts_around_a_point_and_not_far_from_it():
    context = contexts()[1:2].double()
    quiet = beside(context, 1).level
    context[0, -1, 0, 10, 20] += 0.5
    louder = (beside(context, 1).level - quiet)[0, 0]
    assert louder[10 - AROUND : 11 + AROUND, 20 - AROUND : 21 + AROUND].min() > 5
    far = torch.roll(louder, (16 - 10, 16 - 20), (0, 1))
    inside = far[16 - AROUND : 17 + AROUND, 16 - AROUND : 17 + AROUND]
    assert inside.median() > far[:8].median() + 3


@pytest.mark.parametrize("kind", [RDJEPAForecaster, EncoderTuned])
def test_a_gated_forecaster_blends_what_the_network_paints_with_the_autoregression(kind: type[RDJEPAForecaster]):
    plain, context = network(TINY), contexts(TINY.grid)
    closed = network(GATED)
    closed.load_state_dict(plain.state_dict() | {k: v for k, v in closed.state_dict().items() if "head.3" in k})
    last, before = closed.decoder.head[-1].state_dict(), plain.decoder.head[-1].state_dict()
    with torch.no_grad():
        last["weight"][:2], last["bias"][:2] = before["weight"], before["bias"]
        assert not last["weight"][2:].any() and (last["bias"][2:] == CLOSED).all()
        other = beside(context, HORIZONS)
        weight = torch.sigmoid(other.level[:, None] + CLOSED)
        wanted = (1 - weight) * Autoregression()(context) + weight * kind(plain).eval()(context)
        torch.testing.assert_close(kind(closed).eval()(context), wanted, atol=1e-5, rtol=1e-4)


def test_a_gate_that_is_added_leaves_what_is_painted_and_can_be_dropped_again():
    plain = network(TINY)
    state = {name: value.clone() for name, value in plain.decoder.state_dict().items()}
    random = torch.get_rng_state()
    plain.decoder.add_gate()
    assert torch.equal(torch.get_rng_state(), random) and plain.decoder.gated
    assert set(network(GATED).decoder.state_dict()) == set(plain.decoder.state_dict())
    plain.decoder.drop_gate()
    assert not plain.decoder.gated
    for name, value in plain.decoder.state_dict().items():
        assert torch.equal(value, state[name])


def test_a_gated_decoder_asks_for_what_it_forecasts_beside():
    model, context = network(GATED), contexts(TINY.grid)
    latent = model.predictor.full_grid(model.encoder(context), HORIZONS)
    with pytest.raises(ArgumentError, match="a gated decoder"):
        model.decoder(latent, context[:, -1])


def test_both_forecasts_learn_through_the_gate():
    model = RDJEPAForecaster(network(GATED))
    model(contexts(TINY.grid)[2:]).square().sum().backward()
    gradient = model.decoder.head[-1].get_parameter("weight").grad
    assert gradient is not None and gradient[:2].abs().sum() > 0 and gradient[2:].abs().sum() > 0


def test_a_gate_is_part_of_the_configuration_where_there_is_one():
    assert "gated" not in TINY.to_dict()
    assert ModelConfig.from_dict(GATED.to_dict()) == GATED
