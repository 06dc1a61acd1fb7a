import json
from dataclasses import replace

import pytest

from rdjepa.cli import main as cli
from rdjepa.study import profiles
from rdjepa.study.profiles import PROFILES

ONLY = "system=lambda-omega,k=1,support_seed=777,forecaster=persistence"


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["study", *map(str, arguments)])
    return stopped.value.code


@pytest.fixture
def brief_nano(monkeypatch):
    monkeypatch.setitem(profiles.PROFILES, "nano", replace(PROFILES["nano"], test=1, statistics=1))


def test_plan_run_status_export(capsys, tmp_path, brief_nano):
    where = ("heldout", "--root", tmp_path / "root", "--only", ONLY)
    assert not run("plan", *where)
    assert "hours of one worker" in capsys.readouterr().out and not (tmp_path / "root" / "cells").exists()
    assert not run("run", *where)
    assert "1 done, 0 kept" in capsys.readouterr().out
    assert not run("run", *where)
    assert "0 done, 1 kept" in capsys.readouterr().out
    assert not run("status", *where)
    assert "1 done, 0 running, 0 failed, 0 waiting" in capsys.readouterr().out
    assert not run("status", *where, "--only", "forecaster=extrapolation")
    assert "1 done, 0 running, 0 failed, 1 waiting" in capsys.readouterr().out
    assert not run("export", "--root", tmp_path / "root", "--out", tmp_path / "out")
    assert len(json.loads((tmp_path / "out" / "records.json").read_text())["records"]) == 1
    another = ("heldout", "--root", tmp_path / "other", "--only", ONLY.replace("persistence", "extrapolation"))
    assert not run("run", *another)
    both = ("--root", tmp_path / "root", "--root", tmp_path / "other")
    assert not run("tables", "heldout", *both, "--out", tmp_path / "report")
    rows = (tmp_path / "report" / "all-forecasters.csv").read_text()
    assert "persistence" in rows and "extrapolation" in rows
    capsys.readouterr()
    for verb in ("tables", "figures", "report"):
        assert run(verb, "boundary", *both, "--out", tmp_path / "none") == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"in {tmp_path / 'root'}, {tmp_path / 'other'}, got those of heldout at nano; make some" in said
        assert f"rdjepa study run boundary --profile nano --root {tmp_path / 'root'}" in said
    assert run("tables", "boundary", "--root", tmp_path / "out", "--out", tmp_path / "none") == 2
    assert f"--profile nano --root study --known {tmp_path / 'out'}" in " ".join(capsys.readouterr().err.split())
    assert run("tables", "heldout", "--root", tmp_path / "out", "--profile", "nona", "--out", tmp_path / "none") == 2
    assert "expected a profile among paper, small, nano," in " ".join(capsys.readouterr().err.split())


def test_a_failed_cell_is_status_1(monkeypatch, capsys, tmp_path, brief_nano):
    def fail(*arguments):
        raise RuntimeError("no luck")

    with monkeypatch.context() as failing:
        failing.setattr("rdjepa.study.attempts.compute", fail)
        assert run("run", "heldout", "--root", tmp_path, "--only", ONLY) == 1
    assert "failed: heldout/lambda-omega/K=1/777/persistence: RuntimeError: no luck" in capsys.readouterr().out
    assert not run("run", "heldout", "--root", tmp_path, "--only", ONLY.replace("persistence", "linear"))
    for verb in (("tables", "heldout"), ("export",)):
        assert not run(*verb, "--root", tmp_path, "--out", tmp_path / "out")
        assert f"that failed in {tmp_path} (1) are in no table" in " ".join(capsys.readouterr().err.split())


def test_number_of_updates_and_precision_are_those_of_the_command(monkeypatch, capsys, tmp_path, brief_nano):
    def fail(cell, profile, *others):
        raise RuntimeError(f"{profile.adapt.steps} in {profile.adapt.precision}, {profile.observed}")

    monkeypatch.setattr("rdjepa.study.attempts.compute", fail)
    settings = ("--steps", 500, "--precision", "float32")
    assert run("run", "heldout", "--root", tmp_path, "--only", ONLY, *settings) == 1
    assert "500 in float32, (100, 400)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "everything"), "heldout, source, boundary, scratch"),
        (("run", "heldout", "--profile", "huge"), "paper, small, nano"),
        (("run", "heldout", "--profile", ""), "paper, small, nano"),
        (("tables", "heldout", "--profile", ""), "rdjepa study run"),
        (("run", "heldout", "--only", "size=3"), "support_seed"),
        (("run", "heldout", "--profile", "small"), "rdjepa pretrain --preset small"),
        (("run", "heldout", "--phase", "choice"), "no phase of the study heldout"),
        (("run", "ablation", "--phase", "end"), "a phase among choice, final, got 'end'"),
        (("run", "ablation", "--only", "change=tubs"), "without-tubes, without-same-time"),
        (("run", "ablation", "--only", "group=part"), "objectives, systems, seeds, parts, equations, adaptation"),
        (("run", "ablation", "--only", "system=barkley"), "brusselator, ginzburg-landau"),
        (("run", "ablation", "--profile", "nano"), "such as ablation, got nano"),
        (("run", "ablation", "--model", "nano"), "which pretrains its own, got nano"),
        (("status", "ablation", "--root", "nowhere"), "rdjepa study run"),
        (("run", "heldout", "--data", "nowhere"), "rdjepa data build"),
        (("plan", "heldout", "--data", "nowhere"), "rdjepa data build"),
        (("plan", "heldout", "--data", 300 * "a"), "a path that can be used"),
        (("run", "heldout", "--steps", "-1"), "steps"),
        (("run", "heldout", "--cache", "nan"), "GiB"),
        (("run", "heldout", "--cache", "0"), "GiB"),
        (("status", "heldout", "--root", "nowhere"), "rdjepa study run"),
        (("tables", "heldout", "--root", "nowhere"), "rdjepa study run"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_written(monkeypatch, capsys, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: expected") and words in error and "Traceback" not in error
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
