"""Pretraining through the public function."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa.api import latent_error, pretraining
from rdjepa.api.start import forecaster_of
from rdjepa.cli.about import info
from rdjepa.cli.pretrain import probe as cli_probe
from rdjepa.data import acquire, manifest
from rdjepa.data.build import build
from rdjepa.data.identity import identity
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key
from rdjepa.errors import ArgumentError, CheckpointError, DataError, StudyError
from rdjepa.forecasters.rd_jepa import EncoderTuned, RDJEPAForecaster
from rdjepa.io import checkpoint, sealed
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining import config as profiles
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.engine import Engine
from rdjepa.pretraining.objectives.field_forecast import ForecastOptions
from rdjepa.pretraining.targets import TargetConfig
from rdjepa.study import contenders, leaks
from rdjepa.study.profiles import profile as study_profile
from rdjepa.systems import get
from tiny import TINY

pytestmark = pytest.mark.usefixtures("brief")
CHOSEN: dict = {
    "config": PretrainConfig(steps=2, batch=1, warmup=1, peak=0.1),
    "systems": ["schnakenberg"],
    "device": "cpu",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    made, names = tmp_path_factory.mktemp("data"), ("schnakenberg", "brusselator", "family")
    keys = [Key(name, split) for name in names for split in ("pool", "validation")]
    build(made, [*keys, Key("family", "pool", index=1)])
    return made


@pytest.fixture(scope="module")
def first(brief, data, tmp_path_factory):
    run = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        rdjepa.pretrain("tiny", data, run, **CHOSEN)
    return run / "model"


def trajectory(frames=10, seed=0):
    return np.random.default_rng(seed).standard_normal((frames, TINY.grid, TINY.grid, 2)).astype(np.float32) * 3 + 1


def test_pretraining_takes_any_systems_and_records_them(tiny, data, tmp_path, monkeypatch):
    names = ["schnakenberg", "brusselator"]
    monkeypatch.setitem(profiles.PROFILES, "tiny", PretrainConfig(steps=2, batch=1, warmup=1))
    model = rdjepa.pretrain("tiny", data, tmp_path / "run", systems=names, device="cpu", stop_at=1)
    record = checkpoint.read_config(tmp_path / "run" / "model")[1].pretraining
    assert record["systems"] == names == list(record["trajectories"]) and model.name == "tiny"
    with pytest.raises(ArgumentError, match="expected the systems schnakenberg, brusselator that"):
        rdjepa.pretrain("tiny", data, tmp_path / "run", systems=names[::-1], device="cpu", resume=True)
    with pytest.raises(ArgumentError, match=r"expected trajectories of barkley \(pool\)"):
        rdjepa.pretrain("tiny", data, tmp_path / "other", systems=["barkley"], device="cpu")


def test_pretraining_takes_recordings_beside_simulations_of_another_grid(tiny, data, tmp_path, capsys):
    shutil.copytree(data, tmp_path / "data")
    added = rdjepa.add_recordings([trajectory(14, 1), trajectory(12, 2), trajectory(12, 3)], "mine", tmp_path / "data")
    assert (added.pool, added.validation) == (2, 1)
    config = PretrainConfig(steps=2, batch=4, warmup=1)
    for out, start, systems in (("run", None, ["mine"]), ("more", tmp_path / "run" / "model", ["schnakenberg"])):
        rdjepa.pretrain(
            "tiny", tmp_path / "data", tmp_path / out, config=config, systems=systems, start=start, device="cpu"
        )
    model = tmp_path / "more" / "model"
    record, sources = checkpoint.read_config(model)[1].pretraining, checkpoint.read_sources(model)
    assert record["recorded"] == record["start"]["recorded"] == ["mine"] and sources.systems == ["schnakenberg", "mine"]
    assert "but recorded: mine." in (model / "README.md").read_text()
    info(str(model))
    assert "but of the recordings (mine) nobody can check what they are" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(ArgumentError, match="simulated systems, whose coefficients are known, got recordings: mine"):
        cli_probe(str(model), tmp_path / "data", systems=["mine"])
    with pytest.raises(CheckpointError, match=r"a checkpoint, got the run .*more of a pretraining; name .*model$"):
        rdjepa.load(str(tmp_path / "more"))
    both = rdjepa.pretrain(
        "tiny", tmp_path / "data", tmp_path / "both", config=config, systems=["mine", "schnakenberg"], device="cpu"
    )
    assert not leaks.audit(str(tmp_path / "both" / "model"))[1] and both.name == "tiny"
    with pytest.raises(ArgumentError, match=r"got 'mein'; known: gray-scott, .*, mine, or a .py file"):
        rdjepa.pretrain("tiny", tmp_path / "data", tmp_path / "none", config=config, systems=["mein"], device="cpu")
    with pytest.raises(ArgumentError, match="a data set that has the recordings mine, which cannot be simulated again"):
        rdjepa.rehearsal(model)
    assert len(rdjepa.rehearsal(model, 2, data=tmp_path / "data")) == 3
    rdjepa.add_recordings([trajectory(12, 4), trajectory(12, 5)], "mine", tmp_path / "others")
    with pytest.raises(DataError, match="recordings mine that the model was pretrained on, got others of this name"):
        rdjepa.rehearsal(tmp_path / "run" / "model", data=tmp_path / "others")
    with pytest.raises(DataError, match="recordings mine that the model was started with, got others of this name"):
        rdjepa.pretrain("tiny", tmp_path / "others", tmp_path / "none", config=config, systems=["mine"], start=model)
    with pytest.raises(StudyError, match="a checkpoint whose data can be simulated again"):
        contenders.rehearsal("rd-jepa-rehearsal", study_profile("nano", str(model)))


def test_sizes_of_ones_own_need_settings_and_have_the_name_custom(data, tmp_path):
    model = rdjepa.pretrain(TINY, data, tmp_path / "run", **CHOSEN)
    assert (model.name, model.config) == ("custom", TINY) and rdjepa.load(tmp_path / "run" / "model").config == TINY
    assert "# RD-JEPA custom" in (tmp_path / "run" / "model" / "README.md").read_text()
    with pytest.raises(ArgumentError, match="settings of a pretraining for sizes of your own, got none; give them as"):
        rdjepa.pretrain(TINY, data, tmp_path / "other", systems=["schnakenberg"])
    with pytest.raises(ArgumentError, match="got another width"):
        other = replace(TINY, width=2 * TINY.width)
        rdjepa.pretrain(other, data, tmp_path / "other", start=tmp_path / "run" / "model", **CHOSEN)
    with pytest.raises(ArgumentError, match="sizes for 2 components, as trajectories have, got 3"):
        rdjepa.pretrain(replace(TINY, components=3), data, tmp_path / "other", **CHOSEN)
    assert not (tmp_path / "other").exists()


def test_a_decoder_that_was_not_pretrained_is_not_kept(tiny):
    fresh = rdjepa.build("tiny", seed=0)
    fresh.pretrained = ("encoder", "predictor")
    with pytest.raises(ArgumentError, match="a model with a pretrained decoder"):
        forecaster_of(fresh, 0, decoder="pretrained")


def test_branches_that_sizes_leave_out_are_recorded_once(data, tmp_path):
    given = replace(TINY, without=("diffusion",))
    model = rdjepa.pretrain(given, data, tmp_path / "run", without=["diffusion"], **CHOSEN)
    record = checkpoint.read_config(tmp_path / "run" / "model")[1].pretraining
    assert list(model.config.without) == record["without"] == ["diffusion"]


@pytest.mark.parametrize(
    ("objective", "pretrained"), [("field-forecast", ["encoder", "predictor", "decoder"]), ("random", [])]
)
def test_a_checkpoint_of_another_objective_says_so_and_is_adapted(tiny, data, tmp_path, objective, pretrained):
    run = tmp_path / "run"
    options = ForecastOptions(keep_decoder=True) if objective == "field-forecast" else None
    config = PretrainConfig(steps=1, batch=1, warmup=1, objective=objective, options=options)
    model = rdjepa.pretrain("tiny", data, run, **CHOSEN | {"config": config, "without": ["reaction"]})
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
    forecaster = rdjepa.adapt(loaded, trajectory(12), steps=1, base="none", device="cpu")
    assert np.isfinite(forecaster.forecast(trajectory(12)[:4])).all()


def test_a_decoder_is_pretrained_after_the_rest_and_adapted_further(tiny, data, first, tmp_path, monkeypatch):
    last, chosen = tmp_path / "last", CHOSEN | {"objective": "decoder", "systems": ["brusselator"]}
    with pytest.raises(ArgumentError, match="expected a pretrained model to start the objective decoder from"):
        rdjepa.pretrain("tiny", data, last, **chosen)
    old, begun = tmp_path / "old", tmp_path / "begun"
    shutil.copytree(data / "brusselator", old / "brusselator")
    sealed.write(old / manifest.RECIPE, {"brusselator": identity(get("brusselator")) | {"revision": 0}})
    with pytest.raises(DataError, match=r"for brusselator\.revision; choose another directory"):
        rdjepa.pretrain("tiny", old, last, **chosen | {"objective": "predictive-latent"})
    shutil.copytree(first, begun)

    def removed(*_):  # the run ends with what it began with
        shutil.rmtree(begun, ignore_errors=True)

    simulated, simulate = [], acquire.simulate

    def counted(name, **key):
        simulated.append(name)
        return simulate(name, **key)

    given, opened = [], Dataset.open

    def noted(*args, known, **options):
        given.append(known)
        return opened(*args, known=known, **options)

    monkeypatch.setattr(acquire, "simulate", counted)
    monkeypatch.setattr(Dataset, "open", noted)
    rdjepa.pretrain("tiny", data, last, start=begun, progress=removed, **chosen)
    assert simulated == ["schnakenberg"]  # what this run was not told to read
    statistics = {name: Normalizer.from_dict(x) for name, x in checkpoint.read_sources(first).normalizers.items()}
    assert given[0] == statistics and list(given[1]) == ["brusselator"]  # of the encoder, then of the run
    (_, before) = checkpoint.read_config(first)
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
    walls: dict = {"borders": "walls", "base": "none", "device": "cpu"}
    adapted = rdjepa.adapt(loaded, trajectory(12), steps=1, decoder="pretrained", **walls)
    assert adapted.record["decoder"] == "pretrained" and adapted.model.settings()["model"]["borders"] == "walls"
    tuned, _ = forecaster_of(loaded, 777, decoder="pretrained", encoder="tuned")
    assert isinstance(tuned, EncoderTuned) and not any(p.requires_grad for p in kept.encoder.parameters())
    assert all(p.requires_grad for p in tuned.encoder.parameters()) and tuned.rates.encoder == tuned.rates.predictor
    assert all(map(torch.equal, kept.parameters(), tuned.parameters()))  # what differs is what is trained
    for model, decoder, sentence in (
        (
            first,
            "pretrained",
            "got one with encoder and predictor; give it one with rdjepa pretrain --preset tiny --objective decoder",
        ),
        (loaded, "warm", "expected a decoder among auto, fresh, pretrained, got 'warm'"),
        (rdjepa.forecasters.build("no-latent", "nano"), "pretrained", "built already and trained as it is"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            rdjepa.adapt(model, trajectory(12), steps=1, decoder=decoder, device="cpu")


def test_a_start_that_a_run_could_not_tell_of_is_refused_before_the_first_step(tiny, data, first, tmp_path, edit_json):
    other, key = tmp_path / "other", "schnakenberg/pool/id/00000"

    def unlisted():
        (other / "data.json").unlink()

    def untold():
        edit_json(other / "config.json", lambda values: values["pretraining"].clear())

    def another():
        edit_json(other / "data.json", lambda values: values["trajectories"].update({key: "0"}))

    for change, error, sentence in (
        (unlisted, CheckpointError, "expected the list of its data"),
        (untold, CheckpointError, "in .*, got one without config; start from another"),
    ):
        shutil.copytree(first, other, dirs_exist_ok=True)
        change()
        with pytest.raises(error, match=sentence):
            rdjepa.pretrain("tiny", data, tmp_path / "run", start=other, objective="decoder", **CHOSEN)
    with pytest.raises(ArgumentError, match="no model to start the objective random from, which trains nothing"):
        rdjepa.pretrain("tiny", data, tmp_path / "run", start=first, objective="random", **CHOSEN)
    assert not list((tmp_path / "run").rglob("*.safetensors"))
    shutil.copytree(first, other, dirs_exist_ok=True)
    another()
    with pytest.warns(UserWarning, match=f"of the same key and other content, {key} first"):
        rdjepa.pretrain("tiny", data, tmp_path / "run", start=other, objective="decoder", **CHOSEN)
    assert checkpoint.read_sources(tmp_path / "run" / "model").trajectories[key] == "0"


def test_pretraining_is_the_same_whatever_torch_makes_by_default(tiny, data, first, double, tmp_path):
    made = rdjepa.pretrain("tiny", data, tmp_path / "second", **CHOSEN)
    assert made.fingerprint == checkpoint.read_config(first)[1].sha256


def test_pretraining_on_a_family_takes_statistics_of_each_equation_and_as_many_as_asked(tiny, data, tmp_path):
    rdjepa.pretrain("tiny", data, tmp_path / "run", **CHOSEN | {"systems": ["family"], "trajectories": 1})
    sources = checkpoint.read_sources(tmp_path / "run" / "model")
    assert list(sources.normalizers) == list(sources.trajectories) == ["family/pool/id/00000"]
    assert sources.systems == ["family"] and sources.normalizers["family/pool/id/00000"]["source"] == "trajectory"


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"objective": "contrast"}, "among predictive-latent, field-forecast"),
        ({"without": ["attention"]}, "parts among diffusion, reaction"),
        ({"without": ["tubes"], "objective": "random"}, "expected the objective predictive-latent where"),
        ({"config": 5}, "config to be"),
        ({"stop_at": 0}, "stop_at to be a whole number of at least 1, got 0"),
        ({"stop_at": 2.5}, "stop_at to be a whole number or None, got 2.5"),
        ({"steps": "10"}, "steps to be a whole number or None, got '10'"),
        ({"steps": float("nan")}, "steps to be a whole number or None, got nan"),
        ({"engine": "graphs"}, "engine to be a .*Engine or None, got 'graphs'"),
        ({"systems": "barkley"}, "systems to be a list or tuple or None, got 'barkley'"),
        ({"without": "tubes"}, "without to be a list or tuple or set or frozenset, got 'tubes'"),
        ({"without": None}, "without to be a list"),
        ({"engine": Engine(accumulate=3)}, "3"),
        ({"trajectories": 0}, "the trajectories of gray-scott to be a whole number of at least 1, got 0"),
        ({"trajectories": {"heat": 1}}, "got some of heat; name its system"),
        ({"config": PretrainConfig(weights=(("heat", 2),))}, "got one of heat; name its system"),
        ({"config": PretrainConfig(targets=TargetConfig(sides=(2, 17)))}, "sides of at most 16 patches"),
        ({"objective": "decoder"}, "expected a pretrained model to start the objective decoder from"),
        (
            {"objective": "variance-covariance", "engine": Engine(accumulate=2)},
            "one process and one pass a step with the objective variance-covariance",
        ),
        (
            {"objective": "masked-fields", "ema": (0.9, 0.99)},
            "a target encoder to average, got masked-fields, which has",
        ),
    ],
)
def test_unknown_objectives_and_parts_are_refused_and_nothing_is_written(tmp_path, chosen, words):
    with pytest.raises(ArgumentError, match=words):
        rdjepa.pretrain("nano", tmp_path, tmp_path / "run", **chosen)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("preset", "data", "out", "words"),
    [
        (["nano"], "data", "run", "a preset to be a str or ModelConfig"),
        ("nano", None, "run", "data to be a str or Path, got None"),
        ("nano", "data", 5, "out to be a str or Path, got 5"),
    ],
)
def test_a_preset_or_a_path_of_another_type_is_refused(preset, data, out, words):
    with pytest.raises(ArgumentError, match=words):
        rdjepa.pretrain(preset, data, out)


@pytest.mark.parametrize(
    ("systems", "words"),
    [(["heat"], "known: gray-scott"), ([], "got none"), (["barkley", "barkley"], "each once")],
    ids=["unknown", "none", "twice"],
)
def test_unknown_no_and_repeated_systems_are_refused_before_anything_is_read(tmp_path, systems, words):
    with pytest.raises(ArgumentError, match=words):
        rdjepa.pretrain("nano", tmp_path, tmp_path / "run", systems=systems)


def test_a_used_directory_is_refused_before_any_data_are_read(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "data.json").write_text("{}")
    with pytest.raises(ArgumentError, match="resume it or choose another"):
        rdjepa.pretrain("nano", tmp_path / "none", tmp_path / "run")
    (tmp_path / "run" / "data.json").rename(tmp_path / "run" / "metrics.jsonl")
    with pytest.raises(ArgumentError, match=r"with metrics\.jsonl but without data\.json"):
        rdjepa.pretrain("nano", tmp_path / "none", tmp_path / "run", resume=True)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["metrics.jsonl"]


def test_the_recorded_check_is_of_trained_systems(tiny):
    seen = []

    def held_out(key):
        seen.append(str(key))
        return rdjepa.Trajectory(trajectory(12), np.arange(12.0))

    unit, model = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)), rdjepa.build("tiny", seed=0)
    for trained, checked in (
        (["schnakenberg", "barkley", "gray-scott"], ["gray-scott", "schnakenberg"]),
        (["barkley", "oregonator"], ["barkley"]),
        (["mine"], ["mine"]),
        (["family/pool/id/00000"], ["family"]),
    ):
        assert np.isfinite(latent_error(model, dict.fromkeys(trained, unit), held_out))
        assert seen == [f"{name}/validation/id/00000" for name in checked]
        seen.clear()


def test_the_smallest_latent_grid_has_a_recorded_check():
    """Four tokens a side, on which no rectangle of six patches lies."""
    model = rdjepa.build(replace(TINY, patch=8), seed=0)
    fields = np.random.default_rng(0).standard_normal((12, 32, 32, 2)).astype(np.float32)
    unit = {"mine": rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0))}
    assert np.isfinite(latent_error(model, unit, lambda _: rdjepa.Trajectory(fields, np.arange(12.0))))


def test_what_is_held_out_is_read_where_it_was_checked_and_simulated_by_the_users_file_elsewhere(
    data, tmp_path, monkeypatch
):
    asked = []
    monkeypatch.setattr(acquire, "simulate", lambda source, **key: asked.append((source, key["split"])))
    held_out = pretraining._held_out(tmp_path, data, {"schnakenberg": "schnakenberg", "mine": "mine.py"})
    assert held_out(Key("schnakenberg", "validation")).key == Key("schnakenberg", "validation") and not asked
    for name in ("mine", "brusselator"):  # the latter lies there, but is of no system of the run
        held_out(Key(name, "validation"))
    assert asked == [("mine.py", "validation"), ("brusselator", "validation")] and not list(tmp_path.iterdir())


def test_blocks_of_torch_around_a_pretraining_change_nothing_or_are_refused(tiny, data, tmp_path):
    def made(out):
        return rdjepa.pretrain("tiny", data, tmp_path / out, precision="bfloat16", **CHOSEN).fingerprint

    usual = made("usual")
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        assert made("blocks") == usual
    with torch.inference_mode(), pytest.raises(ArgumentError, match=r"got torch\.inference_mode; call pretrain"):
        made("inference")
