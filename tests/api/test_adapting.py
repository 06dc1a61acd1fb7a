"""Adaptation and its forecasters through the public functions."""

import json
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation import combination, retention
from rdjepa.adaptation.adapt import AdaptConfig, standardized
from rdjepa.adaptation.decision import settle
from rdjepa.api.start import loaded
from rdjepa.data.statistics import Normalizer
from rdjepa.data.well import checksum
from rdjepa.errors import ArgumentError, CheckpointError, DataError, Note
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.fno import Config
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.rd_jepa import DecoderKept, RDJEPAForecaster
from rdjepa.models.rdjepa import PRESETS
from tiny import TINY

SIDE, WIDE = TINY.grid, 5 * TINY.grid // 4  # a field of these many points takes four squares


def trajectory(frames=10, seed=0, side=SIDE):
    return np.random.default_rng(seed).standard_normal((frames, side, side, 2)).astype(np.float32) * 3 + 1


def small():
    return forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=0)


def pretrained():
    """A tiny model that passes for one whose weights are all pretrained."""
    model = rdjepa.build("tiny", seed=0)
    model.pretrained = ("encoder", "predictor", "decoder")
    return model


@pytest.fixture(scope="module")
def forecaster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        return rdjepa.adapt(rdjepa.build("tiny", seed=0), trajectory(), steps=2, device="cpu")


@pytest.fixture
def decided(monkeypatch):
    """No update is made, and the combination is what it is without trajectories, where neither is looked at."""
    monkeypatch.setattr("rdjepa.api.adapting.train", lambda *_: [])
    monkeypatch.setattr(
        combination, "combined", lambda network, _, domain: (Combined(network, equation=Equation(2, domain)), 0.5)
    )


def test_forecast_is_in_physical_units_and_of_five_frames(forecaster):
    context = trajectory()[:4]
    future = forecaster.forecast(context)
    assert future.shape == (5, SIDE, SIDE, 2)
    assert future.dtype == np.float32
    assert np.allclose(forecaster.forecast(context[None])[0], future, atol=1e-5)
    assert abs(future.mean() - 1) < 3  # near the data's mean, not the standardized one's scale alone


def test_errors_on_the_support_itself_come_with_a_warning(forecaster, tmp_path, recwarn):
    assert rdjepa.evaluate(forecaster, trajectory(seed=1))
    assert not [each for each in recwarn if issubclass(each.category, UserWarning)]
    loaded = rdjepa.load_forecaster(forecaster.save(tmp_path / "f.safetensors"))
    with pytest.warns(UserWarning, match="got 1 of 2 that it was adapted to"):
        rdjepa.evaluate(loaded, [trajectory(), trajectory(seed=1)])


def test_saved_forecaster_forecasts_the_same_bits(forecaster, tmp_path):
    path = forecaster.save(tmp_path / "f.safetensors")
    loaded = rdjepa.load_forecaster(path)
    context = trajectory()[2:6]
    assert np.array_equal(loaded.forecast(context), forecaster.forecast(context))
    assert loaded.record == json.loads(json.dumps(forecaster.record))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CheckpointError):
        rdjepa.load_forecaster(path)


def test_linear_base_is_saved_with_the_network_and_beats_it_where_fields_are_linear_in_time(tiny, tmp_path):
    turning = np.arange(20)[:, None, None, None] * 0.3 + np.random.default_rng(1).uniform(0, 6, (1, SIDE, SIDE, 2))
    fields = np.cos(turning).astype(np.float32)
    model = rdjepa.build("tiny", seed=0)
    plain, based = (rdjepa.adapt(model, fields, steps=1, base=base, device="cpu") for base in ("none", "linear"))
    context, future = fields[3:7], fields[7:12]
    errors = [rdjepa.metrics.relative_l2(f.forecast(context), future).mean() for f in (plain, based)]
    assert errors[1] < 0.05 < errors[0]
    loaded = rdjepa.load_forecaster(based.save(tmp_path / "f.safetensors"))
    assert np.array_equal(loaded.forecast(context), based.forecast(context))
    assert (based.record["forecaster"], plain.base, based.base, loaded.base) == ("rd-jepa", "none", "linear", "linear")
    with pytest.raises(ValueError, match="a base among auto, none, anchored, linear, got 'ar'"):
        rdjepa.adapt(model, fields, steps=1, base="ar")


@pytest.mark.parametrize("base", ["none", "linear"])
def test_a_tiled_forecaster_takes_whole_fields_and_is_saved_with_its_tiles(tiny, tmp_path, base):
    wide = np.random.default_rng(0).standard_normal((2, 10, WIDE, WIDE, 2)).astype(np.float32)
    model, seen = rdjepa.build("tiny", seed=0), []
    forecaster = rdjepa.adapt(
        model,
        wide[:1],
        steps=1,
        tile=True,
        base=base,
        calibrate=wide[1:],
        device="cpu",
        observe=lambda updates, weights, so_far: seen.append(so_far.forecast(wide[0, :4]).shape),
        at=(1,),
    )
    context = wide[0, :4]
    made = forecaster.forecast(context)
    assert made.shape == (5, WIDE, WIDE, 2) == seen[0]
    assert forecaster.interval(context, 0.5).lower.shape == made.shape
    novelty = forecaster.novelty(context)
    assert novelty is not None and forecaster.base == base
    loaded = rdjepa.load_forecaster(forecaster.save(tmp_path / "f.safetensors"))
    assert np.array_equal(loaded.forecast(context), made) and loaded.base == base
    assert loaded.novelty(context) == novelty
    with pytest.raises(DataError, match=f"{WIDE}, {WIDE}"):
        loaded.forecast(context[:, :SIDE, :SIDE])


def test_what_is_calibrated_on_is_read_whole_where_some_trajectories_are_chosen_to_adapt_to(tiny):
    fields = np.stack([trajectory(seed=seed) for seed in range(5)])
    some = rdjepa.Reading(index=(1, 2))
    model = rdjepa.build("tiny", seed=0)
    found = rdjepa.adapt(model, fields[:3], steps=1, reading=some, calibrate=fields[3:], device="cpu")
    assert found.calibration is not None and found.calibration.trajectories == 2
    assert found.record["checksums"] == [checksum(each) for each in fields[1:3]]


def test_tiles_of_pretrained_weights_are_blended_with_the_equation_of_the_whole_field(tiny, tmp_path):
    wide = np.random.default_rng(0).standard_normal((1, 10, WIDE, WIDE, 2)).astype(np.float32)
    model = pretrained()
    adapt = partial(rdjepa.adapt, model, wide, steps=1, tile=True, device="cpu")
    forecaster, context = adapt(), wide[0, :4]
    assert forecaster.base == "combined" and np.array(forecaster.record["combined"]).tolist() == [[1, 1]] * 5
    alone = adapt(base="none").forecast(context)
    parts = {name: part.forecast(context) for name, part in forecaster.parts().items()}
    assert np.array_equal(parts["rd-jepa-alone"], alone) and parts["equation"].shape == (5, WIDE, WIDE, 2)
    between = (parts["rd-jepa"] - parts["equation"]) / (alone - parts["equation"])  # the weight of the network
    assert np.quantile(between, 0.01) > -1e-3 and np.quantile(between, 0.99) < 1 + 1e-3
    loaded = rdjepa.load_forecaster(forecaster.save(tmp_path / "f.safetensors"))
    assert loaded.base == "combined" and np.array_equal(loaded.forecast(context), parts["rd-jepa"])
    assert isinstance(loaded.model, Combined) and loaded.model.familiar is not None and loaded.model.familiar.missed > 0
    for other in (forecaster.model, loaded.model.network):  # the tiles themselves, too
        with pytest.raises(ArgumentError, match=r"a network to adapt, got one with .* forecaster.model.network"):
            rdjepa.adapt(other, wide, steps=1)


def test_parts_of_a_forecaster_take_what_it_takes(tiny):
    fields = np.random.default_rng(0).standard_normal((50, SIDE, SIDE, 1)).cumsum(0).astype(np.float32)
    for base, alone in (("auto", "rd-jepa-alone"), ("anchored", "rd-jepa-alone")):
        made = rdjepa.adapt(pretrained(), fields, steps=1, stride=2, base=base, hold_out=0.4, retain=0.5, device="cpu")
        parts = made.parts()
        assert {part.stride for part in parts.values()} == {2}
        assert {part.forecast(fields[:5]).shape for part in parts.values()} == {(5, SIDE, SIDE, 2)}
        assert parts[alone].novelty(fields[:5]) == parts["rd-jepa"].novelty(fields[:5]) == made.novelty(fields[:5])
        assert parts["rd-jepa"].calibration is made.calibration is not None


def test_a_network_is_anchored_after_its_adaptation_and_so_is_one_that_was_not_pretrained(tiny, tmp_path):
    wide = np.random.default_rng(0).standard_normal((2, 10, WIDE, WIDE, 2)).cumsum(1).astype(np.float32)
    for model, tile in ((pretrained(), True), (forecasters.build("scratch", "tiny", seed=0), False)):
        fields = wide if tile else wide[:, :, :SIDE, :SIDE]
        adapt = partial(rdjepa.adapt, model, fields[:1], steps=1, device="cpu", tile=tile)
        alone, anchored = adapt(base="none", calibrate=fields[1:]), adapt(base="anchored", calibrate=fields[1:])
        context = fields[0, :4]
        apart = anchored.forecast(context) - alone.forecast(context)
        assert anchored.base == "anchored" and anchored.losses == alone.losses
        assert apart[0].std() > 0 and np.allclose(apart, apart[0], atol=1e-4)  # all horizons are corrected by as much
        assert anchored.calibration and anchored.record["held_out"] == {}
        parts = {name: part.forecast(context) for name, part in anchored.parts().items()}
        assert [*parts] == [anchored.model.name, f"{anchored.model.name}-alone"]
        assert np.array_equal(parts[f"{anchored.model.name}-alone"], alone.forecast(context))
        loaded = rdjepa.load_forecaster(anchored.save(tmp_path / "f.safetensors"))
        assert loaded.base == "anchored" and np.array_equal(loaded.forecast(context), anchored.forecast(context))


def test_the_squares_of_one_trajectory_are_one_trajectory_to_what_is_decided(tiny, monkeypatch):
    """Nine of them: five trajectories or more would retain nothing."""
    monkeypatch.setattr("rdjepa.adaptation.retention.relative_error", lambda *_: 0.1)
    wide = np.random.default_rng(0).standard_normal((1, 9, 2 * SIDE, 2 * SIDE, 2)).astype(np.float32)
    made = rdjepa.adapt(pretrained(), wide, steps=1, tile=True, base="none", device="cpu")
    assert made.record["retained"] == 0.5


@pytest.mark.parametrize(
    ("options", "why"),
    [({"steps": 0}, "no update is made"), ({"steps": 1, "rehearse": [trajectory(seed=3)]}, "others are rehearsed")],
)
def test_that_nothing_stands_beside_a_network_is_said(tiny, options, why):
    with pytest.warns(Note, match=f"the network forecasts alone, since {why}"):
        made = rdjepa.adapt(pretrained(), trajectory(), device="cpu", **options)
    assert made.base == "none"
    with warnings.catch_warnings():
        warnings.simplefilter("error", Note)
        rdjepa.adapt(pretrained(), trajectory(), device="cpu", base="none", **options)


@pytest.mark.parametrize(
    ("options", "idle"),
    [({"augment": True}, "augment$"), ({"rehearse": [trajectory(seed=3)], "retain": 0.5}, "rehearse and retain$")],
)
def test_what_only_updates_make_something_of_is_said_where_there_are_none(tiny, options, idle):
    with pytest.warns(Note, match=f"no update is made, so nothing comes of {idle}"):
        rdjepa.adapt(pretrained(), trajectory(), steps=0, device="cpu", **options)


@pytest.mark.parametrize("base", ["linear", "anchored"])
def test_what_forecasts_by_itself_has_no_base_and_no_updates(base):
    with pytest.raises(ArgumentError, match=f"a network where a base is asked for, got '{base}' with persistence"):
        rdjepa.adapt("persistence", trajectory(), base=base)
    with pytest.warns(Note, match="no update is made of persistence, so nothing comes of augment and steps$"):
        rdjepa.adapt("persistence", trajectory(), steps=500, augment=True)


@pytest.mark.parametrize(
    ("reading", "spacing"),
    [(None, [1.0, 5 / 3]), (rdjepa.Reading(spacing=(0.5, 0.6)), [1.0, 2.0]), (rdjepa.Reading(spacing=(5, 3)), None)],
)
def test_the_equation_knows_how_far_points_of_a_squeezed_grid_lie_apart(tiny, decided, tmp_path, reading, spacing):
    wide = np.random.default_rng(0).standard_normal((10, 48, 80, 2)).astype(np.float32)
    made = rdjepa.adapt(pretrained(), wide, steps=1, resample=True, reading=reading, device="cpu")
    for each in (made, rdjepa.load_forecaster(made.save(tmp_path / "a.safetensors"))):
        found = each.parts()["equation"].model.settings().get("spacing")
        assert found == (spacing and pytest.approx(spacing))


@pytest.mark.parametrize(
    ("options", "walls"),
    [
        ({}, False),  # nothing happens at the borders
        ({"borders": "walls"}, True),
        ({"reading": rdjepa.Reading(boundary="walls")}, True),
        ({"reading": rdjepa.Reading(boundary="periodic"), "borders": "walls"}, False),
        ({"borders": "zeros"}, False),
    ],
)
def test_the_equation_goes_by_what_is_said_of_the_borders(tiny, decided, options, walls):
    fields, half = np.zeros((10, SIDE, SIDE, 2), np.float32), SIDE // 2
    fields[:, half // 2 :, half // 2 :][:, :half, :half] = trajectory(side=half)
    made = rdjepa.adapt(pretrained(), fields, steps=1, device="cpu", **options)
    assert made.parts()["equation"].model.settings()["walls"] == walls


@pytest.mark.parametrize(("spacing", "said"), [((1.0, 1.0), True), ((1.0, 2.0), False), ((1.0, 4.0), True)])
def test_a_domain_that_is_no_square_is_said_to_become_one(tiny, decided, spacing, said, recwarn):
    """Twice as many rows as columns, which are as far apart, twice as far, or four times."""
    long = np.random.default_rng(0).standard_normal((1, 9, 2 * WIDE, WIDE, 2)).astype(np.float32)
    reading = rdjepa.Reading(boundary="periodic", spacing=spacing)
    rdjepa.adapt(pretrained(), long, steps=1, resample=True, reading=reading, device="cpu")
    notes = [str(note.message) for note in recwarn if "squeezed into a square" in str(note.message)]
    assert len(notes) == said and all("shapes change by 2 : 1" in note for note in notes)


def test_that_a_forecaster_of_any_grid_resamples_nothing_is_said():
    with pytest.warns(Note, match="of any grid, so none are resampled"):
        made = rdjepa.adapt("equation", trajectory(side=WIDE), resample=True, device="cpu")
    assert made.forecast(trajectory(4, side=WIDE)).shape == (5, WIDE, WIDE, 2)


def test_a_boundary_that_was_said_is_that_of_later_data_too(tiny, decided, tmp_path):
    wide, walls = trajectory(side=SIDE + 8), rdjepa.Reading(boundary="walls")
    made = rdjepa.adapt(pretrained(), wide, steps=1, resample=True, reading=walls, device="cpu")
    again = rdjepa.load_forecaster(made.save(tmp_path / "a.safetensors"))
    assert (
        again.reading().boundary == "walls"
        and again.reading(rdjepa.Reading(boundary="periodic")).boundary == "periodic"
    )
    with pytest.warns(UserWarning, match="has not seen, got 1 of 1"):
        rdjepa.evaluate(again, wide, resample=True)


@pytest.mark.parametrize(
    ("fields", "options", "sentence"),
    [
        (trajectory(side=WIDE), {"tile": True, "resample": True}, "resampled or tiled, got both"),
        (trajectory(side=WIDE)[:, :, 1:], {"tile": True}, f"square fields .* got {WIDE} x {WIDE - 1}"),
        (trajectory(), {"tile": True}, f"more than {SIDE} points per side to tile, got {SIDE}"),
        (trajectory(), {"borders": "mirrors"}, "borders among zeros, periodic, walls, got 'mirrors'"),
    ],
)
def test_tiles_and_borders_that_cannot_be_are_refused(tiny, fields, options, sentence):
    with pytest.raises((ArgumentError, DataError), match=sentence):
        rdjepa.adapt(rdjepa.build("tiny", seed=0), fields, steps=1, device="cpu", **options)


def test_borders_reach_the_forecaster_and_its_file(tiny, tmp_path):
    model, fields = rdjepa.build("tiny", seed=0), trajectory()
    walls, zeros = (rdjepa.adapt(model, fields, steps=1, device="cpu", borders=b) for b in ("walls", None))
    loaded = rdjepa.load_forecaster(walls.save(tmp_path / "f.safetensors"))
    kept = [each.model.settings()["model"].get("borders", "zeros") for each in (zeros, walls, loaded)]
    assert kept == ["zeros", "walls", "walls"]
    assert np.array_equal(loaded.forecast(fields[:4]), walls.forecast(fields[:4]))
    assert not np.array_equal(zeros.forecast(fields[:4]), walls.forecast(fields[:4]))
    with pytest.raises(ArgumentError, match="built already"):
        rdjepa.adapt(rdjepa.forecasters.build("no-latent", "nano"), fields, steps=1, borders="walls")


def test_adaptation_leaves_its_argument_alone_and_repeats(tiny):
    model = rdjepa.build("tiny", seed=0)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    a, b, other = (rdjepa.adapt(model, trajectory(9), steps=2, seed=seed, device="cpu").losses for seed in (1, 1, 2))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert a == b != other


def test_a_single_window_does_not_tell_what_is_new_unless_others_do(tiny):
    def novelty(**options):
        return rdjepa.adapt(rdjepa.build("tiny", seed=0), trajectory(9), steps=1, **options).novelty(trajectory()[1:5])

    assert novelty() is None
    assert novelty(calibrate=trajectory(9, seed=1)) < 100


def test_what_torch_makes_by_default_changes_nothing(tiny, tmp_path, request):
    model, fields = pretrained(), trajectory()
    before = rdjepa.adapt(model, fields, steps=1, device="cpu")
    path = before.save(tmp_path / "f.safetensors")
    forecast, novelty = before.forecast(fields[:4]), before.novelty(fields[:4])
    request.getfixturevalue("double")
    for forecaster in (before, rdjepa.load_forecaster(path), rdjepa.adapt(model, fields, steps=1, device="cpu")):
        assert np.array_equal(forecaster.forecast(fields[:4]), forecast)
        assert forecaster.novelty(fields[:4]) == novelty
    assert rdjepa.adapt(rdjepa.build("tiny", seed=0), fields, steps=1, device="cpu").losses
    assert torch.get_default_dtype() == torch.float64


def test_adaptation_computes_gradients_where_they_are_switched_off_and_says_where_they_cannot_be():
    model, fields = small(), trajectory(side=16)
    usual = rdjepa.adapt(model, fields, steps=2, device="cpu")
    with torch.no_grad():
        assert rdjepa.adapt(model, fields, steps=2, device="cpu").losses == usual.losses
    with torch.inference_mode(), pytest.raises(ArgumentError, match=r"got torch\.inference_mode; call adapt outside"):
        rdjepa.adapt(model, fields, steps=2, device="cpu")


def test_steps_and_seed_are_those_of_the_configuration_unless_given():
    model, x = small(), trajectory(14, side=16)
    five = AdaptConfig(steps=2, seed=5, batch=1)
    configured = rdjepa.adapt(model, x, config=five, device="cpu")
    assert configured.record["config"]["seed"] == 5
    assert (
        configured.losses == rdjepa.adapt(model, x, config=AdaptConfig(batch=1), steps=2, seed=5, device="cpu").losses
    )
    both = rdjepa.adapt(model, x, config=AdaptConfig(steps=9, batch=1), steps=2, seed=5, device="cpu")
    assert configured.losses == both.losses
    assert configured.losses != rdjepa.adapt(model, x, config=five, seed=0, device="cpu").losses
    default = rdjepa.adapt(model, x, steps=1, device="cpu")
    assert default.record["config"]["seed"] == 777 and default.losses != configured.losses


def test_statistics_come_from_the_support_unless_given():
    model, x = small(), trajectory(side=16)
    own = rdjepa.adapt(model, x, steps=1, device="cpu").normalizer
    assert own.source == "support"
    assert np.allclose(own.mean, x.mean((0, 1, 2)), atol=1e-4)
    given = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0), "pool")
    assert rdjepa.adapt(model, x, steps=1, normalizer=given, device="cpu").normalizer == given


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (np.zeros((10, SIDE, SIDE, 3), np.float32), "2 components"),
        (trajectory(8), "at least 9 frames"),
        (trajectory(side=16), f"{SIDE} x {SIDE} grid"),
        (np.zeros((10, SIDE, SIDE, 2), bool), "floating"),
        (0 * trajectory(), "components that vary"),
        (np.nan * trajectory(), "finite"),
        (np.zeros((SIDE, SIDE), np.float32), "expected"),
    ],
)
def test_unfit_trajectories_are_refused_in_one_sentence(tiny, fields, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        rdjepa.adapt(rdjepa.build("tiny", seed=0), fields, steps=1)
    assert "\n" not in str(caught.value)


def test_a_normalizer_without_a_spread_is_refused(tiny):
    with pytest.raises(ArgumentError, match=r"standard deviations above 0, got \(1\.0, 0\.0\)"):
        rdjepa.adapt(rdjepa.build("tiny", seed=0), trajectory(), normalizer=Normalizer((0.0, 0.0), (1.0, 0.0)))


def test_unfit_contexts_are_refused(forecaster):
    with pytest.raises(DataError, match="T at least 4"):
        forecaster.forecast(trajectory(3))
    with pytest.raises(DataError, match="finite context"):
        forecaster.forecast(np.inf * trajectory(4))
    context = trajectory()[:4]
    for unfit, words in (
        (np.ma.masked_greater(context, 2), "real numbers, got masked ones"),
        (context + 1j, "real numbers, got complex64"),
        (context.astype(object), "real numbers, got object"),
        (context.astype(np.float64) * 1e300, "within the range of float32"),
        (context[None][:0], rf"got \(0, 4, {SIDE}, {SIDE}, 2\)"),
    ):
        with pytest.raises(DataError, match=words):
            forecaster.forecast(unfit)
    reduced = torch.from_numpy(context).bfloat16()
    assert np.array_equal(forecaster.forecast(reduced), forecaster.forecast(reduced.float().numpy()))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"at": 1}, "at to be a Collection, got 1"),
        ({"at": "10"}, "at to be a whole number"),
        ({"progress": True}, "progress to be a function or None, got True"),
        ({"observe": 3}, "observe to be a function or None, got 3"),
    ],
)
def test_what_is_called_and_when_is_checked_before_anything_is_read(given, sentence):
    with pytest.raises(ArgumentError, match=f"expected {sentence}"):
        rdjepa.adapt("equation", "no such file", **given)


@pytest.mark.parametrize("options", [{}, {"decoder": "pretrained", "base": "linear"}])
def test_no_updates_of_what_has_to_learn_are_refused(tiny, options):
    with pytest.raises(ArgumentError, match="expected at least one update of a fresh decoder, a base or a forecaster"):
        rdjepa.adapt(rdjepa.build("tiny"), trajectory(), steps=0, **options)
    with pytest.raises(ValueError, match="expected steps to be a whole number of at least 0"):
        rdjepa.adapt(rdjepa.build("tiny"), trajectory(), steps=-1)


def test_a_zero_shot_forecaster_is_the_pretrained_model_and_the_field_statistics(tiny, tmp_path):
    model, fields = pretrained(), trajectory(25)
    zero = rdjepa.adapt(model, fields, steps=0, decoder="pretrained", hold_out=0.4, device="cpu")
    assert zero.losses == [] and zero.record["config"]["steps"] == 0 and zero.calibration is not None
    kept = Normalizer.fit([fields[: zero.record["frames"][0]]], "support")
    network = forecasters.model_class("rd-jepa-zero-shot")(model)
    expected = rdjepa.Forecaster(network, kept).forecast(fields[:4])
    np.testing.assert_array_equal(zero.forecast(fields[:4]), expected)
    again = rdjepa.load_forecaster(zero.save(tmp_path / "zero.safetensors"))
    np.testing.assert_array_equal(again.forecast(fields[:4]), expected)


def test_a_forecaster_that_nothing_was_pretrained_for_is_known_by_its_name():
    fields = trajectory()
    for name, steps in (("equation", None), ("linear", 0), ("autoregression", 5)):
        found = rdjepa.adapt(name, fields, steps=steps, device="cpu")
        assert found.model.name == name and not found.losses
        expected = rdjepa.adapt(forecasters.build(name, "nano"), fields, device="cpu")
        assert np.array_equal(found.forecast(fields[:4]), expected.forecast(fields[:4]))
    one, same, other = (nn.utils.parameters_to_vector(loaded("lno", seed).parameters()) for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)
    with pytest.raises(ArgumentError, match="at least one update"):
        rdjepa.adapt("lno", np.zeros((9, 64, 64, 2)), steps=0)
    with pytest.raises(CheckpointError, match=r"expected a shipped checkpoint .*'rd-jepa'; check the name"):
        rdjepa.adapt("rd-jepa", fields)
    with pytest.raises(CheckpointError, match=r"nothing was pretrained for, such as equation, got 'equaton'"):
        rdjepa.adapt("equaton", fields)


def test_a_tuned_encoder_is_trained_and_saved_and_a_frozen_one_stays_as_it_was(tiny, tmp_path):
    model, fields = rdjepa.build("tiny", seed=0), trajectory()
    frozen, tuned = (rdjepa.adapt(model, fields, steps=2, encoder=name, device="cpu") for name in ("frozen", "tuned"))
    for forecaster, moved in ((frozen, False), (tuned, True)):
        assert isinstance(forecaster.model, RDJEPAForecaster)
        pairs = zip(forecaster.model.encoder.parameters(), model.encoder.parameters(), strict=True)
        assert any(not torch.equal(now, before) for now, before in pairs) == moved
    assert (frozen.model.name, tuned.model.name) == ("rd-jepa", "rd-jepa-tuned")
    assert (frozen.record["encoder"], tuned.record["encoder"]) == ("frozen", "tuned")
    context = fields[1:5]
    for forecaster in (frozen, tuned):  # the contexts of the support are as near as can be, those at its end too
        for known in (context, fields[-4:], fields[-8:-4]):
            assert forecaster.novelty(known) == pytest.approx(0, abs=1e-3)
    loaded = rdjepa.load_forecaster(tuned.save(tmp_path / "tuned.safetensors"))
    assert np.array_equal(loaded.forecast(context), tuned.forecast(context))
    with pytest.raises(ArgumentError, match="expected an encoder among auto, frozen, tuned, got 'warm'"):
        rdjepa.adapt(model, fields, steps=1, encoder="warm")
    with pytest.raises(ArgumentError, match="expected a tuned encoder with a pretrained model, got it with the foreca"):
        rdjepa.adapt(forecasters.build("scratch", "nano"), fields, steps=1, encoder="tuned")


@pytest.mark.parametrize(
    ("count", "options", "encoder", "retained"),
    [
        (4, {}, "frozen", 0.5),
        (5, {}, "tuned", 0.0),
        (5, {"encoder": "frozen"}, "frozen", 0.0),
        (5, {"retain": 0.25}, "tuned", 0.25),
        (5, {"base": "linear"}, "frozen", 0.0),
        (5, {"decoder": "fresh"}, "frozen", 0.0),
        (6, {"hold_out": 0.3}, "frozen", 0.5),  # four are left
    ],
)
def test_several_trajectories_tune_the_encoder_and_nothing_is_retained(
    tiny, decided, monkeypatch, count, options, encoder, retained
):
    monkeypatch.setattr(retention, "relative_error", lambda *_: 0.1)
    made = rdjepa.adapt(pretrained(), [trajectory(9, seed) for seed in range(count)], steps=1, device="cpu", **options)
    assert (made.record["encoder"], made.record["retained"]) == (encoder, retained)
    assert made.model.name == ("rd-jepa-tuned" if encoder == "tuned" else "rd-jepa")


@pytest.mark.parametrize(
    ("count", "error", "options", "combined", "retained"),
    [
        (2, 0.1, {}, True, 0.5),
        (5, 0.1, {}, True, 0.0),
        (2, 0.1, {"retain": 0}, True, 0.0),
        (1, 0.1, {}, True, 0.5),
        (2, 0.1, {"base": "none"}, False, 0.5),
        (2, 0.1, {"base": "linear"}, False, 0.0),
        (2, 0.1, {"decoder": "fresh"}, False, 0.0),
        (2, 0.5, {}, True, 0.0),
        (1, 0.5, {"base": "none"}, False, 0.0),
        (1, 0.1, {"base": "anchored"}, False, 0.5),
        (2, 0.5, {"base": "anchored", "retain": 0}, False, 0.0),
        (2, 0.1, {"hold_out": 0.5}, True, 0.5),  # one is left
    ],
)
def test_a_forecast_is_combined_with_simple_ones_where_all_weights_were_pretrained(
    tiny, decided, monkeypatch, count, error, options, combined, retained
):
    monkeypatch.setattr(retention, "relative_error", lambda *_: error)
    fields = [trajectory(seed=seed) for seed in range(count)]
    made = rdjepa.adapt(pretrained(), fields, steps=1, device="cpu", **options)
    assert ("combined" in made.record, made.record["retained"]) == (combined, retained)
    assert made.base == ("combined" if combined else options.get("base", "none"))


@pytest.mark.parametrize(
    ("count", "error", "options"),
    [(2, 0.1, {}), (2, 0.5, {}), (1, 0.1, {"base": "anchored"}), (2, 0.1, {"hold_out": 0.5})],
)
def test_what_is_observed_last_is_the_result_and_what_is_saved(tiny, monkeypatch, tmp_path, count, error, options):
    fields, seen = [trajectory(seed=seed) for seed in range(count)], []
    context = fields[0][1:5]
    monkeypatch.setattr(retention, "relative_error", lambda *_: error)

    def observe(_, weights, now):
        seen.append(now.forecast(context))

    made = rdjepa.adapt(pretrained(), fields, steps=1, device="cpu", observe=observe, at=(1,), **options)
    forecast = made.forecast(context)
    assert np.array_equal(seen[-1], forecast)
    again = rdjepa.load_forecaster(made.save(tmp_path / "made.safetensors"))
    assert np.array_equal(again.forecast(context), forecast)
    assert made.novelty(context) == pytest.approx(0, abs=1e-3)
    assert made.base == options.get("base", "combined")
    if made.base == "combined":
        shares = np.array(made.record["combined"])
        assert shares.shape == (5, 2) and (shares >= 0).all() and (shares <= 1).all()
        assert error < 0.3 or (shares == 1).all()  # what it would be without the context's own forecast is not known
        assert made.record["together"] > retention.KNOWN


@pytest.mark.parametrize("tile", [False, True])
@pytest.mark.parametrize("better", ["combination", "network"])
def test_of_several_trajectories_the_last_chooses_what_forecasts(tiny, monkeypatch, better, tile):
    monkeypatch.setattr(retention, "relative_error", lambda *_: 0.9)
    if better == "network":
        monkeypatch.setattr(Combined, "predict", lambda _, rest, *others: rest + 9)
    side, seen, known = WIDE if tile else SIDE, [], []
    fields = [trajectory(12, seed=0, side=side), trajectory(10, seed=1, side=side)]

    def watched(decision, network, others, equation=None, **options):
        known.append(len(options["familiar"].latents))
        assert not torch.equal(equation.gram, decision.combined.equation.gram)  # it has not seen the last one
        return settle(decision, network, others, equation, **options)

    monkeypatch.setattr("rdjepa.api.learner.settle", watched)
    adapt = partial(rdjepa.adapt, pretrained(), fields, steps=5, device="cpu", tile=tile)
    made = adapt(observe=lambda updates, *_: seen.append(updates), at=(5,))
    errors = made.record["on_others"]
    assert made.record["withheld"] == 1 and seen == [5] and known == [4]  # nothing is familiar by the last one
    assert better == "network" or len(getattr(made.model, "known", ())) == 6
    assert (better == "network") == (errors["network"] < errors["combined"])
    assert (made.base, "combined" in made.record) == (("none", False) if better == "network" else ("combined", True))
    monkeypatch.setattr("rdjepa.api.learner.settle", settle)
    for options in ({"base": "none"}, {"retain": 0.5}, {"calibrate": [trajectory(seed=3, side=side)]}):
        assert "withheld" not in adapt(**options).record


def test_what_simple_forecasts_know_is_not_learned_for_long(tiny, monkeypatch):
    turns = 0.3 * np.arange(18)[:, None, None] + 6 * np.random.default_rng(0).random((SIDE, SIDE))
    monkeypatch.setattr(retention, "relative_error", lambda *_: 0.9)
    fields = np.stack([np.cos(turns), np.sin(turns)], axis=-1).astype(np.float32)
    made = rdjepa.adapt(pretrained(), fields, steps=1, device="cpu")
    assert made.record["together"] < 0.01 and made.record["retained"] == retention.SHARE


@pytest.mark.parametrize("name", ["linear", "equation"])
def test_what_needs_no_update_is_fitted_to_the_trajectories(name, tmp_path):
    fields, context = [trajectory(12, seed, 16) for seed in range(2)], trajectory(4, 7, 16)
    made = rdjepa.adapt(forecasters.build(name, "nano"), fields, device="cpu")
    standard = standardized(fields, made.normalizer)
    expected = rdjepa.Forecaster(forecasters.model_class(name)().fitted_to(standard), made.normalizer)
    assert not made.losses and np.array_equal(made.forecast(context), expected.forecast(context))
    again = rdjepa.load_forecaster(made.save(tmp_path / "made.safetensors"))
    assert np.array_equal(again.forecast(context), made.forecast(context))
    with pytest.raises(ArgumentError, match="a forecaster, which is adapted already; give the network inside"):
        loaded(again)
    with pytest.raises(CheckpointError, match=r"the forecaster '.*made\.safetensors', which is adapted already"):
        loaded(tmp_path / "made.safetensors")


@pytest.mark.parametrize("options", [{"retain": 0.5}, {"steps": 0}])
def test_a_forecaster_of_random_weights_is_not_taken_for_a_pretrained_one(options):
    fresh = forecasters.build("rd-jepa-decoder", "nano", seed=0)
    with pytest.raises(ArgumentError, match=r"expected (weights that were all|at least one update)"):
        rdjepa.adapt(fresh, trajectory(), **{"steps": 1} | options, device="cpu")


def test_settings_of_sizes_without_a_preset_are_told(tiny):
    said = r"'custom' have no settings of their own, .* taken: up to 5,000 updates, weights that are not averaged"
    with pytest.warns(Note, match=said), pytest.raises(DataError, match="at least 9 frames"):
        rdjepa.adapt(rdjepa.build(tiny, seed=0), trajectory(3), device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rdjepa.build(tiny, seed=0)
        rdjepa.adapt(model, trajectory(), steps=1, device="cpu")
        rdjepa.adapt(model, trajectory(), config=AdaptConfig(steps=1), device="cpu")
        rdjepa.adapt(Linear(), trajectory(), device="cpu")


def test_a_forecaster_around_pretrained_networks_is_taken_for_one(tiny):
    made = rdjepa.adapt(DecoderKept(pretrained()), trajectory(), steps=1, retain=0.25, device="cpu")
    assert made.record["retained"] == 0.25 and "unadapted" in made.record


def test_evaluation_gives_a_row_per_metric_horizon_and_trajectory(forecaster):
    rows = rdjepa.evaluate(forecaster, [trajectory(seed=1), trajectory(seed=2)])
    assert len(rows) == 2 * 5 * 2
    assert all(np.isfinite(row.value) for row in rows)


@pytest.mark.parametrize(("precision", "base"), [("float32", "auto"), ("bfloat16", "none")])
def test_a_block_of_autocast_around_changes_nothing(tiny, precision, base):
    model, fields = pretrained(), trajectory()
    config = AdaptConfig(steps=2, batch=1, precision=precision, averaging=0.5)
    usual = rdjepa.adapt(model, fields, config=config, base=base, device="cpu")
    other = trajectory(9, seed=1)
    rows = rdjepa.evaluate(usual, other)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = rdjepa.adapt(model, fields, config=config, base=base, device="cpu")
        assert inside.losses == usual.losses
        for forecaster in (usual, inside):
            assert rdjepa.evaluate(forecaster, other) == rows
            assert forecaster.novelty(fields[:4]) == usual.novelty(fields[:4])


def test_updates_are_as_many_as_a_configuration_says_unless_it_is_left_open(tiny, monkeypatch):
    model, fields = pretrained(), trajectory()
    monkeypatch.setattr(retention, "FAMILIAR", np.inf)
    monkeypatch.setattr(retention, "UPDATES", 1)
    monkeypatch.setattr("rdjepa.api.adapting.PROFILES", {"tiny": AdaptConfig(steps=3)})
    three = AdaptConfig(steps=3)
    for options, made in (
        ({}, 1),
        ({"config": three}, 3),
        ({"config": three, "steps": "auto"}, 1),
        ({"config": three, "steps": 2}, 2),
        ({"steps": "auto"}, 1),
    ):
        adapted = rdjepa.adapt(model, fields, device="cpu", base="none", **options)
        assert len(adapted.losses) == made and adapted.record["retained"] == 0.5


def test_trajectories_of_several_grids_are_refused_where_any_one_would_do():
    several = [trajectory(side=side) for side in (16, 24)]
    with pytest.raises(DataError, match=r"expected fields on one grid, got 16 x 16, 24 x 24; give"):
        rdjepa.adapt(forecasters.build("linear"), several)
