"""What changes are: which pretraining each needs, what a cell's name follows from, and in which order they come."""

from dataclasses import replace

import numpy as np
import pytest

from rdjepa import forecasters
from rdjepa.errors import ArgumentError, StudyError
from rdjepa.evaluation import metrics
from rdjepa.forecasters.persistence import Persistence
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.forecasters.scratch import Scratch
from rdjepa.pretraining import objectives
from rdjepa.pretraining.parts import PARTS
from rdjepa.study import changes, contenders, pretrainings, registry, runner
from rdjepa.study import fingerprints as prints
from rdjepa.study.cell import Cell, identity
from rdjepa.study.changes import Change
from rdjepa.study.fingerprints import identifier
from rdjepa.study.pretrainings import needed
from rdjepa.study.profiles import PROFILES
from rdjepa.systems import HELD_OUT, SOURCES

BRIEF = PROFILES["ablation"]
OBJECTIVES = [name for name in objectives.names() if not objectives.get(name).continues]
CELL = Cell("ablation", "brusselator", 1, 777, "reference")


def start(name, system="barkley", profile=BRIEF):
    found = needed(name, system, profile)
    assert found is not None
    return found


def test_every_objective_part_and_number_of_equations_is_a_change():
    every = [changes.get(name) for name in changes.names()]
    assert {change.objective for change in every} == set(OBJECTIVES)
    assert {part for change in every for part in change.without} == set(PARTS)
    assert {change.sources for change in every} == {None, 0, 1, 2, 3, 4}
    assert len({(change.title) for change in every}) == len(every)


def test_groups_come_in_the_order_in_which_an_early_stop_leaves_whole_tables():
    cells = runner.cells("ablation")
    groups = list(dict.fromkeys(cell.group for cell in cells))
    assert groups == ["unchanged", "objectives", "systems", "seeds", "parts", "equations", "adaptation"]
    assert [cell.group for cell in cells] == sorted((c.group for c in cells), key=groups.index)
    first = [cell for cell in cells if cell.group == "objectives"]
    assert [c.k for c in first] == sorted(c.k for c in first) and first[0].forecaster == "reference"


def test_choices_leave_a_source_out_and_what_is_held_out_comes_at_the_end():
    choice, final = runner.cells("ablation"), runner.cells("ablation", phase="final")
    assert runner.cells("ablation", phase="choice") == choice
    assert {c.system for c in choice} <= set(SOURCES) and {c.system for c in final} == set(HELD_OUT)
    for system, found in {(cell.system, cell.pretraining(BRIEF)) for cell in [*choice, *final]}:
        if found:
            seen = {name for name, _ in found.systems}
            assert system not in seen and not seen & set(HELD_OUT)
            assert all(key.split != "test" and key.regime == "id" for key in found.reads())


def test_a_number_of_equations_that_is_no_change_has_no_cell():
    choice = {c.forecaster for c in runner.cells("ablation")}
    final = {c.forecaster for c in runner.cells("ablation", phase="final")}
    assert final - choice == {"four-equations"} and final == {"scratch", *changes.names()}


@pytest.mark.parametrize("name", ["", "two/tubes", "a,b"])
def test_a_name_that_tables_would_split_is_refused(registrations, name):
    with pytest.raises(StudyError, match="expected a name without slash and comma"):
        changes.register(Change(name, "Another", "parts"))
    with pytest.raises(StudyError, match="expected a name without slash and comma"):
        registry.register(registry.Study(name, "Another", ("barkley",)))


@pytest.mark.parametrize(
    ("register", "entry", "error"),
    [
        (changes.register, "two-without-tubes", StudyError),
        (registry.register, Change("mine", "Mine", "parts"), StudyError),
        (forecasters.register, Persistence, ArgumentError),
        (metrics.register, np.abs, ArgumentError),
    ],
)
def test_what_is_registered_is_an_entry_and_not_what_it_is_made_of(registrations, register, entry, error):
    with pytest.raises(error, match=r"expected a .* as a .*, got .*; make one of it"):
        register(entry)


@pytest.mark.parametrize("function", [3, None])
def test_a_metric_has_a_function(function):
    with pytest.raises(ArgumentError, match="the function of the metric mine"):
        metrics.Metric("mine", "Mine", function)


def test_conditions_that_no_cell_meets_together_are_refused():
    with pytest.raises(StudyError, match="that meet group=objectives, change=scratch together, got none; leave one"):
        runner.cells("ablation", ["group=objectives", "change=scratch"])


def test_each_pretraining_is_computed_once():
    names = {change: start(change).name for change in changes.names()}
    adaptations = {changes.get(name) for name in changes.names() if changes.group(name) == "adaptation"}
    of_reference = {c.name for c in adaptations if c.objective == "predictive-latent" and not c.keep_decoder} | {
        "reference-encoder"
    }
    of_forecast = {"decoder-kept", "decoder-kept-slow", "field-forecast-encoder"}
    assert {names[name] for name in of_reference} == {names["reference"]}
    assert {names[name] for name in of_forecast} == {names["field-forecast"]}
    assert len(set(names.values())) == len(names) - len(of_reference | of_forecast)
    assert start("family", "gray-scott") == start("family", "barkley") and not start("family").config.weights
    assert start("sources-and-family").config.weights == (("family", 5),)
    assert start("sources-and-family", "gray-scott").config.weights == (("family", 4),)
    assert start("reference", "lambda-omega") == start("reference", "barkley") != start("reference", "gray-scott")


@pytest.mark.parametrize(
    "change",
    [{"steps": 6_000}, {"trajectories": 301}],
    ids=str,
)
def test_another_pretraining_is_another_cell(change):
    assert BRIEF.pretraining
    other = replace(BRIEF, pretraining=replace(BRIEF.pretraining, **change))
    assert identifier(identity(CELL, other)) != identifier(identity(CELL, BRIEF))
    scratch = replace(CELL, forecaster="scratch")
    assert identifier(identity(scratch, other)) == identifier(identity(scratch, BRIEF))


def test_the_name_of_a_cell_follows_from_settings_data_and_seed_of_its_pretraining(monkeypatch):
    content = identity(CELL, BRIEF)["pretraining"]
    assert content["systems"] == [[name, 300] for name in SOURCES if name != "brusselator"]
    assert content["config"]["steps"] == 5_000 and content["config"]["batch"] == 8 and content["config"]["seed"] == 1234
    assert identity(replace(CELL, forecaster="seed-2"), BRIEF)["pretraining"]["config"]["seed"] == 1235
    before = identifier(identity(CELL, BRIEF))
    known = prints.recipe_fingerprint
    monkeypatch.setattr(pretrainings, "recipe_fingerprint", lambda name: known(name) + "changed")
    assert identifier(identity(CELL, BRIEF)) != before


def test_how_often_states_are_saved_and_validation_are_no_part_of_the_name():
    found = start("reference")
    assert replace(found, validation=3).name == found.name
    assert replace(found, config=replace(found.config, save_every=7)).name == found.name
    assert replace(found, config=replace(found.config, peak=1e-3)).name != found.name


def test_kinds_of_adaptation_are_rates_of_the_forecaster_or_its_control():
    usual, control = RDJEPAForecaster.rates_of["nano"], Scratch.rates_of["nano"]
    assert contenders.rates(changes.get("reference"), "nano") == usual
    assert contenders.rates(changes.get("tuned-as-scratch"), "nano") == control
    slow = contenders.rates(changes.get("predictor-slow"), "nano")
    assert slow == replace(usual, predictor=usual.predictor * 0.1)
    assert contenders.rates(changes.get("predictor-frozen"), "nano") == replace(usual, predictor=0.0)
    assert contenders.rates(changes.get("encoder-tuned"), "nano") == replace(usual, encoder=usual.predictor)
    kept = contenders.rates(changes.get("decoder-kept-slow"), "nano")
    assert kept == replace(usual, predictor=usual.predictor * 0.1, decoder=usual.decoder * 0.1)


def test_a_decoder_is_pretrained_after_the_rest_where_the_objective_trains_none():
    first, last = start("reference"), start("decoder-pretrained")
    assert last.stages() == [first, last] and (last.systems, last.without) == (first.systems, first.without)
    assert last.config.objective == "decoder" and last.config.steps == 0.3 * first.config.steps
    assert last.identity()["start"] == first.identity()
    wide, after = start("sources-and-family-decoder").stages()
    assert wide == start("sources-and-family")
    assert (after.systems, after.config.weights) == (wide.systems, wide.config.weights) and wide.config.weights
    assert start("decoder-kept").stages() == [start("decoder-kept")] == [start("field-forecast")]
    assert "start" not in first.identity()


def test_a_decoder_after_the_rest_has_the_seed_and_the_branches_of_the_rest(registrations):
    changes.register(Change("again", "Again", "seeds", seed=1, without=("masks", "reaction"), keep_decoder=True))
    before, after = start("again").stages()
    assert before.config.seed == after.config.seed == start("reference").config.seed + 1
    assert (before.without, after.without) == (("masks", "reaction"), ("reaction",)) and after.identity()
    changes.register(Change("masked", "Masked", "objectives", objective="masked-fields", keep_decoder=True))
    with pytest.raises(StudyError, match="encoder and predictor where a decoder is kept, got masked-fields in the ch"):
        start("masked")


def test_objectives_that_pretrain_no_predictor_meet_the_others_with_a_fresh_one_and_equal_rates():
    encoders = [name for name in changes.names() if changes.get(name).fresh_predictor and not changes.get(name).without]
    assert {changes.get(name).objective for name in encoders} == set(OBJECTIVES)
    assert len({contenders.rates(changes.get(name), "nano") for name in encoders}) == 1


def test_the_control_without_a_branch_differs_from_scratch_in_nothing_else():
    lacking, whole = (contenders.settings(name, "nano") for name in ("scratch-without-diffusion", "scratch"))
    assert lacking["rates"] == whole["rates"] and lacking["model"].pop("without") == ["diffusion"]
    assert lacking["model"] == whole["model"]
    assert start("scratch-without-diffusion").config.objective == "random"


def test_a_part_left_out_is_in_the_sizes_of_the_cell():
    assert contenders.settings("without-both", "nano")["model"]["without"] == ["diffusion", "reaction"]
    assert "without" not in contenders.settings("without-masks", "nano")["model"]
    masks = identity(replace(CELL, forecaster="without-masks"), BRIEF)["pretraining"]
    assert masks["config"]["targets"]["mask_probability"] == 0 and masks["without"] == ["masks"]


def test_a_users_change_has_cells_of_its_own(registrations):
    changes.register(Change("two-fewer", "Two sources, no tubes", "parts", sources=2, without=("tubes",)))
    assert start("two-fewer").systems == tuple((name, 300) for name in SOURCES[:2])
    assert changes.names().index("two-fewer") < changes.names().index("one-equation")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("reference", "Again", "parts"), "got 'reference', which is taken"),
        (Change("fno", "Again", "parts"), "got 'fno', which is taken"),
        (Change("mine", "Mine", "part"), "a group among unchanged, objectives, .*, got 'part'"),
    ],
)
def test_names_that_are_taken_and_unknown_groups_are_refused(change, words):
    with pytest.raises(StudyError, match=words):
        changes.register(change)


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(StudyError, match=r"a change among reference, .*, decoder-kept-slow, got 'tubs'"):
        changes.get("tubs")
    with pytest.raises(StudyError, match=r"expected change among scratch, reference, .*, got 'tubs'"):
        runner.cells("ablation", ["change=tubs"])
    with pytest.raises(StudyError, match="a phase among choice, final, got 'end'"):
        runner.cells("ablation", phase="end")
    with pytest.raises(StudyError, match="with pretrainings for the change reference, such as ablation, got nano"):
        identity(CELL, PROFILES["nano"])
