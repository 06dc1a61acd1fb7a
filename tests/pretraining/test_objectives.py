import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from noise import CONFIG, source

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.loss import forecast_loss
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.io.tensors import load_tensors
from rdjepa.models.encoder import AdaptiveNorm
from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import PRESETS, build
from rdjepa.pretraining import objectives
from rdjepa.pretraining.engine import Engine
from rdjepa.pretraining.loop import pretrain
from rdjepa.pretraining.loss import jepa_loss
from rdjepa.pretraining.objectives.adaptation import AdaptationOptions
from rdjepa.pretraining.objectives.base import Outcome
from rdjepa.pretraining.objectives.field_forecast import FieldForecast, ForecastOptions
from rdjepa.pretraining.objectives.masked_fields import MaskedFields, MaskOptions, reconstruction_loss
from rdjepa.pretraining.objectives.predictive_latent import PredictiveLatent
from rdjepa.pretraining.objectives.variance_covariance import (
    FLOOR,
    VarianceOptions,
    centered,
    covariance_term,
    variance_term,
)
from rdjepa.pretraining.processes import Ranks
from rdjepa.pretraining.schedules import ema_momentum, learning_rate
from rdjepa.pretraining.state import TrainingState, saved_states
from rdjepa.pretraining.targets import Queries, TargetConfig
from tiny import TINY

TRAINED = [name for name in objectives.names() if objectives.get(name).trained]
CPU = torch.device("cpu")


def pretrained(seed=5):
    """A model that counts as pretrained, with weights unlike those of the runs."""
    model = build("tiny", seed=seed)
    model.name, model.fingerprint, model.pretrained = "tiny", f"seed {seed}", ("encoder", "predictor")
    return model


def needed(name):
    """What an objective goes on from."""
    return pretrained() if objectives.get(name).continues else None


def started(name, **changes):
    """Begin a run, and draw a batch for it from smooth waves instead of noise."""
    training = TrainingState("tiny", replace(CONFIG, objective=name, **changes), CPU, start=needed(name))
    data, time = source(), torch.arange(28.0)[:, None, None]
    wave = torch.sin(2 * torch.pi * (torch.arange(TINY.grid) / 16 - time / 10)).expand(-1, TINY.grid, -1)
    data.frames.table[:] = torch.stack([wave, wave.transpose(1, 2)], 1)
    return training, data.batch(1, 0, 2, 8, training.objective)


@pytest.mark.parametrize("name", TRAINED)
def test_loss_decreases_on_one_batch(tiny, name):
    training, batch = started(name, steps=100, warmup=1, peak=2e-3)
    losses = [training.update([batch])["loss"] for _ in range(12)]
    assert min(losses[-3:]) < 0.9 * losses[0]


@pytest.mark.parametrize("name", TRAINED)
def test_gradients_reach_exactly_what_is_trained(tiny, name):
    training, batch = started(name)
    for module in training.objective.modules():  # adaptive norms start at zero, which hides the embedding behind them
        if isinstance(module, AdaptiveNorm):
            torch.nn.init.normal_(module.modulation.weight)
    batch.mask[:, 0, :9] = True
    training.objective(batch).loss.backward()
    trained = dict(zip(training.names, training.objective.trainable(), strict=True))
    for key, parameter in training.objective.named_parameters():
        assert (parameter.grad is not None) == (key in trained), key
        # softmax is blind to a shift of all keys, so a key bias has a zero gradient by construction
        assert key not in trained or parameter.grad.any() or key.endswith("key.bias"), key
    begun = needed(name)
    kept = set(training.objective.kept(training.config.options)) - set(begun.pretrained if begun else ())
    assert {key.split(".")[0] for key in trained} >= kept


@pytest.mark.parametrize("name", objectives.names())
def test_stopped_and_resumed_run_ends_with_the_same_bits(tiny, tmp_path, name):
    config = replace(CONFIG, steps=2, save_every=1, objective=name)
    states = []
    for run, stops in (("whole", (2,)), ("parts", (1, 2))):
        for stop in stops:
            model = pretrain("tiny", source(), tmp_path / run, config, resuming=True, stop_at=stop, start=needed(name))
        states.append(load_tensors(saved_states(tmp_path / run)[0]))
    (whole, _), (parts, record) = states
    assert record["config"]["objective"] == name
    assert whole.keys() == parts.keys() and all(torch.equal(whole[key], parts[key]) for key in whole)
    fresh = build("tiny", seed=config.seed)
    moved = {
        part
        for part in ("encoder", "predictor", "decoder")
        if not all(map(torch.equal, getattr(model, part).parameters(), getattr(fresh, part).parameters()))
    }
    assert moved == set(objectives.model_class(name).kept(objectives.resolved(config).options))
    assert all(torch.equal(whole[f"jepa.encoder.{key}"], value) for key, value in model.encoder.state_dict().items())


def test_a_run_whose_loss_leaves_a_weight_alone_is_resumed_too(tiny, tmp_path, monkeypatch):
    begin = PredictiveLatent.__init__

    def with_one_more(self, *given):
        begin(self, *given)
        self.unreached = torch.nn.Parameter(torch.ones(3))

    monkeypatch.setattr(PredictiveLatent, "__init__", with_one_more)
    config = replace(CONFIG, steps=2, save_every=1)
    for run, stops in (("whole", (2,)), ("parts", (1, 2))):
        for stop in stops:
            pretrain("tiny", source(), tmp_path / run, config, resuming=True, stop_at=stop)
    whole, parts = (load_tensors(saved_states(tmp_path / run)[0])[0] for run in ("whole", "parts"))
    assert whole.keys() == parts.keys() and all(torch.equal(whole[key], parts[key]) for key in whole)
    assert torch.equal(parts["jepa.unreached"], torch.ones(3)) and "exp_avg.unreached" not in parts


def test_predictive_latent_is_the_plain_formula_to_the_bit(tiny):
    training = TrainingState("tiny", CONFIG, CPU)
    model = build("tiny", seed=CONFIG.seed)
    jepa = JEPA(model.encoder, model.predictor)
    trained = [*jepa.encoder.parameters(), *jepa.predictor.parameters()]
    plain = torch.optim.AdamW(trained, lr=CONFIG.peak, betas=CONFIG.betas, weight_decay=CONFIG.weight_decay, fused=True)
    for step in range(2):
        batch = source().batch(CONFIG.seed, step, 2, 8, CONFIG.targets)
        ours = source().batch(CONFIG.seed, step, 2, 8, training.objective)
        assert all(torch.equal(getattr(batch, key), value) for key, value in vars(ours).items() if key != "systems")
        target = jepa.target_encoder(batch.futures[:, None])[batch.frame_of_query, batch.patches]
        loss = jepa_loss(jepa.predictor(jepa.encoder(batch.context, batch.mask), batch.patches, batch.offsets), target)
        plain.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, CONFIG.clip)
        (group,) = plain.param_groups
        group["lr"] = learning_rate(step, CONFIG.steps, CONFIG.warmup, CONFIG.peak, CONFIG.minimum)
        plain.step()
        jepa.update_target(ema_momentum(step, CONFIG.steps, *CONFIG.ema))
        assert training.update([ours])["loss"] == float(loss.detach())
    assert training.objective.state_dict().keys() == jepa.state_dict().keys()
    assert all(map(torch.equal, training.objective.state_dict().values(), jepa.state_dict().values()))


def test_a_state_from_before_there_were_objectives_weights_or_strides_has_the_usual_ones(
    tiny, whole, tmp_path, monkeypatch
):
    settings = TrainingState._settings

    def earlier(self):
        found = settings(self)
        missing = ("objective", "options", "weights", "strides")
        return found | {"config": {k: v for k, v in found["config"].items() if k not in missing}}

    with monkeypatch.context() as patch:
        patch.setattr(TrainingState, "_settings", earlier)
        pretrain("tiny", source(), tmp_path / "run", CONFIG, stop_at=2)
    with pytest.raises(ArgumentError, match="objective, options, strides"):
        other = replace(CONFIG, objective="masked-fields", strides=(1, 2))
        pretrain("tiny", source(), tmp_path / "run", other, resuming=True)
    resumed = pretrain("tiny", source(), tmp_path / "run", CONFIG, resuming=True)
    assert all(map(torch.equal, whole.state_dict().values(), resumed.state_dict().values()))


def test_every_objective_sees_the_same_windows(tiny):
    data, seen = source(), []
    for name in objectives.names():
        objective = TrainingState("tiny", replace(CONFIG, objective=name), CPU, start=needed(name)).objective
        batch = data.batch(5, 3, 2, 8, objective)
        seen.append(batch)
    assert all(torch.equal(batch.context, seen[0].context) and batch.systems == seen[0].systems for batch in seen)


def test_forecast_of_fields_is_compared_with_the_frames_at_its_leads(tiny):
    frames = np.broadcast_to(np.arange(28.0, dtype=np.float32)[:, None, None, None], (28, 2, TINY.grid, TINY.grid))
    data = source()
    data.frames.table[:] = torch.from_numpy(frames.copy())
    options = ForecastOptions(leads=3)
    training = TrainingState("tiny", replace(CONFIG, objective="field-forecast", options=options), CPU)
    batch = data.batch(0, 0, 2, 8, training.objective)
    assert batch.offsets.shape == (2, 3) and batch.offsets.min() >= 1 and batch.offsets.diff(dim=1).min() >= 1
    answered = batch.futures[batch.frame_of_query]
    assert torch.equal(answered[..., 0, 0, 0], batch.context[:, -1, 0, 0, 0][:, None] + batch.offsets)
    objective: Any = training.objective
    grid = objective.predictor.full_grid(objective.encoder(batch.context), 8)
    wanted = torch.stack([grid[i, batch.offsets[i] - 1] for i in range(2)])
    loss = F.mse_loss(objective.decoder(wanted, batch.context[:, -1]), answered)
    assert objective(batch).loss.item() == pytest.approx(loss.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "tuned"),
    [
        ("decoder", None, {"decoder"}),
        ("adaptation", None, {"predictor", "decoder"}),
        ("adaptation", AdaptationOptions(encoder=True), {"encoder", "predictor", "decoder"}),
    ],
)
def test_what_learns_fields_has_the_loss_of_adaptation_and_leaves_the_others_as_they_were(tiny, name, options, tuned):
    start = pretrained()
    training, batch = started(name, options=options)
    assert torch.equal(batch.offsets, torch.arange(1, HORIZONS + 1).expand(2, -1)) and not batch.mask.any()
    wanted = forecast_loss(
        RDJEPAForecaster(beginning(start, CONFIG.seed))(batch.context),
        batch.futures[batch.frame_of_query],
    )
    assert training.update([batch])["loss"] == pytest.approx(wanted.item(), rel=1e-5)
    model = training.finished()
    first = beginning(start, CONFIG.seed)
    for part in ("encoder", "predictor", "decoder"):
        ours, before = getattr(model, part), dict(getattr(first, part).named_parameters())
        same = {key for key, value in ours.named_parameters() if torch.equal(value, before[key])}
        assert same == ({"mask_token"} & before.keys() if part in tuned else before.keys())


def beginning(start, seed):
    """The model that a run begins with: the pretrained networks, and the decoder of its seed."""
    model = build("tiny", seed=seed)
    for part in start.pretrained:
        getattr(model, part).load_state_dict(getattr(start, part).state_dict())
    return model


def test_a_run_goes_on_from_the_weights_of_a_model_and_is_resumed_with_the_same_ones_only(tiny, tmp_path):
    start = pretrained()
    training = TrainingState("tiny", CONFIG, CPU, start=start)
    objective: Any = training.objective
    for online in (objective.encoder, objective.target_encoder):
        assert all(map(torch.equal, online.parameters(), start.encoder.parameters()))
    pretrain("tiny", source(), tmp_path, CONFIG, stop_at=2, start=start)
    for other in (None, pretrained(6)):
        with pytest.raises(ArgumentError, match="other values of start in"):
            pretrain("tiny", source(), tmp_path, CONFIG, resuming=True, start=other)
    pretrain("tiny", source(), tmp_path, CONFIG, resuming=True, start=start)


def test_a_start_that_is_missing_of_other_sizes_or_half_pretrained_is_refused(tiny):
    config, half = replace(CONFIG, objective="decoder"), pretrained()
    half.pretrained = ("encoder",)
    other, fresh = (
        build(replace(PRESETS["tiny"], predictor_blocks=2)),
        build(replace(PRESETS["tiny"], decoder_groups=0)),
    )
    other.pretrained = fresh.pretrained = ("encoder", "predictor")
    TrainingState("tiny", config, CPU, start=fresh)  # its decoder, which is not pretrained, is not taken over
    for start, sentence in (
        (None, "expected a pretrained model to start the objective decoder from, got none"),
        (
            half,
            "pretrained encoder and predictor to start the objective decoder from, got encoder; give",
        ),
        (other, "the sizes and parts of the run, got another predictor_blocks"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            TrainingState("tiny", config, CPU, start=start)


def test_reconstruction_counts_hidden_patches_alone(tiny):
    patches = torch.randn(2, 4, 2, 9, 16)
    hidden = torch.tensor([[0, 4, 8], [1, 2, 3]])
    painted = patches.permute(0, 3, 1, 2, 4).clone()
    assert float(reconstruction_loss(painted, patches, hidden)) == 0
    for sample, shown in ((0, 1), (1, 8)):
        painted[sample, shown] += 1e3
    assert float(reconstruction_loss(painted, patches, hidden)) == 0
    painted[0, 4, 1] += 2.0  # one frame of one of six hidden patches of four frames
    assert float(reconstruction_loss(painted, patches, hidden)) == pytest.approx(4 / (6 * 4))


def test_hidden_patches_are_hidden_in_all_frames_and_the_encoder_cannot_see_them(tiny):
    training, batch = started("masked-fields", options=MaskOptions(0.6))
    assert batch.patches.shape == (2, round(0.6 * 64)) and len(batch.futures) == 0
    assert torch.equal(batch.mask.sum(-1), torch.full((2, 4), round(0.6 * 64)))
    assert all(batch.mask[i][:, batch.patches[i]].all() for i in range(2))
    blind = batch.mask.reshape(2, 4, 1, 8, 8).repeat_interleave(4, 3).repeat_interleave(4, 4)
    other = replace(batch, context=torch.where(blind, 7.0, batch.context))
    assert torch.equal(training.objective(batch).latent, training.objective(other).latent)
    for share, count in ((0.0, 1), (0.999, 63)):
        training, batch = started("masked-fields", options=MaskOptions(share))
        assert batch.patches.shape == (2, count)


def test_terms_of_one_position_are_those_of_vicreg():
    features = torch.randn(50, 1, 6, dtype=torch.float64) @ torch.randn(6, 6, dtype=torch.float64) * 0.4
    flat = features[:, 0]
    wanted = F.relu(1 - (flat.var(0) + FLOOR).sqrt()).mean()
    assert float(variance_term(features)) == pytest.approx(float(wanted), rel=1e-9)
    covariance = torch.cov(flat.T)
    off = covariance.square().sum() - covariance.diagonal().square().sum()
    assert float(covariance_term(features)) == pytest.approx(float(off) / 6, rel=1e-9)


def test_terms_are_zero_for_varied_independent_features_and_not_for_those_that_only_know_their_position():
    signs = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])[:, None] * 2
    assert float(variance_term(signs)) == 0
    assert float(covariance_term(signs)) == pytest.approx(0, abs=1e-6)
    positions = torch.randn(1, 16, 8).expand(5, -1, -1)
    assert float(variance_term(positions)) == pytest.approx(1 - FLOOR**0.5)
    deviations, freedom = centered(torch.randn(5, 16, 8) + positions * 100)
    assert freedom == 4 * 16 and float(deviations.square().sum() / freedom / 8) == pytest.approx(1, abs=0.2)


def test_views_are_four_frames_each_of_one_trajectory_some_intervals_apart(tiny):
    training, _ = started("variance-covariance")
    data, apart = source(), set()
    data.frames.table[:] = torch.arange(28.0)[:, None, None, None]
    for index in range(40):
        batch = data.batch(0, index, 2, 8, training.objective)
        later = batch.futures[batch.frame_of_query][..., 0, 0, 0] - batch.context[..., 0, 0, 0]
        assert torch.equal(later, later[:, :1].expand(-1, 4))
        apart |= set(later[:, 0].tolist())
    assert apart == set(range(1, 9))


def test_a_loss_that_compares_samples_is_that_of_its_terms_and_is_not_divided(tiny):
    options = VarianceOptions(cells=2, expansion=2)
    training, batch = started("variance-covariance", options=options)
    objective: Any = training.objective
    one, other = (
        objective.projector(F.avg_pool2d(objective.encoder(x).transpose(1, 2).unflatten(2, (8, 8)), 4).flatten(2).mT)
        for x in (batch.context, batch.futures[batch.frame_of_query])
    )
    assert one.shape == (2, 4, 64)
    wanted = 25 * F.mse_loss(one, other) + sum(25 * variance_term(x) + covariance_term(x) for x in (one, other))
    assert objective(batch).loss.item() == pytest.approx(wanted.item(), rel=1e-4)
    config = replace(CONFIG, objective="variance-covariance")
    for engine, ranks in ((Engine(accumulate=2), Ranks()), (Engine(), Ranks(0, 2))):
        with pytest.raises(ArgumentError, match="one process and one pass"):
            TrainingState("tiny", config, CPU, engine, ranks)


def test_random_weights_are_those_of_the_seed_and_are_measured(tiny, few, tmp_path):
    config = replace(CONFIG, objective="random")
    for _ in range(2):
        model = pretrain("tiny", source(), tmp_path, config, validation=source(1), resuming=True)
    fresh = build("tiny", seed=config.seed)
    assert all(map(torch.equal, model.state_dict().values(), fresh.state_dict().values()))
    (line,) = (json.loads(text) for text in (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert line["step"] == 0 and line["latent_std"] > 0 and "held_out_loss" not in line
    assert [path.name for path in saved_states(tmp_path)] == ["step-00000000.safetensors"]


@pytest.mark.parametrize("name", TRAINED)
def test_lines_have_the_diagnostics_that_the_networks_allow(tiny, few, tmp_path, name):
    config = replace(CONFIG, steps=1, warmup=1, objective=name)
    pretrain("tiny", source(), tmp_path, config, validation=source(1), start=needed(name))
    line = json.loads((tmp_path / "metrics.jsonl").read_text())
    of = "target" if name == objectives.DEFAULT else "latent"
    assert {f"{of}_std", f"{of}_rank", f"{of}_cosine", "gradient_norms", "queue"} <= line.keys()
    assert ("gates" in line) == (name in ("predictive-latent", "field-forecast"))
    for only in ("latent_loss", "skill_mean", "averaging_distance", "momentum"):
        assert (only in line) == (name == objectives.DEFAULT)
    assert ("held_out_loss" in line) == (name != objectives.DEFAULT)
    assert f"{of}_rank" in line["queue"]


@dataclass(frozen=True)
class Nothing:
    value: Any = 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"objective": "contrast"}, "among predictive-latent, field-forecast, masked-fields, .*, got 'contrast'"),
        ({"options": Nothing()}, "expected no options"),
        ({"objective": "masked-fields", "options": Nothing()}, "expected options to be a MaskOptions"),
        ({"objective": "variance-covariance", "options": VarianceOptions(cells=5)}, "divide 8 tokens"),
        ({"objective": "variance-covariance", "batch": 1}, "batch of at least 2"),
        ({"objective": "field-forecast", "options": ForecastOptions(leads=9)}, "at most 8 leads"),
        ({"targets": TargetConfig(sides=(2, 9))}, "sides of at most 8 patches"),
    ],
)
def test_unfit_settings_are_refused(tiny, changes, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        TrainingState("tiny", replace(CONFIG, **changes), CPU)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ForecastOptions(leads=0), "leads to be"),
        (lambda: MaskOptions(1.0), "share to be"),
        (lambda: VarianceOptions(invariance=-1.0), "invariance to be"),
        (lambda: objectives.register(objectives.get("random")), "a name of its own"),
    ],
)
def test_options_out_of_range_and_taken_names_are_refused(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()


@pytest.mark.parametrize("value", [Path("a"), float("nan")])
def test_options_that_no_state_could_hold_are_refused_before_the_first_step(tiny, monkeypatch, value):
    monkeypatch.setattr(MaskedFields, "options", Nothing)
    config = replace(CONFIG, objective="masked-fields", options=Nothing(value))
    with pytest.raises(
        ArgumentError, match=r"that a state can hold as JSON, got .*; give the options of masked-fields"
    ):
        TrainingState("tiny", config, CPU)


class Own(FieldForecast):
    """An objective as users write them."""


def keeping(*names):
    return type("Own", (FieldForecast,), {"kept": classmethod(lambda *_: names)})


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            keeping("encoder", "head"),
            r"expected a tuple of encoder, predictor, decoder from `kept` of Own, got \('encod",
        ),
        (
            type("Own", (FieldForecast,), {"kept": classmethod(lambda *_: "encoder")}),
            "from `kept` of Own, got 'encoder'",
        ),
        (
            type("Own", (MaskedFields,), {"kept": classmethod(lambda *_: ("predictor",))}),
            "got no predictor; set them in",
        ),
        (
            type("Own", (FieldForecast,), {"options": int}),
            "expected a frozen dataclass as the options of Own, got <class",
        ),
    ],
)
def test_a_class_that_no_run_could_be_finished_with_is_refused_before_it_begins(tiny, monkeypatch, kind, sentence):
    monkeypatch.setattr(objectives, "model_class", lambda _: kind)
    with pytest.raises(ArgumentError, match=sentence):
        TrainingState("tiny", CONFIG, CPU)


@pytest.mark.parametrize(
    ("forward", "sentence"),
    [
        (lambda found: found.loss, "expected what `forward` of Own returns to be a Outcome"),
        (lambda found: None, "expected what `forward` of Own returns to be a Outcome"),
        (lambda found: Outcome(found.loss[None], found.latent), r"a scalar loss .* got shape \(1,\)"),
        (lambda found: Outcome(found.loss.detach(), found.latent), r"a scalar loss .* got shape \(\) without gradient"),
        (lambda found: Outcome(found.loss, cast(Any, None)), r"latent tokens \(B, S, d\) .* got a NoneType"),
    ],
)
def test_an_outcome_that_no_step_can_be_made_with_is_refused(tiny, monkeypatch, forward, sentence):
    monkeypatch.setattr(Own, "forward", lambda self, batch: forward(FieldForecast.forward(self, batch)), raising=False)
    monkeypatch.setattr(objectives, "model_class", lambda _: Own)
    training, batch = started("field-forecast")
    with pytest.raises(ArgumentError, match=sentence):
        training.update([batch])


@pytest.mark.parametrize("offset", [-4, 9])
def test_frames_beyond_a_window_cannot_be_asked_for(offset):
    """They would be those of the trajectory before or behind it."""
    with pytest.raises(ArgumentError, match=f"offsets from -3 to 8 frames, which a window has, got {offset}"):
        Queries.of_frames(np.array([offset]), 4)


def test_what_is_drawn_is_what_is_asked_for(tiny, monkeypatch):
    monkeypatch.setattr(Own, "draw", lambda *_: np.arange(3), raising=False)
    monkeypatch.setattr(objectives, "model_class", lambda _: Own)
    with pytest.raises(ArgumentError, match="expected what Own draws to be a Queries"):
        started("field-forecast")


def test_whole_frames_hide_nothing():
    queries = Queries.of_frames(np.array([1, 3]), 4)
    assert not queries.mask.any() and queries.mask.shape == (4, 16) and queries.patches.size == 0
