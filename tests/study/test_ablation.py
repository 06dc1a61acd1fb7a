"""An ablation from its plan to its tables at the smallest size, stopped, resumed, and with a pretraining that fails."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rdjepa.data import acquire, manifest
from rdjepa.errors import DataError, StudyError
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import build
from rdjepa.pretraining import config as configs
from rdjepa.pretraining import loop
from rdjepa.pretraining.state import TrainingState
from rdjepa.study import changes, collect, contenders, cost, pretrainings
from rdjepa.study import runner as study
from rdjepa.study.attempts import DONE
from rdjepa.study.changes import Change
from rdjepa.study.directory import Directory
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import PretrainingSizes, profile
from rdjepa.study.report import write
from rdjepa.study.supply import Supply

CPU = torch.device("cpu")
ABLATION = profile("ablation", precision="float32")
# One source alone is seen before a system of one regime, so that little is simulated and evaluated.
ONLY = ["system=lambda-omega", "k=1", "support_seed=777", "change=scratch", "change=one-equation"]


@pytest.fixture
def brief(tiny, monkeypatch, registrations, simulate_once):
    """A profile whose pretrainings make four steps, and a change that sees one source with random weights.

    Trajectories have as many frames as a window of the pretraining takes, and two more.
    """

    def short(*key, **regime):
        made = simulate_once(*key, **regime)
        return replace(made, fields=made.fields[:14], times=made.times[:14])

    monkeypatch.setattr(acquire, "simulate", short)
    monkeypatch.setitem(
        configs.PROFILES, "tiny", replace(configs.scaled(configs.PROFILES["nano"], 4), batch=2, save_every=1)
    )
    monkeypatch.setattr(loop, "VALIDATION_BATCHES", 1)
    monkeypatch.setattr(loop, "VALIDATION_BATCH", 2)
    monkeypatch.setattr("rdjepa.viz.figures.curves", lambda lines, path: path.touch())
    changes.register(Change("random-one", "Random weights, one source", "objectives", objective="random", sources=1))
    changes.register(Change("decoder-one", "Decoder, one source", "equations", sources=1, keep_decoder=True))
    adapt = replace(ABLATION.adapt, steps=1)
    return replace(
        ABLATION, preset="tiny", adapt=adapt, test=1, statistics=1, curve=(), pretraining=PretrainingSizes(4, 1, 1, 1)
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Where the trajectories and statistics of these cells are kept for all tests."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def root(tmp_path, made, brief):
    """A study directory that has its trajectories."""
    plan = cells()
    supply = Supply(made, grid=brief.grid)
    supply.prepare(plan, brief)
    supply.prepare_pretrainings(study.missing_pretrainings(made, plan, brief))
    for name in ("data", "statistics", "pretrainings"):
        shutil.copytree(made / name, tmp_path / "root" / name)
    return tmp_path / "root"


def cells(*more):
    return study.cells("ablation", [*ONLY, *(f"change={name}" for name in more)], phase="final")


def test_from_the_plan_to_the_tables(root, brief, tmp_path, unsaved):
    plan = cells()
    [start] = study.missing_pretrainings(root, plan, brief)
    assert str(start) == "pretraining/predictive-latent/gray-scott:1/1234"
    ran = study.run(root, plan, brief)
    assert (set(ran.done), ran.failed, ran.pretrained) == (set(plan), {}, (start,))
    found = study.status(root, plan, brief)
    assert (set(found.done), found.pretrained, found.waiting) == (set(plan), (start,), ())

    folder = Directory(root).pretraining(start.name)
    assert not (folder / "state").exists() and pretrainings.read_record(folder).identity == start.identity()
    assert checkpoint.read_sources(folder / "model").trajectories.keys() == {"gray-scott/pool/id/00000"}
    records = {record["forecaster"]: record for record in collect.read_records(root)}
    changed = records["one-equation"]
    assert (
        changed["identity"]["pretraining"] == start.identity() and "pretraining" not in records["scratch"]["identity"]
    )
    assert (
        changed["checkpoint"] == checkpoint.load(folder / "model").fingerprint and not records["scratch"]["checkpoint"]
    )

    rows, spectra = (table(root, "ablation", "ablation") for table in (collect.collect, collect.spectra))
    assert set(rows["forecaster"]) == {"scratch", "one-equation"}
    material = (rows, collect.records(root), spectra)
    write.write_tables(*material, tmp_path / "report", "ablation")
    text = (tmp_path / "report" / "reductions.md").read_text()
    assert "| How many equations and trajectories | 1 source equation |" in text
    drawn = write.write_figures(*material, collect.examples(root), tmp_path / "report", "ablation")
    assert {path.stem for path in drawn} == {"reductions", "equations", "spectra"}

    again = study.run(root, plan, brief)
    assert (again.done, again.kept, again.pretrained) == ((), 2, ())


def test_a_pretraining_that_was_stopped_goes_on_from_its_state(root, brief, monkeypatch):
    plan, real, made_steps = cells(), TrainingState.update, []

    def update(self, parts):
        made_steps.append(self.step)
        if len(made_steps) == 3:
            raise KeyboardInterrupt
        return real(self, parts)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingState, "update", update)
        with pytest.raises(KeyboardInterrupt):
            study.run(root, plan, brief)
        [start] = study.missing_pretrainings(root, plan, brief)
        found = study.status(root, plan, brief)
        assert found.unpretrained == (start,) and {cell.forecaster for cell in found.waiting} == {"one-equation"}
        ran = study.run(root, plan, brief)
    assert made_steps == [0, 1, 2, 2, 3] and (ran.kept, len(ran.done), ran.pretrained) == (1, 1, (start,))


def test_a_pretraining_that_failed_stops_only_the_cells_that_need_it(root, brief, monkeypatch):
    plan, real = cells("random-one"), Pretraining.run

    def run(self, *arguments):
        if self.config.objective != "random":
            raise FloatingPointError("expected a finite loss")
        return real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Pretraining, "run", run)
        ran = study.run(root, plan, brief)
    stopped = [cell for cell in plan if cell.forecaster == "one-equation"]
    [failed] = [cell.pretraining(brief) for cell in stopped]
    assert {cell.forecaster for cell in ran.done} == {"scratch", "random-one"}
    assert ran.failed == {failed: "FloatingPointError: expected a finite loss"} and ran.stopped == {
        failed: tuple(stopped)
    }
    found = study.status(root, plan, brief)
    assert (found.failed, found.stopped, found.waiting) == (ran.failed, ran.stopped, tuple(stopped))
    assert "in run" in Directory(root).traceback(failed.name).read_text()
    assert study.run(root, plan, brief).done == tuple(stopped)
    assert not list((root / "failed").iterdir())


def test_what_a_pretraining_goes_on_from_is_made_first_and_once(root, brief, monkeypatch):
    plan = cells("decoder-one")
    first, last = study.missing_pretrainings(root, plan, brief)
    assert last.start == first and (first.config.steps, last.config.steps) == (4, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Pretraining, "run", lambda *_: 1 / 0)
        ran = study.run(root, plan, brief)
    assert ran.failed == dict.fromkeys((first, last), "ZeroDivisionError: division by zero") and len(ran.done) == 1
    assert [cell.forecaster for cells in ran.stopped.values() for cell in cells] == ["one-equation", "decoder-one"]
    found = study.status(root, plan, brief)
    assert set(found.failed) == {first} and [cell.forecaster for cell in found.stopped[first]] == [
        "one-equation",
        "decoder-one",
    ]
    assert study.run(root, plan, brief).pretrained == (first, last)

    folders = [Directory(root).pretraining(each.name) / "model" for each in (first, last)]
    before, after = (checkpoint.load(folder) for folder in folders)
    assert after.pretrained == (*before.pretrained, "decoder") == ("encoder", "predictor", "decoder")
    for part in before.pretrained:
        assert all(map(torch.equal, getattr(before, part).parameters(), getattr(after, part).parameters()))
    assert checkpoint.read_config(folders[1])[1].pretraining["start"]["fingerprint"] == before.fingerprint
    shutil.rmtree(folders[0].parent)  # no longer needed
    assert study.status(root, [plan[-1]], brief).unpretrained == ()
    assert study.run(root, cells("decoder-one")[-1:], brief).pretrained == ()


def meet(supply, job, profile, device):
    """Stand in for an attempt: each of two pretrainings ends when both have begun."""
    if isinstance(job, Pretraining):
        (supply.root / f"{job.name}.begun").touch()
        deadline = time.monotonic() + 60
        while len(list(supply.root.glob("*.begun"))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    return DONE


def test_workers_pretrain_for_two_groups_at_once(root, brief, monkeypatch):
    from distributed import LocalCluster

    plan = cells("random-one")
    starts = study.missing_pretrainings(root, plan, brief)
    assert [cell.group for cell in plan] == ["unchanged", "objectives", "equations"] and len(starts) == 2
    monkeypatch.setattr(study, "attempt", meet)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        ran = study.run(root, plan, brief, scheduler=cluster.scheduler_address)
    assert (set(ran.done), set(ran.pretrained), ran.failed) == (set(plan), set(starts), {})


def test_a_pretraining_that_another_process_computes_is_left_to_it(root, brief):
    plan = cells()
    [start] = study.missing_pretrainings(root, plan, brief)
    with Directory(root).lock(start.name):
        ran = study.run(root, plan, brief)
        assert {cell.forecaster for cell in ran.busy} == {"one-equation"} and len(ran.done) == 1
        assert study.status(root, plan, brief).running == (start,)


def test_weights_that_are_not_those_of_the_record_are_refused(root, brief):
    plan = cells("random-one")
    [start] = [cell.pretraining(brief) for cell in plan if cell.forecaster == "random-one"]
    folder = Directory(root).pretraining(start.name)
    start.run(folder, root / "pretrainings" / "datasets", CPU)
    other = replace(start, config=replace(start.config, seed=5))
    elsewhere = Directory(root).pretraining(other.name)
    other.run(elsewhere, root / "pretrainings" / "datasets", CPU)
    shutil.rmtree(folder / "model")
    shutil.copytree(elsewhere / "model", folder / "model")
    with pytest.raises(StudyError, match=r"expected weights .* move the folder away to pretrain again"):
        pretrainings.weights(folder)
    shutil.copy(elsewhere / "record.json", folder / "record.json")
    with pytest.raises(StudyError, match=f"expected the pretraining {start.name}"):
        pretrainings.read_record(folder)


def test_a_given_data_set_is_read_only_where_it_has_everything(root, brief):
    [start] = study.missing_pretrainings(root, cells(), brief)
    given = Supply(root, root / "pretrainings" / "datasets")
    assert given.dataset_of(start) == root / "pretrainings" / "datasets" and not given.lacking_for([start])
    more = replace(start, systems=(("gray-scott", 2),))
    lacking = Supply(root, root / "data")
    assert lacking.dataset_of(more) == root / "pretrainings" / "datasets"
    assert [str(key) for key in lacking.lacking_for([more])] == ["gray-scott/pool/id/00001"]


def test_trajectories_of_another_recipe_are_refused_also_for_a_pretraining(root, brief, monkeypatch):
    present = manifest.identity
    changed = {"gray-scott": {"family": "another"}}
    monkeypatch.setattr(manifest, "identity", lambda system: present(system) | changed.get(system.name, {}))
    with pytest.raises(DataError, match=r"gray-scott\.family"):
        study.run(root, cells(), brief)


def test_a_change_that_takes_over_the_encoder_alone_has_the_same_predictor_after_every_pretraining(brief, tmp_path):
    for number, seed in enumerate((1, 2)):
        checkpoint.save(build(brief.preset, seed), tmp_path / str(number), {}, "")
    starts = [checkpoint.load(tmp_path / str(number)) for number in (0, 1)]
    found = [contenders.forecaster("reference-encoder", brief, tmp_path / str(number)) for number in (0, 1)]
    whole = contenders.forecaster("reference", brief, tmp_path / "0")
    assert equal(found[0].predictor, found[1].predictor) and not equal(found[0].predictor, starts[0].predictor)
    assert equal(whole.predictor, starts[0].predictor)
    assert all(equal(model.encoder, start.encoder) for model, start in zip(found, starts, strict=True))


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_the_cost_has_the_steps_of_every_kind_of_pretraining(root, brief, monkeypatch):
    monkeypatch.setattr(cost, "draw", lambda system: {"draw": 1.0})
    plan = cells("random-one")
    starts = study.missing_pretrainings(root, plan, brief)
    device, supply = CPU, Supply(root, grid=brief.grid)
    none = cost.cost(plan, brief, supply, device)
    found = cost.cost(plan, brief, supply, device, starts=starts)
    assert found.pretraining_seconds > 0 == none.pretraining_seconds and found.seconds == none.seconds
    assert found.hours == pytest.approx(none.hours + found.pretraining_seconds / 3600)
    [trained] = [start for start in starts if start.config.objective != "random"]
    longer = replace(trained, config=replace(trained.config, steps=8))
    assert cost.cost(plan, brief, supply, device, starts=[longer]).pretraining_seconds == 2 * found.pretraining_seconds
    decoder = replace(trained, config=replace(trained.config, objective="decoder"), start=trained)
    after = cost.cost(plan, brief, supply, device, starts=[trained, decoder])
    step = after.pretraining_seconds - found.pretraining_seconds
    twice = replace(decoder, config=replace(decoder.config, steps=2 * decoder.config.steps))
    assert step > 0
    assert cost.cost(plan, brief, supply, device, starts=[twice]).pretraining_seconds == pytest.approx(2 * step)


SCRIPT = """
import sys
from dataclasses import replace
from rdjepa.models.rdjepa import PRESETS, ModelConfig
from rdjepa.pretraining import config as configs
from rdjepa.study import runner as study
from rdjepa.study.profiles import PretrainingSizes, profile

sizes = dict(temporal_blocks=1, predictor_blocks=1, decoder_width=8, grid=32, patch=4)
PRESETS["tiny"] = ModelConfig(32, 1, (1, 1, 1, 1, 1), **sizes)
configs.PROFILES["tiny"] = replace(configs.scaled(configs.PROFILES["nano"], 60), batch=2, save_every=5)
if __name__ == "__main__":
    root, workers, *only = sys.argv[1:]
    whole = profile("ablation", precision="float32")
    adapt, runs = replace(whole.adapt, steps=1), PretrainingSizes(60, 1, 1, 1)
    brief = replace(whole, preset="tiny", adapt=adapt, test=1, statistics=1, curve=(), pretraining=runs)
    ran = study.run(root, study.cells("ablation", only, phase="final"), brief, workers=int(workers))
    print(*ran.done, *ran.pretrained, sep="\\n")
"""


@pytest.mark.slow
def test_a_killed_process_loses_the_steps_since_the_last_state(tmp_path):
    script, root = tmp_path / "run_study.py", tmp_path / "root"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(root), "1", *ONLY]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    states, deadline = root / "pretrainings", time.monotonic() + 240
    while not list(states.glob("*/state/step-*")) and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    [run] = [path.parent for path in states.glob("*/state")]
    assert not (run / "record.json").exists() and not Directory(root).is_running(run.name)
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    assert done[-2] == "pretraining/predictive-latent/gray-scott:1/1234" and len(list((root / "cells").iterdir())) == 2
    lines = Path(run / "metrics.jsonl").read_text().splitlines()
    assert lines and pretrainings.read_record(run).id == run.name


@pytest.mark.slow
def test_workers_pretrain_and_then_adapt(tmp_path):
    script, root = tmp_path / "run_study.py", tmp_path / "root"
    script.write_text(SCRIPT)
    more = ["change=without-tubes", "change=without-same-time"]
    command = [sys.executable, str(script), str(root), "2", *ONLY[:3], *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    assert len(list((root / "cells").iterdir())) == 2 and len([line for line in done if "pretraining/" in line]) == 2
    assert len(list((root / "pretrainings").glob("*/record.json"))) == 2 and not list(root.glob("failed/*"))
