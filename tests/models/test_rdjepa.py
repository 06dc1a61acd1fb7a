import pytest
import torch

from rdjepa.models.decoder import Decoder
from rdjepa.models.encoder import AdaptiveNorm
from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import PRESETS, ModelConfig, build, parameter_count


def test_paper_preset_has_the_six_printed_parameter_counts():
    with torch.device("meta"):
        model = build("paper")
    encoder, predictor, decoder = (parameter_count(m) for m in (model.encoder, model.predictor, model.decoder))
    assert encoder == 110_482_432
    assert predictor == 76_367_972
    assert decoder == 20_536_482
    assert 2 * encoder + predictor == 297_332_836
    assert encoder + predictor == 186_850_404
    assert predictor + decoder == 96_904_454


def test_small_weights_fit_forty_megabytes_and_nano_fifteen_in_half_precision():
    for preset, limit in (("small", 40e6), ("nano", 15e6)):
        with torch.device("meta"):
            model = build(preset)
        assert 2 * (parameter_count(model.encoder) + parameter_count(model.predictor)) <= limit
    assert 10e6 <= parameter_count(build("small").encoder) + parameter_count(build("small").predictor) <= 25e6


def test_configurations_survive_a_round_trip_and_refuse_unknown_keys():
    for config in PRESETS.values():
        assert ModelConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ValueError, match="another version"):
        ModelConfig.from_dict({"width": 3})


def test_unknown_preset_lists_the_known_ones():
    with pytest.raises(ValueError, match="paper, small, nano"):
        build("huge")


def test_seeded_build_is_repeatable_and_leaves_the_global_stream_alone():
    before = torch.random.get_rng_state()
    a, b = build("nano", seed=1), build("nano", seed=1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_decoder_treats_horizons_apart():
    decoder = Decoder(32, 8)
    latent, frame = torch.randn(2, 3, 256, 32), torch.randn(2, 2, 128, 128)
    together = decoder(latent, frame)
    assert together.shape == (2, 3, 2, 128, 128)
    assert torch.allclose(together[:, 1:2], decoder(latent[:, 1:2], frame), atol=1e-5)


def test_every_pretrained_parameter_gets_a_gradient(tiny):
    model = build("tiny")
    for module in model.modules():  # adaptive norms start at zero, which hides the embedding behind them
        if isinstance(module, AdaptiveNorm):
            torch.nn.init.normal_(module.modulation.weight)
    jepa = JEPA(model.encoder, model.predictor)
    mask = torch.zeros(1, 4, 256, dtype=torch.bool)
    mask[0, 0, :9] = True
    out = jepa(torch.randn(1, 4, 2, 128, 128), torch.arange(256)[None], torch.arange(256)[None] % 9, mask)
    (out * torch.randn_like(out)).sum().backward()
    silent = [n for n, p in jepa.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    # softmax is blind to a shift of all keys, so a key bias has a zero gradient by construction
    assert [n for n in silent if not n.endswith("key.bias")] == []


def test_target_encoder_follows_by_averaging_and_has_no_gradient(tiny):
    model = build("tiny")
    jepa = JEPA(model.encoder, model.predictor)
    before = [p.clone() for p in jepa.target_encoder.parameters()]
    with torch.no_grad():
        for p in jepa.encoder.parameters():
            p.add_(torch.randn_like(p))
    jepa.update_target(0.9)
    for old, new, online in zip(before, jepa.target_encoder.parameters(), jepa.encoder.parameters(), strict=True):
        assert torch.allclose(new, 0.9 * old + 0.1 * online, atol=1e-6)
        assert not new.requires_grad
    assert not jepa.targets(torch.randn(1, 2, 128, 128)).requires_grad


def test_targets_are_single_frames_at_index_zero(tiny):
    model = build("tiny")
    jepa = JEPA(model.encoder, model.predictor)
    frames = torch.randn(3, 2, 128, 128)
    assert torch.equal(jepa.targets(frames), jepa.target_encoder(frames[:, None]))
