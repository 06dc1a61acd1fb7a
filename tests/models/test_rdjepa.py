import inspect
from dataclasses import replace
from typing import cast

import pytest
import torch
import torch.nn.functional as F

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.decoder import Decoder, Fusion, ResidualBlock
from rdjepa.models.embeddings import sinusoid
from rdjepa.models.encoder import to_grid
from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import PRESETS, REVISION, ModelConfig, build, parameter_count


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


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_the_proportions_of_the_paper(preset):
    config = PRESETS[preset]
    with torch.device("meta"):
        decoder = build(preset).decoder
    values = config.patch**2 * config.components
    assert config.side == 16
    assert config.width >= 3 * values
    assert decoder.fuse.width >= 2 * values
    assert not config.decoder_groups or config.decoder_width // config.decoder_groups >= 12
    assert len(decoder.down) == config.patch.bit_length() - 1


def test_a_model_forecasts_as_the_forecaster_around_it(tiny):
    model, context = build("tiny", seed=0).eval(), torch.randn(2, 4, 2, tiny.grid, tiny.grid)
    made = model(context)
    assert torch.equal(made, RDJEPAForecaster(model)(context))
    assert made.shape == (2, 5, 2, tiny.grid, tiny.grid)
    assert torch.allclose(model(context, horizons=2), made[:, :2], atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 3, 2, 32, 32), (1, 4, 3, 32, 32), (1, 4, 32, 32, 2), (1, 4, 2, 64, 64)])
def test_a_model_refuses_contexts_of_another_shape(tiny, shape):
    with pytest.raises(ArgumentError, match=r"a context \(B, 4, 2, 32, 32\), channels first, got \(1, "):
        build("tiny", seed=0)(torch.zeros(shape))


@pytest.mark.parametrize("horizons", [0, 9])
def test_a_model_refuses_lead_times_that_pretraining_has_none_of(tiny, horizons):
    with pytest.raises(ArgumentError, match=f"1 to 8 horizons, got {horizons}; roll out"):
        build("tiny", seed=0)(torch.zeros(1, 4, 2, 32, 32), horizons)


def test_a_decoder_takes_a_newest_frame_for_every_context(tiny):
    model, side = build("tiny", seed=0), tiny.grid
    latent = model.predictor.full_grid(model.encoder(torch.zeros(2, 4, 2, side, side)), 1)
    plain = inspect.unwrap(Decoder.forward)  # without the check of annotations, which only tests have
    with pytest.raises(ArgumentError, match="a newest frame for each of 2 contexts, got 1"):
        plain(model.decoder, latent, torch.zeros(1, 2, side, side))


def test_complex_parameters_are_two_numbers_each():
    pairs, whole = (torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(3, dtype=torch.complex64)))
    assert parameter_count(torch.nn.ParameterList([pairs])) == parameter_count(torch.nn.ParameterList([whole])) == 6


def test_nano_fits_fifteen_megabytes_in_half_precision():
    with torch.device("meta"):
        model = build("nano")
    assert 2 * (parameter_count(model.encoder) + parameter_count(model.predictor)) <= 15e6


def test_configurations_survive_a_round_trip_and_refuse_unknown_keys():
    for config in PRESETS.values():
        assert ModelConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ValueError, match="another version"):
        ModelConfig.from_dict({"width": 3, "revision": REVISION})


def test_a_model_of_the_first_revision_is_refused_with_the_version_that_reads_it():
    former = {key: value for key, value in PRESETS["nano"].to_dict().items() if key != "revision"}
    with pytest.raises(ValueError, match=r"got one of revision 1, .*; use rdjepa 0.1.0 for it"):
        ModelConfig.from_dict(former)


def test_groups_divide_the_width_and_are_written_where_they_are_not_the_papers():
    assert "decoder_groups" not in ModelConfig().to_dict()
    assert replace(ModelConfig(), decoder_groups=4).to_dict()["decoder_groups"] == 4
    with pytest.raises(ValueError, match="multiple of its groups, got 20 features and 8 groups"):
        ModelConfig(decoder_width=20)


@pytest.mark.parametrize("side", [1, 2, 3, 6])
def test_a_grid_that_cannot_be_halved_twice_is_refused(tiny, side):
    """At one patch a side the coarser stages would come back as four a side, without an error."""
    with pytest.raises(ArgumentError, match=rf"a multiple of four patches per side, .*, got {side} of 4 points"):
        replace(tiny, grid=4 * side)
    with pytest.raises(ArgumentError, match=r"a width that is a multiple of four, .* got 34"):
        replace(tiny, width=34)


def test_sizes_that_no_network_has_are_refused_before_one_is_built(tiny):
    with pytest.raises(ArgumentError, match=r"a width that is a multiple of the heads, got 32 and 3 heads; change one"):
        replace(tiny, heads=3)
    for patch in (1, 6):
        with pytest.raises(ArgumentError, match=rf"a patch of 2, 4, 8, \.\.\. points per side, got {patch}; name one"):
            replace(tiny, patch=patch, grid=96)


def test_unknown_preset_lists_the_known_ones():
    with pytest.raises(ValueError, match="paper, small, nano"):
        build("huge")


def test_seeded_build_is_repeatable_and_leaves_the_global_stream_alone():
    before = torch.random.get_rng_state()
    a, b = build("nano", seed=1), build("nano", seed=1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.mark.parametrize(("groups", "passes"), [(1, True), (8, False)])
def test_the_level_of_a_field_passes_a_wide_group_and_is_lost_in_groups_of_one_feature(groups, passes):
    decoder = Decoder(32, 8, groups=groups, patch=4, borders="periodic")
    latent = torch.zeros(1, 1, 256, 32)
    low, high = (decoder(latent, torch.full((1, 2, 64, 64), level)) for level in (-1.0, 1.0))
    assert bool((low - high).abs().max() > 1e-3) is passes


@pytest.mark.parametrize(("groups", "local"), [(0, True), (1, False)])
def test_a_forecast_depends_on_what_is_far_away_through_normalizations_alone(groups, local):
    decoder = Decoder(32, 8, groups=groups, patch=4)
    latent, frame = torch.randn(1, 1, 32 * 32, 32), torch.randn(1, 2, 128, 128)
    changed = frame.clone()
    changed[..., :8, :8] += 1
    before, after = (decoder(latent, each)[..., -8:, -8:] for each in (frame, changed))
    assert torch.equal(before, after) is local


def test_decoder_treats_horizons_apart():
    decoder = Decoder(32, 8, patch=4)
    latent, frame = torch.randn(2, 3, 256, 32), torch.randn(2, 2, 64, 64)
    together = decoder(latent, frame)
    assert together.shape == (2, 3, 2, 64, 64)
    assert torch.allclose(together[:, 1:2], decoder(latent[:, 1:2], frame), atol=1e-5)


@pytest.mark.parametrize("patch", [2, 4, 8])
def test_decoder_equals_convolutions_over_concatenated_channels(patch):
    """The horizons share the pyramid, so its part of every convolution is computed once; the sum is the same."""
    decoder = Decoder(24, 8, patch=patch)
    blocks = [cast(Fusion, block) for block in decoder.up]
    latent, frame = torch.randn(2, 3, 16, 24), torch.randn(2, 2, 4 * patch, 4 * patch)
    *finer, coarsest = (level.repeat_interleave(3, 0) for level in decoder.features(frame))
    x = torch.cat([to_grid(decoder.latent(latent).flatten(0, 1)), coarsest], dim=1)
    x = decoder.fuse.branch(x) + decoder.fuse.skip(x)
    for block, level in zip(blocks, reversed(finer), strict=True):
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = torch.cat([x, level], dim=1)
        x = block.branch(x) + block.skip(x)
    expected = decoder.head(x).unflatten(0, (2, 3))
    assert torch.allclose(decoder(latent, frame), expected, atol=1e-5)


def test_targets_are_single_frames_at_index_zero(tiny):
    model = build("tiny")
    jepa = JEPA(model.encoder, model.predictor)
    target = jepa.target_encoder
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    frames = torch.randn(3, 2, tiny.grid, tiny.grid)
    first = sinusoid(torch.tensor([0]), tiny.width)
    given = target.tokenizer(frames) + target.space + first + target.embedding
    alone = given.flatten(0, 1)[:, None]  # every token by itself
    query = alone + target.query_bias
    for block in target.temporal:
        query = block(query, alone)
    expected = target.spatial(query.view_as(given), target.embedding)
    assert torch.allclose(jepa.targets(frames), expected, atol=1e-5)
    assert not torch.allclose(jepa.encoder(frames[:, None]), expected, atol=1e-2)


@pytest.mark.parametrize("widths", [(8, 8), (8, 16)])
def test_a_residual_block_adds_its_input_or_a_map_of_it(widths):
    block, x = ResidualBlock(widths[0], widths[1], groups=8), torch.randn(2, 8, 6, 6)
    assert torch.allclose(block(x), block.branch(x) + (x if widths[0] == widths[1] else block.skip(x)), atol=1e-6)
    with torch.no_grad():
        for parameter in block.branch.parameters():
            parameter.zero_()
    assert block(x).abs().max() > 0.1  # what is left of the branch is nothing
