"""The name of a cell follows from everything that decides its result, and its record says what that was."""

import io
import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
import torch

from rdjepa import forecasters, systems
from rdjepa.adaptation import retention
from rdjepa.adaptation.adapt import standardized, train, windows
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.data import store
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.evaluation.metrics import METRICS
from rdjepa.forecasters import autoregression, combined, equation, linear
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.io import checkpoint
from rdjepa.io.provenance import fingerprint
from rdjepa.models.rdjepa import build, with_fresh_decoder
from rdjepa.study import cell as cells
from rdjepa.study import collect
from rdjepa.study.cell import Cell, identity
from rdjepa.study.fingerprints import identifier
from rdjepa.study.supply import keys_of
from rdjepa.systems import SOURCES

CELL = Cell("heldout", "lambda-omega", 1, 777, "fno")


CPU, UNIT = torch.device("cpu"), Normalizer((0.0, 0.0), (1.0, 1.0))


def name(cell, profile):
    return identifier(identity(cell, profile))


def noise(key, side=32, frames=10):
    """A trajectory that nothing simulates, another one for each key."""
    fields = np.random.default_rng(key.index).standard_normal((frames, side, side, 2)).astype(np.float32)
    return Trajectory(fields, np.arange(float(frames)), key=key)


def record(cell, profile):
    """What a cell records that is adapted to noise."""
    return json.loads(cells.compute(cell, profile, noise, UNIT, CPU)["record.json"])


@pytest.fixture
def slim(tiny, brief, tmp_path):
    """A profile whose pretrained model has few weights."""
    model = build("tiny", seed=0)
    model.name = "tiny"
    checkpoint.save(model, tmp_path / "tiny", {"pretrained": ["encoder", "predictor", "decoder"]}, "card")
    return replace(brief, preset="tiny", checkpoint=str(tmp_path / "tiny"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"external_preset": "paper"},
        {"test": 2},
        {"curve": ()},
        {"stride": 2},
        {"statistics": 2},
        {"adapt": {"steps": 2}},
        {"adapt": {"batch": 3}},
        {"adapt": {"seed": 1}},
        {"adapt": {"precision": "bfloat16"}},
        {"adapt": {"clip": 2.0}},
    ],
    ids=str,
)
def test_another_setting_is_another_cell(brief, change):
    if "adapt" in change:
        change = {"adapt": replace(brief.adapt, **change["adapt"])}
    assert name(CELL, brief) == name(CELL, replace(brief))
    assert name(CELL, brief) != name(CELL, replace(brief, **change))


@pytest.mark.parametrize(
    "change", [{"system": "barkley"}, {"k": 5}, {"support_seed": 778}, {"forecaster": "lno"}], ids=str
)
def test_another_cell_has_another_name(brief, change):
    assert name(CELL, brief) != name(replace(CELL, **change), brief)


def test_the_name_follows_the_weights_the_data_and_the_sizes(brief, monkeypatch):
    ours = replace(CELL, forecaster="rd-jepa")
    before = {cell: name(cell, brief) for cell in (CELL, ours)}
    monkeypatch.setattr(cells, "checkpoint_fingerprint", lambda profile, decoder: "0" * 64)
    assert name(ours, brief) != before[ours] and name(CELL, brief) == before[CELL]
    monkeypatch.setattr(cells, "recipe_fingerprint", lambda system: "1" * 64)
    assert name(CELL, brief) != before[CELL]
    monkeypatch.undo()
    monkeypatch.setattr(cells.contenders, "settings", lambda forecaster, preset: {"width": 1})
    assert name(CELL, brief) != before[CELL]


def test_a_users_system_of_another_role_makes_other_cells(brief, registrations):
    mine, found = replace(CELL, system="mine"), {}
    for role in ("held-out", "source", "wall"):
        systems._REGISTERED.pop("mine", None)
        systems.register(replace(systems.get("schnakenberg"), name="mine"), role)
        found[role] = name(mine, brief), mine.support(), mine.test(brief.test)
    assert len({made for made, *_ in found.values()}) == 3
    assert found["wall"][1] != found["held-out"][1] and len(found["source"][2]) > len(found["held-out"][2])


def test_the_place_of_a_checkpoint_is_no_setting(brief):
    assert "checkpoint" not in brief.settings()


def test_the_record_says_what_the_cell_was_made_of(finished, brief):
    records = {record["forecaster"]: record for record in collect.read_records(finished)}
    riesz, trivial = records["riesz-no"], records["persistence"]
    keys = Key("lambda-omega", "pool", "id", 678), Key("lambda-omega", "test", "id", 0)
    learning, unseen = (store.get(finished / "data", key).coarsened(64) for key in keys)
    assert riesz["support"] == [str(learning.key)] and riesz["test"] == {"id": 1}
    checksums = {str(t.key): store.checksum(t.fields) for t in (learning, unseen)}
    assert riesz["trajectories"] == fingerprint(checksums)
    assert (riesz["updates"], trivial["updates"]) == (1, 0) and riesz["parameters"] == 339_533
    assert set(riesz["seconds"]) == {"support", "features", "decide", "adapt", "curve", "test", "evaluate"}
    assert {"rdjepa", "torch", "device"} <= set(riesz["software"]) and riesz["threads"] >= 1


@pytest.mark.parametrize(("forecaster", "side"), [("riesz-no", 64), ("rd-jepa", 32)])
def test_a_cell_is_build_windows_train_and_evaluate_to_the_bit(slim, forecaster, side):
    """What the public `adapt` does for a cell, step by step."""
    profile = replace(slim, adapt=replace(slim.adapt, steps=2, seed=5))
    keys = Key("lambda-omega", "pool", "id", 678), Key("lambda-omega", "test", "id", 0)
    learning, unseen = (noise(key, side, 12) for key in keys)
    known, normalizer = {t.key: t for t in (learning, unseen)}, Normalizer((0.1, -0.2), (0.5, 0.7))
    files = cells.compute(replace(CELL, forecaster=forecaster), profile, known.__getitem__, normalizer, CPU)
    model: ForecastModel
    if forecaster == "rd-jepa":
        model = RDJEPAForecaster(with_fresh_decoder(checkpoint.load(slim.checkpoint), 5))
    else:
        model = forecasters.build(forecaster, "nano", seed=5)
    losses = train(model, windows(model, standardized([learning.fields], normalizer)), profile.adapt)
    rows = evaluate(Forecaster(model, normalizer).forecast, [unseen], metrics=tuple(METRICS))
    recorded = json.loads(files["record.json"])
    assert recorded["loss"] == losses and recorded["config"]["seed"] == 5
    assert pd.read_parquet(io.BytesIO(files["rows.parquet"])).to_dict("records") == [vars(row) for row in rows]


def test_the_example_is_the_middle_window(finished):
    run = next(r["id"] for r in collect.read_records(finished) if r["forecaster"] == "persistence")
    shown = collect.examples(finished)(run)
    fields = store.get(finished / "data", Key("lambda-omega", "test", "id", 0)).coarsened(64).fields
    assert shown is not None
    assert (shown["newest"] == fields[16 + 3]).all() and (shown["reference"] == fields[20:25]).all()
    assert (shown["forecast"] == fields[19]).all() and shown["forecast"].dtype == "float32"


def test_a_cell_that_rehearses_reads_what_the_checkpoint_was_pretrained_on_and_is_named_after_it(brief, monkeypatch):
    monkeypatch.setattr("rdjepa.api.rehearsing.REHEARSED", 2)
    cell, read, given = replace(CELL, forecaster="no-latent-rehearsal"), [], []
    beside = [Key(system, "pool", "id", i) for system in SOURCES for i in (0, 1)]

    def get(key):
        read.append(key)
        return noise(key, 64)

    def adapt(*arguments, rehearse, **options):
        given.extend(rehearse)
        return real(*arguments, rehearse=rehearse, **options)

    real = cells.api.adapt
    monkeypatch.setattr(cells.api, "adapt", adapt)
    cells.compute(cell, brief, get, UNIT, CPU)
    assert read[:11] == [*cell.support(), *beside] and len(given) == 10
    known = Normalizer.from_dict(checkpoint.read_sources(brief.checkpoint).normalizers["gray-scott"])
    assert np.array_equal(given[0], known.standardize(noise(beside[0], 64).fields))
    told = identity(cell, brief)["rehearsed"]
    assert told["trajectories"] == [str(key) for key in beside] and set(told["data"]) == set(SOURCES)
    assert "rehearsed" not in identity(replace(cell, forecaster="no-latent"), brief)
    assert set(beside) <= set(keys_of([cell], brief)) and not set(beside) & set(keys_of([CELL], brief))


def test_a_cell_that_retains_first_weights_is_named_after_the_share(brief, monkeypatch):
    cell, given = replace(CELL, forecaster="rd-jepa-retained"), []

    def adapt(*arguments, retain, **options):
        given.append(retain)
        raise InterruptedError

    monkeypatch.setattr(cells.api, "adapt", adapt)
    with pytest.raises(InterruptedError):
        record(cell, brief)
    assert given == [identity(cell, brief)["retained"]] == [0.5]
    assert identity(replace(cell, forecaster="rd-jepa-auto"), brief)["retained"] == retention.RULE
    for fit in (equation, autoregression, linear):
        name = fit.__name__.rpartition(".")[2]
        assert identity(replace(cell, forecaster=name), brief)["constants"] == fit.CONSTANTS
    assert "retained" not in identity(replace(cell, forecaster="rd-jepa-decoder"), brief)


def test_the_network_alone_is_what_adapt_decides_with_nothing_combined(slim):
    both = [replace(CELL, forecaster=name) for name in ("rd-jepa-auto", "rd-jepa-alone")]
    auto, alone = (record(cell, replace(slim, curve=())) for cell in both)
    decided = {"base": combined.RULE, "familiar": combined.POWER}
    assert auto["identity"] | {"cell": asdict(both[1])} == alone["identity"] | decided
    assert auto["id"] != alone["id"] and "base" not in alone["identity"]
    assert {"unadapted", "retained", "together", "combined"} <= auto.keys()
    assert {"unadapted", "retained"} <= alone.keys() and not {"together", "combined"} & alone.keys()
    assert auto["made"] == alone["made"] == 1


def test_the_record_names_the_encoder_that_several_trajectories_tune(slim):
    five = record(replace(CELL, k=5, forecaster="rd-jepa-alone"), replace(slim, curve=()))
    assert not five["identity"]["settings"]["rates"]["encoder"]
    assert five["settings"]["rates"]["encoder"] == five["settings"]["rates"]["predictor"] > 0


def test_a_cell_makes_as_many_updates_as_adapt_decides(slim, monkeypatch):
    profile = replace(slim, curve=(), adapt=replace(slim.adapt, steps=3))
    monkeypatch.setattr(retention, "FAMILIAR", np.inf)
    monkeypatch.setattr(retention, "UPDATES", 1)
    for name, made in (("rd-jepa-alone", 1), ("rd-jepa-decoder", 3)):
        found = record(replace(CELL, forecaster=name), profile)
        assert (found["updates"], found["made"]) == (3, made)


def test_the_record_of_a_cell_has_the_updates_and_parameters_that_there_were(slim):
    none = replace(slim, curve=(), adapt=replace(slim.adapt, steps=0))
    parameters = sum(each.numel() for each in checkpoint.load(slim.checkpoint).parameters())
    kept, zero = (
        record(replace(CELL, forecaster=name), profile)
        for name, profile in (("rd-jepa-decoder", none), ("rd-jepa-zero-shot", slim))
    )
    assert kept["made"] == 0 and "loss" not in kept and kept["trained"] > 0
    assert zero["parameters"] == kept["parameters"] == parameters and zero["trained"] == 0 and "made" not in zero
