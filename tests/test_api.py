import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation import retention
from rdjepa.adaptation.adapt import AdaptConfig
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.api import latent_error
from rdjepa.api.adapting import forecaster_of
from rdjepa.data.build import build
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key
from rdjepa.errors import ArgumentError, CheckpointError, DataError
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.io import checkpoint
from rdjepa.pretraining import config as profiles
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.objectives.field_forecast import ForecastOptions
from rdjepa.study import leaks


def trajectory(frames=10, seed=0):
    return np.random.default_rng(seed).standard_normal((frames, 64, 64, 2)).astype(np.float32) * 3 + 1


@pytest.fixture
def forecaster(tiny):
    return rdjepa.adapt(rdjepa.build("tiny", seed=0), trajectory(), steps=2, device="cpu")


def test_forecast_is_in_physical_units_and_of_five_frames(forecaster):
    context = trajectory()[:4]
    future = forecaster.forecast(context)
    assert future.shape == (5, 64, 64, 2)
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
    turning = np.arange(20)[:, None, None, None] * 0.3 + np.random.default_rng(1).uniform(0, 6, (1, 64, 64, 2))
    fields = np.cos(turning).astype(np.float32)
    model = rdjepa.build("tiny", seed=0)
    plain, based = (rdjepa.adapt(model, fields, steps=1, base=base, device="cpu") for base in ("none", "linear"))
    context, future = fields[3:7], fields[7:12]
    errors = [rdjepa.metrics.relative_l2(f.forecast(context), future).mean() for f in (plain, based)]
    assert errors[1] < 0.05 < errors[0]
    loaded = rdjepa.load_forecaster(based.save(tmp_path / "f.safetensors"))
    assert np.array_equal(loaded.forecast(context), based.forecast(context))
    assert (based.record["forecaster"], plain.base, based.base, loaded.base) == ("rd-jepa", "none", "linear", "linear")
    with pytest.raises(ValueError, match="a base among none, linear, got 'ar'"):
        rdjepa.adapt(model, fields, steps=1, base="ar")


@pytest.mark.parametrize("base", ["none", "linear"])
def test_a_tiled_forecaster_takes_whole_fields_and_is_saved_with_its_tiles(tiny, tmp_path, base):
    wide = np.random.default_rng(0).standard_normal((2, 10, 192, 192, 2)).astype(np.float32)
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
    assert made.shape == (5, 192, 192, 2) == seen[0]
    assert forecaster.interval(context, 0.5).lower.shape == made.shape
    novelty = forecaster.novelty(context)
    assert novelty is not None and forecaster.base == base
    loaded = rdjepa.load_forecaster(forecaster.save(tmp_path / "f.safetensors"))
    assert np.array_equal(loaded.forecast(context), made) and loaded.base == base
    assert loaded.novelty(context) == novelty
    with pytest.raises(DataError, match="192, 192"):
        loaded.forecast(context[:, :64, :64])


@pytest.mark.parametrize(
    ("fields", "options", "sentence"),
    [
        (np.ones((10, 192, 192, 2)), {"tile": True, "resample": True}, "resampled or tiled, got both"),
        (np.random.default_rng(0).random((10, 192, 160, 2)), {"tile": True}, "square fields .* got 192 x 160"),
        (trajectory(), {"tile": True}, "more than 64 points per side to tile, got 64"),
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
    a = rdjepa.adapt(model, trajectory(), steps=2, device="cpu")
    b = rdjepa.adapt(model, trajectory(), steps=2, device="cpu")
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert a.losses == b.losses
    assert a.losses != rdjepa.adapt(model, trajectory(), steps=2, seed=778, device="cpu").losses


def test_steps_and_seed_are_those_of_the_configuration_unless_given(tiny):
    model, x = rdjepa.build("tiny", seed=0), trajectory()
    five = AdaptConfig(steps=2, seed=5)
    configured = rdjepa.adapt(model, x, config=five, device="cpu")
    assert configured.record["config"]["seed"] == 5
    assert configured.losses == rdjepa.adapt(model, x, steps=2, seed=5, device="cpu").losses
    both = rdjepa.adapt(model, x, config=AdaptConfig(steps=9), steps=2, seed=5, device="cpu")
    assert configured.losses == both.losses
    assert configured.losses != rdjepa.adapt(model, x, config=five, seed=0, device="cpu").losses
    default = rdjepa.adapt(model, x, steps=2, device="cpu")
    assert default.record["config"]["seed"] == 777 and default.losses != configured.losses


def test_statistics_come_from_the_support_unless_given(tiny):
    model = rdjepa.build("tiny", seed=0)
    x = trajectory()
    own = rdjepa.adapt(model, x, steps=1, device="cpu").normalizer
    assert own.source == "support"
    assert np.allclose(own.mean, x.mean((0, 1, 2)), atol=1e-4)
    given = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0), "pool")
    assert rdjepa.adapt(model, x, steps=1, normalizer=given, device="cpu").normalizer == given


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (np.zeros((10, 64, 64, 3), np.float32), "2 components"),
        (np.zeros((8, 64, 64, 2), np.float32), "at least 9 frames"),
        (trajectory()[:, :32, :32], "64 x 64 grid"),
        (np.zeros((10, 64, 64, 2), bool), "floating"),
        (np.zeros((10, 64, 64, 2), np.float32), "components that vary"),
        (np.full((10, 64, 64, 2), np.nan, np.float32), "finite"),
        (np.zeros((64, 64), np.float32), "expected"),
    ],
)
def test_unfit_trajectories_are_refused_in_one_sentence(tiny, fields, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        rdjepa.adapt(rdjepa.build("tiny", seed=0), fields, steps=1)
    assert "\n" not in str(caught.value)


def test_unfit_contexts_are_refused(forecaster):
    with pytest.raises(DataError, match="four whole frames"):
        forecaster.forecast(np.zeros((3, 64, 64, 2), np.float32))
    with pytest.raises(DataError, match="finite context"):
        forecaster.forecast(np.full((4, 64, 64, 2), np.inf, np.float32))


@pytest.mark.parametrize("options", [{}, {"decoder": "pretrained", "base": "linear"}])
def test_no_updates_of_what_has_to_learn_are_refused(tiny, options):
    with pytest.raises(ArgumentError, match="expected at least one update of a fresh decoder, a base or a forecaster"):
        rdjepa.adapt(rdjepa.build("tiny"), trajectory(), steps=0, **options)
    with pytest.raises(ValueError, match="expected steps to be a whole number of at least 0"):
        rdjepa.adapt(rdjepa.build("tiny"), trajectory(), steps=-1)


def test_a_zero_shot_forecaster_is_the_pretrained_model_and_the_field_statistics(tiny, tmp_path):
    model, fields = rdjepa.build("tiny", seed=0), trajectory(25)
    model.pretrained = ("encoder", "predictor", "decoder")
    zero = rdjepa.adapt(model, fields, steps=0, decoder="pretrained", hold_out=0.4, device="cpu")
    assert zero.losses == [] and zero.record["config"]["steps"] == 0 and zero.calibration is not None
    kept = Normalizer.fit([fields[: zero.record["frames"][0]]], "support")
    network = forecasters.model_class("rd-jepa-zero-shot")(model)
    expected = rdjepa.Forecaster(network, kept, {}).forecast(fields[:4])
    np.testing.assert_array_equal(zero.forecast(fields[:4]), expected)
    again = rdjepa.load_forecaster(zero.save(tmp_path / "zero.safetensors"))
    np.testing.assert_array_equal(again.forecast(fields[:4]), expected)


def test_evaluation_gives_a_row_per_metric_horizon_and_trajectory(forecaster):
    rows = rdjepa.evaluate(forecaster, [trajectory(seed=1), trajectory(seed=2)])
    assert len(rows) == 2 * 5 * 2
    assert all(np.isfinite(row.value) for row in rows)


def test_pretraining_takes_any_systems_and_records_them(tiny, tmp_path, monkeypatch):
    data, names = tmp_path / "data", ["schnakenberg", "lambda-omega"]
    build(data, [Key(name, split) for name in names for split in ("pool", "validation")])
    monkeypatch.setitem(profiles.PROFILES, "tiny", PretrainConfig(steps=2, batch=1, warmup=1))
    model = rdjepa.pretrain("tiny", data, tmp_path / "run", systems=names, device="cpu", stop_at=1)
    record = checkpoint.read_config(tmp_path / "run" / "model")[1].pretraining
    assert record["systems"] == names == list(record["trajectories"]) and model.name == "tiny"
    with pytest.raises(ArgumentError, match="expected the systems schnakenberg, lambda-omega that"):
        rdjepa.pretrain("tiny", data, tmp_path / "run", systems=names[::-1], device="cpu", resume=True)
    with pytest.raises(ArgumentError, match=r"expected trajectories of brusselator \(pool\)"):
        rdjepa.pretrain("tiny", data, tmp_path / "other", systems=["brusselator"], device="cpu")


@pytest.mark.parametrize(
    ("objective", "pretrained"), [("field-forecast", ["encoder", "predictor", "decoder"]), ("random", [])]
)
def test_a_checkpoint_of_another_objective_says_so_and_is_adapted(tiny, tmp_path, monkeypatch, objective, pretrained):
    data, run = tmp_path / "data", tmp_path / "run"
    build(data, [Key("schnakenberg", split) for split in ("pool", "validation")])
    options = ForecastOptions(keep_decoder=True) if objective == "field-forecast" else None
    config = PretrainConfig(steps=1, batch=1, warmup=1, objective=objective, options=options)
    monkeypatch.setattr("rdjepa.pretraining.loop.VALIDATION_BATCHES", 1)
    chosen: dict = {"systems": ["schnakenberg"], "device": "cpu", "without": ["reaction"]}
    model = rdjepa.pretrain("tiny", data, run, config=config, **chosen)
    record = checkpoint.read_config(run / "model")[1]
    told = record.pretraining
    assert (told["objective"], told["pretrained"], told["without"]) == (objective, pretrained, ["reaction"])
    assert told["config"]["objective"] == objective and record.model["without"] == ["reaction"]
    assert told["steps"] == (1 if pretrained else 0) and told["diagnostics"]["latent_std"] > 0
    assert "Left out of the method: reaction." in (run / "model" / "README.md").read_text()
    loaded = rdjepa.load(run / "model")
    parts = [part for part in ("encoder", "predictor") if part in pretrained] or ["encoder", "predictor"]
    for part in [*parts, *(["decoder"] if "decoder" in pretrained else [])]:
        pairs = zip(getattr(model, part).parameters(), getattr(loaded, part).parameters(), strict=True)
        assert all(torch.equal(a.half().float(), b) for a, b in pairs)
    forecaster = rdjepa.adapt(loaded, trajectory(12), steps=1, device="cpu")
    assert np.isfinite(forecaster.forecast(trajectory(12)[:4])).all()


def test_a_decoder_is_pretrained_after_the_rest_and_adapted_further(tiny, tmp_path, monkeypatch):
    data, first, last = (tmp_path / name for name in ("data", "first", "last"))
    build(data, [Key(name, split) for name in ("schnakenberg", "brusselator") for split in ("pool", "validation")])
    config = PretrainConfig(steps=1, batch=1, warmup=1, peak=0.1)
    monkeypatch.setattr("rdjepa.pretraining.loop.VALIDATION_BATCHES", 1)
    rdjepa.pretrain("tiny", data, first, config=config, systems=["schnakenberg"], device="cpu")
    chosen: dict = {"config": config, "objective": "decoder", "systems": ["brusselator"], "device": "cpu"}
    with pytest.raises(ArgumentError, match="expected a pretrained model to start the objective decoder from"):
        rdjepa.pretrain("tiny", data, last, **chosen)
    copied = tmp_path / "copied"
    shutil.copytree(first / "model", copied)

    def removed(*_):  # the run ends with what it began with
        shutil.rmtree(first / "model", ignore_errors=True)

    rdjepa.pretrain("tiny", data, last, start=first / "model", progress=removed, **chosen)
    (_, before) = checkpoint.read_config(copied)
    (_, after) = checkpoint.read_config(last / "model")
    told, sources = after.pretraining, checkpoint.read_sources(last / "model")
    assert told["start"]["fingerprint"] == before.sha256
    assert told["summary"].startswith("predicting future states in latent space, then by forecasting fields with the d")
    assert told["systems"] == sources.systems == ["brusselator", "schnakenberg"] == list(sources.normalizers)
    normalizers = {name: Normalizer.from_dict(values) for name, values in sources.normalizers.items()}
    assert told["check"] == pytest.approx(latent_error(rdjepa.load(last / "model"), normalizers), rel=1e-2)
    assert (last / "model" / "start-curves.png").is_file()
    assert sorted(sources.trajectories) == ["brusselator/pool/id/00000", "schnakenberg/pool/id/00000"]
    assert leaks.audit(str(last / "model"))[1] == []

    loaded = rdjepa.load(last / "model")
    kept, fresh = (forecaster_of(loaded, 777, decoder=name)[0] for name in ("pretrained", "fresh"))
    assert isinstance(kept, RDJEPAForecaster) and isinstance(fresh, RDJEPAForecaster)
    assert all(map(torch.equal, kept.decoder.parameters(), loaded.decoder.parameters()))
    assert not any(map(torch.equal, fresh.decoder.parameters(), loaded.decoder.parameters()))
    adapted = rdjepa.adapt(loaded, trajectory(12), steps=1, decoder="pretrained", borders="walls", device="cpu")
    assert adapted.record["decoder"] == "pretrained" and adapted.model.settings()["model"]["borders"] == "walls"
    for model, decoder, sentence in (
        (
            copied,
            "pretrained",
            "got one with encoder and predictor; give it one with rdjepa pretrain --preset tiny --objective decoder",
        ),
        (loaded, "warm", "expected a decoder among fresh, pretrained, got 'warm'"),
        (rdjepa.forecasters.build("no-latent", "nano"), "pretrained", "built already and trained as it is"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            rdjepa.adapt(model, trajectory(12), steps=1, decoder=decoder, device="cpu")


def test_a_start_that_a_run_could_not_tell_of_is_refused_before_the_first_step(tiny, tmp_path, monkeypatch, edit_json):
    data, first, other = (tmp_path / name for name in ("data", "first", "other"))
    build(data, [Key("brusselator", split) for split in ("pool", "validation")])
    monkeypatch.setattr("rdjepa.pretraining.loop.VALIDATION_BATCHES", 1)
    chosen: dict = {"config": PretrainConfig(steps=1, batch=1, warmup=1), "systems": ["brusselator"], "device": "cpu"}
    rdjepa.pretrain("tiny", data, first, **chosen)

    def unlisted():
        (other / "data.json").unlink()

    def untold():
        edit_json(other / "config.json", lambda values: values["pretraining"].clear())

    def another():
        edit_json(other / "data.json", lambda values: values["trajectories"].update({"brusselator/pool/id/00000": "0"}))

    for change, error, sentence in (
        (unlisted, CheckpointError, "expected the list of its data"),
        (untold, CheckpointError, "in .*, got one without config; start from another"),
        (another, DataError, "expected the trajectory brusselator/pool/id/00000 that the model was started with"),
    ):
        shutil.copytree(first / "model", other, dirs_exist_ok=True)
        change()
        with pytest.raises(error, match=sentence):
            rdjepa.pretrain("tiny", data, tmp_path / "run", start=other, objective="decoder", **chosen)
    with pytest.raises(ArgumentError, match="no model to start the objective random from, which trains nothing"):
        rdjepa.pretrain("tiny", data, tmp_path / "run", start=first / "model", objective="random", **chosen)
    assert not list((tmp_path / "run").rglob("*.safetensors"))


def test_pretraining_on_a_family_takes_statistics_of_each_equation_and_as_many_as_asked(tiny, tmp_path, monkeypatch):
    build(tmp_path / "data", [Key("family", "validation"), *(Key("family", "pool", index=i) for i in range(2))])
    monkeypatch.setitem(profiles.PROFILES, "tiny", PretrainConfig(steps=1, batch=1, warmup=1))
    monkeypatch.setattr("rdjepa.pretraining.loop.VALIDATION_BATCHES", 1)
    rdjepa.pretrain("tiny", tmp_path / "data", tmp_path / "run", systems=["family"], trajectories=1, device="cpu")
    sources = checkpoint.read_sources(tmp_path / "run" / "model")
    assert list(sources.normalizers) == list(sources.trajectories) == ["family/pool/id/00000"]
    assert sources.systems == ["family"] and sources.normalizers["family/pool/id/00000"]["source"] == "trajectory"


def test_a_share_of_the_pretrained_weights_is_retained(tiny):
    model, seen = rdjepa.build("tiny", seed=1), []
    model.pretrained = ("encoder", "predictor", "decoder")

    def observe(updates, weights, forecaster):
        seen.append((weights, retention.weights(forecaster.model)))

    def adapted(**options: Any) -> Forecaster:
        kept = {"decoder": "pretrained", "config": AdaptConfig(averaging=0.9)}
        given: dict[str, Any] = {"steps": 3, "device": "cpu", **kept}
        return rdjepa.adapt(model, trajectory(12), **(given | options))

    first, tuned = retention.weights(adapted(steps=0).model), adapted()
    half = adapted(retain=0.5, observe=observe, at=[3])
    assert (tuned.record["retained"], half.record["retained"]) == (0.0, 0.5) and tuned.losses == half.losses
    expected = {name: 0.5 * (tensor + first[name]) for name, tensor in retention.weights(tuned.model).items()}
    assert any(not torch.equal(expected[name], first[name]) for name in first)
    for found in (retention.weights(half.model), dict(seen)["averaged"]):
        assert all(torch.allclose(tensor, expected[name], atol=1e-6) for name, tensor in found.items())
    for options in ({"decoder": "fresh"}, {"base": "linear"}):
        with pytest.raises(ArgumentError, match="weights that were all pretrained where a share is retained"):
            adapted(retain=0.5, **options)
    with pytest.raises(ArgumentError, match="retain"):
        adapted(retain=1.0)


def test_what_pretraining_saw_is_rehearsed_as_it_was_seen(tiny, tmp_path, monkeypatch):
    names = ["schnakenberg", "family"]
    build(tmp_path / "data", [Key(name, split) for name in names for split in ("pool", "validation")])
    monkeypatch.setitem(profiles.PROFILES, "tiny", PretrainConfig(steps=1, batch=1, warmup=1))
    monkeypatch.setattr("rdjepa.pretraining.loop.VALIDATION_BATCHES", 1)
    rdjepa.pretrain("tiny", tmp_path / "data", tmp_path / "run", systems=names, device="cpu")
    path = tmp_path / "run" / "model"
    read, simulated = rdjepa.rehearsal(path, data=tmp_path / "data"), rdjepa.rehearsal(path, 3)
    assert [each.shape for each in read] == 2 * [(40, 64, 64, 2)]
    for one, other in zip(read, simulated, strict=True):
        assert np.array_equal(one, other)  # one trajectory, so its own statistics in a family or not
        assert np.allclose(one.mean((0, 1, 2)), 0, atol=1e-3) and np.allclose(one.std((0, 1, 2)), 1, atol=1e-2)
    adapted = rdjepa.adapt(path, trajectory(12), steps=2, rehearse=read, device="cpu")
    assert adapted.record["rehearsed"] == 2 and adapted.record["frames"] == [12] and adapted.familiar is not None
    changed: tuple[tuple[dict, type[Exception], str], ...] = (
        ({"base": "linear"}, ArgumentError, "expected no base where others are rehearsed, got linear"),
        ({"rehearse": [trajectory()[:, :32, :32]]}, DataError, "to rehearse on a 64 x 64 grid, got 32 x 32"),
        ({"rehearse": [trajectory(5)]}, DataError, "got 5"),
    )
    for options, error, sentence in changed:
        with pytest.raises(error, match=sentence):
            rdjepa.adapt(path, trajectory(12), steps=1, **({"rehearse": read, "device": "cpu"} | options))
    with pytest.raises(ArgumentError, match="count to be"):
        rdjepa.rehearsal(path, 0)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"objective": "contrast"}, "among predictive-latent, field-forecast"),
        ({"without": ["attention"]}, "parts among diffusion, reaction"),
        ({"without": ["tubes"], "objective": "random"}, "expected the objective predictive-latent where"),
        ({"config": 5}, "config to be"),
        ({"trajectories": 0}, "the trajectories of gray-scott to be a whole number of at least 1, got 0"),
        ({"trajectories": {"heat": 1}}, "got some of heat; name its system"),
        ({"config": PretrainConfig(weights=(("heat", 2),))}, "got one of heat; name its system"),
    ],
)
def test_unknown_objectives_and_parts_are_refused_and_nothing_is_written(tmp_path, chosen, words):
    with pytest.raises(ArgumentError, match=words):
        rdjepa.pretrain("nano", tmp_path, tmp_path / "run", **chosen)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("systems", "words"),
    [(["heat"], "known: gray-scott"), ([], "got none"), (["barkley", "barkley"], "each once")],
    ids=["unknown", "none", "twice"],
)
def test_unknown_no_and_repeated_systems_are_refused_before_anything_is_read(tmp_path, systems, words):
    with pytest.raises(ArgumentError, match=words):
        rdjepa.pretrain("nano", tmp_path, tmp_path / "run", systems=systems)


def test_the_recorded_check_is_of_trained_systems(monkeypatch, tiny):
    seen = []

    def simulate(name, split):
        seen.append(name)
        return rdjepa.Trajectory(trajectory(12), np.arange(12.0))

    monkeypatch.setattr("rdjepa.api.pretraining.simulate", simulate)
    unit, model = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)), rdjepa.build("tiny", seed=0)
    for trained, checked in (
        (["schnakenberg", "barkley", "gray-scott"], ["gray-scott", "schnakenberg"]),
        (["barkley", "oregonator"], ["barkley"]),
        (["mine"], ["mine.py"]),
        (["family/pool/id/00000"], ["family"]),
    ):
        assert np.isfinite(latent_error(model, dict.fromkeys(trained, unit), {"mine": "mine.py"}))
        assert seen == checked
        seen.clear()
