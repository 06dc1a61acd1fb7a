"""A study computes every cell once, whatever stops it, and says how far it is."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import rdjepa
from rdjepa.data.splits import coinciding_seeds
from rdjepa.errors import ArgumentError, CheckpointError, DataError, OutputError, StudyError
from rdjepa.evaluation.metrics import METRICS
from rdjepa.forecasters.persistence import persistence
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import PRESETS, RDJEPA
from rdjepa.study import attempts, collect, protocol, registry, supply
from rdjepa.study import runner as study
from rdjepa.study.cell import identity
from rdjepa.study.directory import Directory
from rdjepa.study.fingerprints import identifier
from rdjepa.study.profiles import PROFILES
from rdjepa.study.registry import Study
from rdjepa.systems import get, register

SCRIPT = """
import sys
from dataclasses import replace
from rdjepa.study import runner as study
from rdjepa.study.profiles import profile

if __name__ == "__main__":
    root, steps, workers, *only = sys.argv[1:]
    nano = profile("nano", precision="float32")
    brief = replace(nano, adapt=replace(nano.adapt, steps=int(steps)), test=1, statistics=1)
    ran = study.run(root, study.cells("heldout", only), brief, workers=int(workers))
    print("\\n".join(map(str, ran.done)))
"""
LAMBDA = ("system=lambda-omega", "k=1")


def start(tmp_path: Path, root: Path, *arguments: str) -> subprocess.Popen:
    script = tmp_path / "run_study.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(root), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def wait_until(condition, running: subprocess.Popen, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted((root / "cells").rglob("*.*"))}


def test_the_paper_adapts_432_models():
    external = {"heldout": 9 * 3 * 7, "source": 15 * 3 * 3, "boundary": 9 * 3 * 3}
    for name, expected in external.items():
        adapted = [c for c in study.cells(name) if c.trained and c.forecaster != "scratch"]
        assert len(adapted) == len(set(adapted)) == expected
    scratch = [c for c in study.cells("scratch") if c.forecaster == "scratch"]
    assert sum(external.values()) + len(scratch) == 432


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"systems": "barkley"}, "expected systems as a tuple of names, got 'barkley'; write"),
        ({"forecasters": "fno"}, "expected forecasters as a tuple of names, got 'fno'; write"),
        ({"budgets": ("1",)}, r"expected budgets as a tuple of whole numbers from 1 on, got \('1',\); write"),
        ({"seeds": 777}, "expected seeds as a tuple of whole numbers from 0 to 4294967295, got 777; write"),
        ({"seeds": (2**32,)}, r"whole numbers from 0 to 4294967295, got \(4294967296,\); write"),
        ({"budgets": (0,)}, r"whole numbers from 1 on, got \(0,\); write"),
        ({"budgets": ()}, r"expected budgets that are at least one and all different, got \(\); mend"),
        ({"seeds": (779, 779)}, r"expected seeds that are at least one and all different, got \(779, 779\); mend"),
        ({"systems": ()}, r"expected systems that are at least one and all different, got \(\); mend"),
    ],
)
def test_a_study_of_wrong_types_is_refused_when_it_is_defined(changes, words):
    with pytest.raises(StudyError, match=words):
        Study(**{"name": "mine", "title": "Mine", "systems": ("barkley",)} | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"systems": ("barkly",)}, "every system of the study mine among gray-scott, .*, got 'barkly'; correct"),
        ({"forecasters": ("fna",)}, "every forecaster of the study mine among rd-jepa, .*, got 'fna'; correct"),
        (
            {"forecasters": ("fno",), "control": "scrach"},
            "every control of the study mine among fno, got 'scrach'; corr",
        ),
        (
            {"phases": {"a": ("barkley",)}, "systems": ("lambda-omega",)},
            "every system of a phase of the study mine among lambda-omega, got 'barkley'; correct",
        ),
        (
            {"systems": ("barkley-robin",), "budgets": (30,)},
            "at most the 20 pool trajectories of .*, got K = 30; lower",
        ),
        ({"forecasters": ("fno",), "subject": "lno"}, "every subject of the study mine among fno, got 'lno'; correct"),
    ],
)
def test_a_study_of_unknown_names_has_no_cells(registrations, changes, words):
    registry.register(Study(**{"name": "mine", "title": "Mine", "systems": ("barkley",)} | changes))
    with pytest.raises(StudyError, match=words):
        study.cells("mine")


def test_a_system_of_another_phase_is_named_with_that_phase():
    with pytest.raises(StudyError, match="got barkley, which is of the phase final; give --phase final"):
        study.cells("ablation", ["system = barkley"])
    assert {cell.system for cell in study.cells("ablation", ["system = barkley "], phase="final")} == {"barkley"}


@pytest.mark.parametrize("changes", [{"test": 0}, {"statistics": 0}, {"stride": 0}, {"test": -5}])
def test_a_profile_without_trajectories_is_refused(changes):
    with pytest.raises(ArgumentError, match=f"expected {next(iter(changes))} to be a whole number of at least 1, got"):
        replace(PROFILES["nano"], **changes)


def test_more_test_trajectories_than_the_benchmark_has_are_refused():
    cell = study.cells("heldout")[0]
    assert len(cell.test(300)) == 300
    with pytest.raises(StudyError, match=r"at most the 300 test trajectories of .*, got 301; lower test"):
        cell.test(301)


def test_the_most_telling_cells_come_first():
    every = study.cells("heldout")
    first = every[: 3 * 10]
    assert {(c.k, c.support_seed) for c in first} == {(1, 777)} and len({c.system for c in first}) == 3
    assert [c.k for c in every] == sorted(c.k for c in every)
    assert {c.support_seed for c in study.cells("boundary")} == {777, 778, 780}
    assert {c.k for c in study.cells("source")} == {5, 10, 20}


def test_forecasters_share_nested_supports_and_test_trajectories():
    cells = [c for c in study.cells("heldout") if c.system == "barkley" and c.support_seed == 778]
    by_k = {k: {tuple(c.support()) for c in cells if c.k == k} for k in (1, 5, 10)}
    assert all(len(supports) == 1 for supports in by_k.values())
    one, five, ten = (supports.pop() for supports in by_k.values())
    assert five[:1] == one and ten[:5] == five and {key.split for key in ten} == {"pool"}
    assert len({tuple(c.test(300)) for c in cells}) == 1
    counts = [key.regime for key in study.cells("source")[0].test(300)]
    assert {regime: counts.count(regime) for regime in counts} == {"id": 100, "coeff-ood": 100, "ic-ood": 100}
    assert len(cells[0].test(300)) == 300


def test_seeds_that_select_the_same_trajectory_are_refused(registrations):
    pool = protocol.counts("barkley-robin")["pool", "id"]
    same = next(seed for seed in range(100) if coinciding_seeds(pool, 1, (778, seed)) and seed != 778)
    registry.register(replace(registry.get("boundary"), name="mine", seeds=(777, 778, same)))
    with pytest.raises(StudyError, match=f"778 and {same}"):
        study.cells("mine")


@pytest.mark.parametrize(
    ("name", "only", "words"),
    [
        ("all", [], "heldout, source, boundary, scratch"),
        ("heldout", ["system=heat"], "lambda-omega, barkley, oregonator"),
        ("heldout", ["k"], "support_seed"),
        ("heldout", ["kk=1"], "support_seed"),
        ("source", ["k=1"], "5, 10, 20"),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(name, only, words):
    with pytest.raises(StudyError, match=words):
        study.cells(name, only)


def test_a_cell_has_the_errors_that_evaluation_gives(finished):
    rows = collect.collect(finished)
    assert len(rows) == 2 * len(METRICS) * 5 and rows.notna().all(axis=None)
    mine = rows[rows.forecaster == "persistence"].set_index(["metric", "horizon"])["value"]
    trajectory = rdjepa.simulate("lambda-omega", split="test").coarsened(64)
    for row in rdjepa.evaluate(persistence, trajectory, metrics=tuple(METRICS)):
        assert mine[row.metric, row.horizon] == row.value


def test_a_second_run_computes_nothing(finished, brief, two_cells):
    before = contents(finished)
    times = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    ran = study.run(finished, two_cells, brief, workers=2)
    assert (ran.done, ran.kept, ran.busy, ran.failed) == ((), 2, (), {})
    assert contents(finished) == before and times == {path: path.stat().st_mtime_ns for path in finished.rglob("*")}


def test_a_study_goes_on_from_the_cells_and_statistics_of_an_export(tmp_path, finished, monkeypatch, brief, two_cells):
    collect.export(finished, tmp_path / "export")
    monkeypatch.setattr(supply, "moments", lambda *_: pytest.fail("statistics are computed again"))
    more = study.cells("heldout", ["system=lambda-omega", "k=1", "support_seed=777", "forecaster=extrapolation"])
    every = [*two_cells, *more]
    ran = study.run(tmp_path / "more", every, brief, data=finished / "data", known=tmp_path / "export")
    assert (list(ran.done), ran.kept, ran.failed) == (more, 2, {})
    normalizers = [
        record["normalizer"] for root in (finished, tmp_path / "more") for record in collect.read_records(root)
    ]
    assert len(normalizers) == 3 and all(each == normalizers[0] for each in normalizers)
    assert study.missing_cells(tmp_path / "more", two_cells, brief) == two_cells  # they are in the export alone
    assert study.status(tmp_path / "more", every, brief).waiting == tuple(two_cells)
    assert study.status(tmp_path / "more", every, brief, tmp_path / "export").done == tuple(every)
    collect.export(tmp_path / "more", tmp_path / "rest")
    ran = study.run(tmp_path / "third", every, brief, known=[tmp_path / "export", tmp_path / "rest"])
    assert (ran.done, ran.kept) == ((), 3)


def test_a_known_cell_of_another_precision_is_not_computed_again(finished, two_cells, brief, tmp_path):
    reduced = replace(brief, adapt=replace(brief.adapt, precision="bfloat16"))
    records = collect.read_records(finished)
    assert study.missing_cells(tmp_path, two_cells, reduced) == two_cells
    assert study.missing_cells(tmp_path, two_cells, reduced, records) == []
    longer = replace(brief, adapt=replace(brief.adapt, steps=2))
    trained = [cell for cell in two_cells if cell.trained]
    assert study.missing_cells(tmp_path, two_cells, longer, records) == trained


def test_statistics_of_other_data_are_not_taken(tmp_path, finished):
    own = supply.Supply(tmp_path, grid=64)
    records, names = collect.read_records(finished), ["lambda-omega"]
    own.take_statistics([{**each, "system": "of somebody else"} for each in records], names)
    own.take_statistics([{**each, "identity": each["identity"] | {"data": "other"}} for each in records], names)
    own.take_statistics([{**each, "identity": each["identity"] | {"grid": 128}} for each in records], names)
    assert not own.has_statistics("lambda-omega", 1)
    own.take_statistics(records, names)
    assert own.normalizer("lambda-omega", 1) == rdjepa.Normalizer.from_dict(records[0]["normalizer"])


def test_statistics_of_a_pretraining_on_another_grid_are_not_taken(tmp_path, two_cells, brief, monkeypatch):
    taken = []
    monkeypatch.setattr(supply.Supply, "take_pretraining_statistics", lambda self, *_: taken.append(self.grid))
    for preset in ("small", brief.preset):
        study.outstanding(tmp_path / preset, two_cells, replace(brief, preset=preset))
    assert taken == [brief.grid] and PRESETS["small"].grid != brief.grid


def test_a_failed_cell_keeps_its_traceback_and_does_not_stop_the_rest(begun, monkeypatch, brief, two_cells):
    real = attempts.compute

    def compute(cell, *rest):
        if cell.forecaster == "riesz-no":
            raise FloatingPointError("expected a finite loss")
        return real(cell, *rest)

    monkeypatch.setattr(attempts, "compute", compute)
    ran = study.run(begun, two_cells, brief)
    bad, good = sorted(two_cells, key=lambda cell: cell.forecaster != "riesz-no")
    assert ran.done == (good,) and ran.failed == {bad: "FloatingPointError: expected a finite loss"}
    found = study.status(begun, two_cells, brief)
    assert found.done == (good,) and found.failed == ran.failed and (found.seconds or 0) > 0
    text = Directory(begun).traceback(identifier(identity(bad, brief))).read_text()
    assert text.startswith(f"{brief.name}: {bad}\nTraceback") and "in compute" in text
    monkeypatch.undo()
    directory = Directory(begun)
    directory.fail("0" * 16, f"{brief.name}: {bad}", "of an earlier version of its forecaster")
    directory.fail("1" * 16, f"{brief.name}: {good}", "of another cell")
    assert study.run(begun, two_cells, brief).done == (bad,)
    assert directory.failures() == 1 and directory.failure("1" * 16) == "of another cell"
    directory.traceback("2" * 16).write_text("Traceback, as it was without a title")
    directory.forget_failures("2" * 16, f"{brief.name}: {good}")
    assert not list((begun / "failed").iterdir())


def test_a_cell_without_enough_memory_says_what_to_lower(begun, monkeypatch, brief, two_cells):
    def compute(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 9 GiB")

    monkeypatch.setattr(attempts, "compute", compute)
    ran, found = study.run(begun, two_cells[:1], brief), study.status(begun, two_cells[:1], brief)
    told = "InsufficientMemoryError: expected enough memory, got too little (CUDA out of memory.); lower --workers"
    assert ran.failed == {two_cells[0]: told} and found.failed[two_cells[0]].endswith(told)
    text = Directory(begun).traceback(identifier(identity(two_cells[0], brief))).read_text()
    assert "Tried to allocate 9 GiB" in text and "in compute" in text


def test_a_folder_without_a_record_is_named_before_anything_is_computed(begun, brief, two_cells):
    first, second = two_cells
    place = Directory(begun).cell(identifier(identity(first, brief)))
    place.mkdir(parents=True)
    ran = study.run(begun, two_cells, brief)
    assert ran.done == (second,) and list(ran.failed) == [first]
    assert ran.failed[first].endswith(
        f"expected a finished cell in {place}, got a folder without record.json; move it away"
    )


def test_a_system_is_tested_in_the_regimes_that_it_has(registrations):
    own = get("schnakenberg")
    register(replace(own, name="mine", regimes={"id": own.regimes["id"]}), "source")
    assert {key.regime for key in replace(study.cells("source")[0], system="mine").test(30)} == {"id"}


def test_a_locked_cell_is_left_to_its_process(begun, brief, two_cells):
    where = Directory(begun)
    mine, other = two_cells
    name = identifier(identity(mine, brief))
    with where.lock(name) as held:
        assert held and where.is_running(name)
        ran = study.run(begun, two_cells, brief)
        assert ran.busy == (mine,) and ran.done == (other,)
        assert study.status(begun, two_cells, brief).running == (mine,)
    assert not where.is_running(name)
    assert study.status(begun, two_cells, brief).waiting == (mine,)


@pytest.mark.slow
def test_two_processes_compute_no_cell_twice(tmp_path):
    only = [*LAMBDA, "forecaster=persistence", "forecaster=extrapolation", "forecaster=riesz-no"]
    runs = [start(tmp_path, tmp_path / "root", "1", "1", *only) for _ in range(2)]
    printed = [run.communicate(timeout=600)[0].split() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert sorted(printed[0] + printed[1]) == sorted(map(str, study.cells("heldout", only)))


@pytest.mark.slow
def test_a_killed_process_leaves_no_half_cell(tmp_path):
    root, only = tmp_path / "root", [*LAMBDA, "support_seed=777", "forecaster=riesz-no"]
    running = start(tmp_path, root, "40", "1", *only)
    wait_until(lambda: list((root / "locks").glob("*.lock")), running)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    [lock] = (root / "locks").glob("*.lock")
    assert not Directory(root).is_running(lock.stem) and not list((root / "cells").glob("[!.]*"))
    assert start(tmp_path, root, "40", "1", *only).communicate(timeout=600)[0].split() == [
        "heldout/lambda-omega/K=1/777/riesz-no"
    ]
    assert [path.name for path in (root / "cells").iterdir()] == [lock.stem]


@pytest.mark.slow
def test_a_killed_worker_loses_only_that_try(tmp_path):
    """Of two workers one is killed in the middle of a cell; the run ends with every cell whole."""
    root, only = tmp_path / "root", [*LAMBDA, "forecaster=riesz-no"]
    running = start(tmp_path, root, "12", "2", *only)
    wait_until(lambda: len(list((root / "locks").glob("*.lock"))) >= 2, running)
    workers = subprocess.run(["pgrep", "-f", "-g", str(running.pid), "spawn_main"], capture_output=True, text=True)
    os.kill(int(workers.stdout.split()[-1]), signal.SIGKILL)
    printed = running.communicate(timeout=600)[0].split()
    assert running.returncode == 0
    assert sorted(printed) == sorted(map(str, study.cells("heldout", only)))
    assert len(collect.records(root)) == 3 and not list((root / "failed").glob("*"))


def test_a_directory_of_another_version_is_refused(tmp_path, brief, two_cells):
    (tmp_path / "study.json").write_text(json.dumps({"format": "rdjepa-study", "version": 1, "profiles": {}}))
    for action in (study.run, study.status, study.missing_cells):
        with pytest.raises(StudyError, match="protocol version 2, got rdjepa-study 1"):
            action(tmp_path, two_cells, brief)
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(StudyError, match="expected a readable record"):
        study.run(tmp_path, two_cells, brief)


def test_other_settings_of_a_profile_are_refused(finished, brief, two_cells):
    both = replace(brief, adapt=replace(brief.adapt, steps=2, precision="bfloat16"))
    for other, words in (
        (replace(brief, test=2), r"test \(2, not 1\); go on from Python with the same Profile \(rdjepa.study\), or"),
        (
            both,
            r"adapt.precision \(bfloat16, not float32\), adapt.steps \(2, not 1\); give the same --precision and --st",
        ),
    ):
        for action in (study.run, study.status, study.missing_cells):
            with pytest.raises(StudyError, match=f"got other {words}"):
                action(finished, two_cells, other)


def test_another_checkpoint_is_refused_also_where_nothing_is_computed(tmp_path, brief):
    pretrained, network = (study.cells("heldout", [*LAMBDA, f"forecaster={name}"]) for name in ("rd-jepa", "fno"))
    directory = Directory(tmp_path)
    directory.claim(brief.name, brief.settings())
    directory.claim(f"{brief.name}/rd-jepa", {"checkpoint": "0" * 64})
    for action in (study.run, study.status, study.missing_cells):
        with pytest.raises(StudyError, match="got other checkpoint; give the same --model, or choose another --root"):
            action(tmp_path, pretrained, brief)
    assert study.missing_cells(tmp_path, network, brief) == network  # they start from none


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_disk_is_one_sentence(begun, monkeypatch, brief, two_cells, number):
    Directory(begun).claim(brief.name, brief.settings())

    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OutputError, match=r"a full disk; free some|a read-only disk; write elsewhere") as refused:
        study.run(begun, two_cells, brief)
    assert "\n" not in str(refused.value) and not list((begun / "cells").iterdir())


def test_a_disk_that_is_full_in_the_middle_of_a_cell_ends_the_run(begun, monkeypatch, brief, two_cells):
    def compute(*arguments):
        raise OutputError("expected to write data, got a full disk; free some space and run again")

    monkeypatch.setattr(attempts, "compute", compute)
    with pytest.raises(OutputError, match="a full disk"):
        study.run(begun, two_cells, brief)
    assert not (begun / "failed").exists()


def test_a_root_that_is_a_file_is_one_sentence(tmp_path, brief, two_cells):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="a file where a directory is needed"):
        study.run(tmp_path / "file", two_cells, brief)


def test_no_updates_of_what_has_to_learn_are_refused_before_anything_is_simulated(tmp_path, brief):
    none = replace(brief, adapt=replace(brief.adapt, steps=0))
    with pytest.raises(StudyError, match="at least one update of a forecaster with fresh weights, got 0 for heldout/"):
        study.run(tmp_path / "root", study.cells("heldout", ["forecaster=fno"]), none)
    assert not (tmp_path / "root").exists()


def test_missing_checkpoints_and_data_name_the_command(tmp_path, brief):
    cells = study.cells("heldout", ["forecaster=rd-jepa"])
    with pytest.raises(CheckpointError, match="rdjepa pretrain --preset nano"):
        study.run(tmp_path / "root", cells, replace(brief, checkpoint="nowhere"))
    with pytest.raises(CheckpointError, match="of preset small, got one of 'nano'"):
        study.run(tmp_path / "root", cells, replace(brief, preset="small"))
    model = RDJEPA(replace(PRESETS["nano"], width=64), "nano")
    checkpoint.save(model, tmp_path / "narrow", {}, "")
    with pytest.raises(CheckpointError, match="the sizes of preset nano, got another width"):
        study.run(tmp_path / "root", cells, replace(brief, checkpoint=str(tmp_path / "narrow")))
    with pytest.raises(DataError, match="rdjepa data build"):
        study.run(tmp_path / "root", cells, brief, data=tmp_path / "nothing")
    assert not (tmp_path / "root").exists()
