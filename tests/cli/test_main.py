import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rdjepa
from rdjepa import api, forecasters
from rdjepa.cli import main as cli
from rdjepa.forecasters.fno import Config


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(each) for each in arguments])
    return stopped.value.code


def worked_once(monkeypatch, name):
    """Have a function of `rdjepa.api` return its first result again, where only what is done with that is asked."""
    work, results = getattr(api, name), list[Any]()

    def first(*given, **named):
        results.extend([] if results else [work(*given, **named)])
        return results[0]

    monkeypatch.setattr(api, name, first)


@pytest.mark.parametrize("words", [(), ("adapt",), ("data",), ("data", "build")], ids=str)
def test_a_command_that_explains_itself_ends_well(capsys, words):
    assert run(*words, "--help") == 0
    assert "Usage" in capsys.readouterr().out


def test_the_version_is_said(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"rdjepa {rdjepa.__version__}\n"


def test_of_one_checkpoint_it_is_told_how_and_on_what_it_was_pretrained(capsys):
    from rdjepa.io.checkpoint import shipped

    assert run("info", str(shipped()["nano"])) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        said.startswith("checkpoint ") and "37500 steps of batch 8 on 5000 training trajectories of gray-scott" in said
    )
    assert "no held-out system, no validation or test trajectory" in said and "presets" not in said


def test_presets_are_told_with_their_numbers_of_parameters(capsys, monkeypatch):
    from rdjepa.models.rdjepa import build, parameter_count

    monkeypatch.setattr("rdjepa.io.checkpoint.shipped", dict)
    assert not run("info")
    shown, nano = capsys.readouterr().out, build("nano")
    assert all(f"{parameter_count(part):,}" in shown for part in (nano.encoder, nano.predictor, nano.decoder))


def test_systems_are_listed_and_described(capsys):
    assert not run("systems")
    assert "gray-scott" in capsys.readouterr().out
    assert not run("systems", "brusselator")
    assert r"\partial_t u" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("simulate", "heat"), "gray-scott"),
        (("simulate", "barkley", "--regime", "ic-ood"), "id"),
        (("simulate", "barkley", "--split", "secret"), "pool"),
        (("systems", "heat"), "gray-scott"),
        (("demo", "--system", "heat"), "gray-scott"),
        (("demo", "--model", "huge"), "shipped checkpoint"),
        (("pretrain", "--preset", "huge"), "paper, small, nano"),
        (("pretrain", "--data", "nowhere"), "rdjepa simulate"),
        (("pretrain", "--ema", "0.9", "1"), "below 1"),
        (("adapt", "missing.npz"), "missing.npz"),
        (("adapt", "missing.npz", "--base", "cubic"), "none, anchored, linear"),
        (("adapt", "missing.npz", "--retain", "half"), "a number or auto"),
        (("adapt", "missing.npz", "--model", "huge"), "shipped checkpoint"),
        (("adapt", "missing.npz", "--device", "abacus"), "abacus"),
        (("pretrain", "--systems", ","), "separated by commas"),
        (("probe", "nano", "--systems", "heat"), "gray-scott"),
        (("info", "missing"), "shipped checkpoint"),
        (("evaluate", "missing.safetensors", "missing.npz"), "missing"),
    ],
)
def test_bad_input_ends_with_one_sentence_status_2_and_nothing_written(
    monkeypatch, capsys, tmp_path, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: expected")
    assert sentence in error
    assert "Traceback" not in error
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a trajectory of four frames, another of nine, and a forecaster of the latter."""
    folder = tmp_path_factory.mktemp("made")
    fields = np.random.default_rng(0).standard_normal((9, 16, 16, 2)).astype(np.float32)
    np.save(folder / "nine.npy", fields)
    np.save(folder / "four.npy", fields[:4])
    model = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16))
    rdjepa.adapt(model, fields, steps=1).save(folder / "mine.safetensors")
    return folder


@pytest.fixture
def adapted(here):
    """The nine frames, beside the rest of that folder."""
    return np.load("nine.npy")


def test_four_frames_are_enough_to_forecast(adapted):
    assert not run("forecast", "mine.safetensors", "four.npy", "--out", "four")
    assert not run("forecast", "mine.safetensors", "nine.npy", "--start", 0, "--out", "nine")
    with np.load("four") as given, np.load("nine") as same:
        assert np.array_equal(given["context"], adapted[:4])
        assert np.array_equal(given["forecast"], same["forecast"])


@pytest.mark.parametrize(
    ("command", "out", "options"),
    [
        ("forecast", "a.h5", ()),
        ("forecast", "a.NC", ()),
        ("forecast", "a.csv", ()),
        ("forecast", "a.npz", ("--all",)),
        ("forecast", "a.npy", ("--all",)),
        ("evaluate", "a.csv", ()),
        ("learning-curve", "a.json", ()),
    ],
)
def test_results_have_no_name_of_another_format(capsys, adapted, command, out, options):
    given = ("nine.npy",) if command == "learning-curve" else ("mine.safetensors", "nine.npy")
    assert run(command, *given, "--out", out, *options) == 2
    assert f"which is what is written, got {out}" in " ".join(capsys.readouterr().err.split())
    assert not Path(out).exists()


def test_a_page_has_the_name_of_one(capsys, here):
    assert run("view", "nine.npy", "--out", "page.png") == 2
    assert "a file ending on .html for a page, got page.png" in capsys.readouterr().err
    assert not Path("page.png").exists()


def test_a_forecast_of_frames_without_times_has_those_of_adaptation(adapted):
    forecaster = rdjepa.load_forecaster("mine.safetensors")
    forecaster.record.update(interval=0.5)
    forecaster.save("timed.safetensors")
    for name, times in (("mine", 9.0 + np.arange(5)), ("timed", 0.5 * (9.0 + np.arange(5)))):
        assert not run("forecast", f"{name}.safetensors", "nine.npy", "--out", name)
        with np.load(name) as found:
            assert np.allclose(found["times"], times)


def test_frames_before_the_newest_four_are_given_where_they_are_asked_for(monkeypatch, capsys, adapted):
    seen = []
    forecast = rdjepa.Forecaster.forecast

    def watched(self, given):
        seen.append(given)
        return forecast(self, given)

    monkeypatch.setattr(rdjepa.Forecaster, "forecast", watched)
    assert not run("forecast", "mine.safetensors", "nine.npy", "--context", 7, "--out", "seven")
    assert not run("forecast", "mine.safetensors", "nine.npy", "--out", "newest")
    assert "the newest 4 of 7 frames are made use of" in capsys.readouterr().out
    fields = np.load("nine.npy")
    assert [len(given) for given in seen] == [7, 4] and np.array_equal(seen[0], fields[-7:])
    with np.load("seven") as given, np.load("newest") as same:
        assert np.array_equal(given["context"], fields[-4:]) and np.array_equal(given["forecast"], same["forecast"])
    assert not run("evaluate", "mine.safetensors", "nine.npy", "--context", 7)
    assert run("forecast", "mine.safetensors", "nine.npy", "--context", 3) == 2


def test_a_rollout_is_stored_as_a_forecast_compared_and_read_again(capsys, adapted):
    command = ("forecast", "mine.safetensors", "nine.npy", "--interval", 0.5)
    assert not run(*command, "--start", 0, "--frames", 12, "--out", "long.npz")
    shown = " ".join(capsys.readouterr().out.split())
    assert "frames 4 to 15 in long.npz" in shown and "climatology" in shown and "that can be compared" in shown
    with np.load("long.npz") as long:
        assert long["forecast"].shape == (12, 16, 16, 2) and np.allclose(long["times"], 0.5 * np.arange(4, 16))
        stored = long["forecast"]
    (again,) = rdjepa.data.readers.load("long.npz")
    assert np.array_equal(again.fields, stored) and again.times[0] == 2.0
    assert not run(*command, "--frames", 7, "--out", "long.npz")
    assert "the error is unknown" in " ".join(capsys.readouterr().out.split())


def test_what_is_not_stable_is_written_with_a_warning(monkeypatch, capsys, adapted):
    forecaster = rdjepa.load_forecaster("mine.safetensors")
    forecaster.record["range"] = [[0.0, 0.0], [1e-9, 1e-9]]
    monkeypatch.setattr("rdjepa.adaptation.saving.load_forecaster", lambda path, device: forecaster)
    monkeypatch.setattr(
        type(forecaster), "_forecast", lambda self, c: np.repeat(3 * np.asarray(c)[:, -1:], 5, axis=1).astype("f4")
    )
    assert not run("forecast", "mine.safetensors", "nine.npy", "--frames", 40, "--out", "wild.npz")
    assert "not stable from frame" in capsys.readouterr().err
    with np.load("wild.npz") as wild:
        assert len(wild["forecast"]) == 40


def test_intervals_are_calibrated_kept_and_written(capsys, adapted):
    fields = np.random.default_rng(1).standard_normal((3, 30, 16, 16, 2)).astype(np.float32)
    np.save("three.npy", fields)
    forecaster = rdjepa.adapt(rdjepa.load_forecaster("mine.safetensors").model, fields[0], steps=1, hold_out=0.4)
    forecaster.save("calibrated.safetensors")
    assert not run("forecast", "calibrated.safetensors", "four.npy", "--level", 0.9, "--out", "band")
    with np.load("band") as band:
        assert (band["lower"] < band["forecast"]).all() and (band["forecast"] < band["upper"]).all()
        assert band["level"] == 0.9
    capsys.readouterr()
    for arguments, words in (
        (("mine.safetensors", "four.npy", "--level", 0.9), "a forecaster with a calibration"),
        (("calibrated.safetensors", "four.npy", "--level", 0.99), "at most 0.941"),
        (("calibrated.safetensors", "four.npy", "--level", 90), "between 0 and 1"),
        (("calibrated.safetensors", "four.npy", "--level", 0.9, "--frames", 9), "got it with 9 frames"),
        (("calibrated.safetensors", "four.npy", "--level", 0.9, "--back"), "got it with --back"),
        (("calibrated.safetensors", "four.npy", "--level", 0.9, "--all"), "expected --all alone"),
        (("calibrated.safetensors", "four.npy", "--level", 0.9, "--context", 8), "got it with a context of 8"),
        (("calibrated.safetensors", "four.npy", "--context", 8, "--all"), "expected --all alone"),
        (("calibrated.safetensors", "four.npy", "--frames", 2**31), "expected frames to be"),
    ):
        assert run("forecast", *arguments, "--out", "none") == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert not Path("none").exists()


def test_adaptation_says_what_it_was_calibrated_on(capsys, adapted, tiny):
    from rdjepa.io import checkpoint
    from rdjepa.models.rdjepa import build

    checkpoint.save(build("tiny", seed=0), Path("model"), {}, "card")
    fields = np.random.default_rng(1).standard_normal((20, tiny.grid, tiny.grid, 2)).astype(np.float32)
    np.save("large.npy", fields)
    command = ("adapt", "large.npy", "--model", "model", "--steps", 1, "--out", "f")
    assert not run(*command, "--hold-out", 0.45)
    shown = " ".join(capsys.readouterr().out.split())
    assert "calibrated on the last 9 frames, which were not adapted to: 16 blocks" in shown
    for arguments, words in (
        (("--calibrate", "large.npy"), "got 1 of 1 that are both"),
        (("--calibrate", "missing.npy"), "missing.npy"),
        (("--calibrate", "large.npy", "--hold-out", 0.4), "got both"),
        (("--hold-out", 1.5), "between 0 and 1"),
    ):
        assert run(*command[:-1], "g", *arguments) == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert not Path("g").exists()
    assert run("adapt", "nine.npy", "--calibrate", "four.npy", "--out", "four.npy") == 2
    assert "which is read here" in capsys.readouterr().err


def test_only_one_trajectory_is_forecast(capsys, adapted):
    np.save("two.npy", np.stack([adapted, adapted]))
    for given in (("two.npy",), ("four.npy", "nine.npy"), (".",)):
        out = "../future" if given == (".",) else "future"
        assert run("forecast", "mine.safetensors", *given, "--out", out) == 2
        assert "expected one trajectory to forecast, got several" in capsys.readouterr().err


def test_a_file_that_is_no_forecaster_is_answered_with_the_command_that_writes_one(capsys, adapted):
    for command in ("forecast", "evaluate"):
        assert run(command, "nine.npy", "nine.npy", "--out", "future") == 2
        assert "give a file that `rdjepa adapt` wrote" in " ".join(capsys.readouterr().err.split())


def test_an_evaluation_names_the_forecaster_of_the_file(capsys, adapted):
    assert not run("evaluate", "mine.safetensors", "nine.npy", "--out", "rows.jsonl")
    shown = capsys.readouterr().out
    assert "FNO" in shown and "RD-JEPA" not in shown
    named = [json.loads(line)["forecaster"] for line in Path("rows.jsonl").read_text().splitlines()]
    assert list(dict.fromkeys(named)) == ["fno", "persistence", "extrapolation"]


def test_an_evaluation_takes_the_metrics_that_are_named(capsys, adapted):
    command = ("evaluate", "mine.safetensors", "nine.npy", "--out", "rows.jsonl")
    assert not run(*command, "--metric", "mse", "--metric", "vrmse")
    shown = capsys.readouterr().out
    assert "mse" in shown and "relative_l2" not in shown
    metrics = [json.loads(line)["metric"] for line in Path("rows.jsonl").read_text().splitlines()]
    assert set(metrics) == {"mse", "vrmse"}
    assert run(*command, "--metric", "unknown") == 2
    assert "expected metrics among relative_l2, gradient_l1, mse, vrmse, got 'unknown'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("chosen", "passed"), [((), {}), (("--systems", "a, b"), {"systems": ["a", "b"]})], ids=["default", "named"]
)
def test_systems_of_a_pretraining_are_passed_on_when_given(monkeypatch, tmp_path, chosen, passed):
    calls = []
    monkeypatch.setattr("rdjepa.api.pretrain", lambda *_, **settings: calls.append(settings))
    assert not run("pretrain", "--out", tmp_path, *chosen)
    assert {name: value for name, value in calls[0].items() if name == "systems"} == passed


def test_a_pretraining_with_nothing_to_go_on_from_says_that_it_begins_anew(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("rdjepa.api.pretrain", lambda *_, **settings: None)
    assert not run("pretrain", "--out", tmp_path / "run", "--resume")
    assert "holds no state of a run to go on from, so it begins anew" in " ".join(capsys.readouterr().err.split())
    assert not run("pretrain", "--out", tmp_path / "run")
    assert "begins anew" not in capsys.readouterr().err


def test_adapt_evaluate_and_forecast_from_an_npz_file(monkeypatch, capsys, tmp_path, tiny):
    from rdjepa.io import checkpoint
    from rdjepa.models.rdjepa import build

    checkpoint.save(build("tiny", seed=0), tmp_path / "model", {}, "card")
    data = tmp_path / "mine.npz"
    np.savez(data, np.random.default_rng(0).standard_normal((12, tiny.grid, tiny.grid, 2)).astype(np.float32))
    out = tmp_path / "f.safetensors"
    worked_once(monkeypatch, "adapt")
    for verb in ("saved", "replaced"):
        assert not run("adapt", data, "--model", tmp_path / "model", "--steps", 1, "--out", out)
        shown = " ".join(capsys.readouterr().out.split())
        assert "1 trajectory, loss " in shown and f"; {verb} " in shown
    assert not run("evaluate", out, data, "--out", tmp_path / "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3 * 2 * 5
    shown = capsys.readouterr()
    assert "relative_l2" in shown.out
    assert shown.err.startswith("warning: expected trajectories that the forecaster has not seen, got 1 of 1 ")
    assert shown.err.count("\n") == 1
    assert not run("forecast", out, data, "--out", tmp_path / "future.npz")
    with np.load(tmp_path / "future.npz") as stored:
        assert stored["forecast"].shape == (5, tiny.grid, tiny.grid, 2)


def test_an_interrupt_says_that_the_work_is_kept(monkeypatch, capsys, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rdjepa.data.acquire.simulate", interrupted)
    monkeypatch.chdir(tmp_path)
    assert run("simulate", "schnakenberg", "--start", "999999") == 130
    said = capsys.readouterr().err
    assert "files that were finished are kept" in said
    assert "(simulate, data build, study run, learning-curve), pretrain with --resume" in said


def test_all_windows_of_several_files_go_into_one_file(monkeypatch, capsys, adapted):
    seen = []

    @contextlib.contextmanager
    def progress(label):
        yield lambda done, total, _: seen.append((done, total))

    monkeypatch.setattr("rdjepa.cli.forecasts.progress", progress)
    command = ("forecast", "mine.safetensors", "nine.npy", "four.npy", "--all", "--out", "all.h5")
    assert not run(*command) and seen == [(1, 2), (2, 2)]
    assert not run(*command)  # its own output is replaced
    assert "7 forecasts of 2 trajectories in all.h5" in capsys.readouterr().out
    assert run(*command, "--start", 1) == 2
    assert "expected --all alone" in capsys.readouterr().err
    assert not run("forecast", "mine.safetensors", "nine.npy")
    one = Path("forecast.npz").read_bytes()
    assert not run("forecast", "mine.safetensors", "nine.npy", "--all")  # each has a name of its own
    assert Path("forecast.npz").read_bytes() == one and Path("forecasts.h5").read_bytes()[1:4] == b"HDF"
    for arguments in (("--all", "--out", "forecast.npz"), ("--out", "forecasts.h5")):
        assert run("forecast", "mine.safetensors", "nine.npy", *arguments) == 2
        assert "--force" in capsys.readouterr().err
    assert run("forecast", "mine.safetensors", "nine.npy", "--all", "--out", "nine.npy") == 2


def test_a_forecaster_leaves_as_a_program(capsys, adapted):
    assert not run("export", "mine.safetensors")
    assert Path("mine.pt2").is_file() and "(B, 4, H, W, 2)" in " ".join(capsys.readouterr().out.split())
    for arguments, words in (
        (("mine.safetensors",), "--force"),
        (("mine.safetensors", "--out", "mine.safetensors", "--force"), "is read here"),
        (("mine.safetensors", "--format", "tflite"), "torch, onnx"),
        (("nine.npy", "--out", "x.pt2"), "rdjepa adapt"),
        ((".",), "checkpoint file"),
    ):
        assert run("export", *arguments) == 2
        assert words in capsys.readouterr().err
    assert not Path("x.pt2").exists()


def test_a_page_of_a_forecaster_and_of_data_alone(capsys, adapted):
    pytest.importorskip("bokeh", reason="the extra `view` is not installed")
    assert not run("view", "mine.safetensors", "nine.npy")
    assert not run("view", "nine.npy")  # its own page is replaced
    np.save("last.npy", np.moveaxis(np.load("nine.npy"), 0, -1))
    assert not run("view", "last.npy", "--axes", "y x c t")
    assert not run("forecast", "mine.safetensors", "nine.npy")
    assert not run("view", "forecast.npz")  # of five frames
    assert "view.html" in capsys.readouterr().out
    Path("other.html").write_text("mine")
    for arguments, words in (
        (("mine.safetensors",), "after the forecaster"),
        (("nine.npy", "--resample"), "leave --resample out"),
        (("mine.safetensors", "four.npy"), "at least 9 frames"),
        (("nine.npy", "--out", "nine.npy"), "is read here"),
        (("nine.npy", "--out", "other.html"), "--force"),
    ):
        assert run("view", *arguments) == 2
        assert words in capsys.readouterr().err


def test_a_learning_curve_prints_a_table_and_advice_and_goes_on(monkeypatch, capsys, tmp_path, tiny):
    from rdjepa.io import checkpoint
    from rdjepa.models.rdjepa import build

    monkeypatch.chdir(tmp_path)
    checkpoint.save(build("tiny", seed=0), tmp_path / "model", {}, "card")
    np.save("mine.npy", np.random.default_rng(0).standard_normal((2, 9, tiny.grid, tiny.grid, 2)).astype(np.float32))
    command = ("learning-curve", "mine.npy", "--model", "model", "--steps", 1, "--draws", 1)
    for _ in range(2):
        assert not run(*command)
        shown = " ".join(capsys.readouterr().out.split())
        for words in (
            "draw 1, K = 1: scratch",
            "Linear extrapolation",
            "Equation",
            "figure in learning-curve.png",
        ):
            assert words in shown
    rows = Path("learning-curve.csv").read_text().splitlines()
    assert rows[0].startswith("forecaster,k,draw,horizon,value") and len(rows) == 1 + 7 * 5
    assert Path("learning-curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_first_look_goes_from_a_file_to_forecaster_forecast_and_figure(monkeypatch, capsys, tmp_path, tiny):
    from rdjepa.adaptation.saving import load_forecaster
    from rdjepa.io import checkpoint
    from rdjepa.models.rdjepa import build

    monkeypatch.chdir(tmp_path)
    checkpoint.save(build("tiny", seed=0), tmp_path / "model", {}, "card")
    np.save("mine.npy", np.random.default_rng(0).standard_normal((24, 24, 24, 2)).astype(np.float32))
    command = ("first-look", "mine.npy", "--model", "model", "--steps", 1, "--level", 0.875)
    worked_once(monkeypatch, "first_look")
    assert not run(*command)
    printed = capsys.readouterr()
    shown = " ".join(printed.out.split())
    for words in (
        "on what was held out",
        "Linear extrapolation",
        "calibrated on the last 10 frames",
        "87.5% intervals",
    ):
        assert words in shown
    assert printed.err.count("refined by Fourier series") == 1
    assert not run(*command)  # its own files are made again
    with np.load("first-look/forecast.npz") as stored:
        assert stored["forecast"].shape == stored["lower"].shape == (5, tiny.grid, tiny.grid, 2)
        assert stored["times"].tolist() == [24, 25, 26, 27, 28] and float(stored["level"]) == 0.875
    assert load_forecaster("first-look/forecaster.safetensors").calibration
    assert Path("first-look/forecast.png").read_bytes().startswith(b"\x89PNG")


def test_a_first_look_writes_nothing_where_something_is_wrong(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("short.npy", np.random.default_rng(0).standard_normal((12, 64, 64, 2)).astype(np.float32))
    Path("taken").mkdir()
    Path("taken/forecast.png").write_bytes(b"mine")
    for arguments, words in (
        (("short.npy",), "at least 9 frames to adapt to and 9 to hold out, got 7 and 5"),
        (("short.npy", "--hold-out", "2"), "between 0 and 1"),
        (("short.npy", "--out", "taken"), "--force"),
        (("none.npy",), "none.npy"),
    ):
        assert run("first-look", *arguments) == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert sorted(path.name for path in Path().rglob("*")) == ["forecast.png", "short.npy", "taken"]


def test_a_learning_curve_replaces_no_file_of_another_kind(capsys, adapted):
    Path("rows.csv").write_text("a,b\n1,2\n")
    Path("other.png").write_bytes(b"mine")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    for arguments, words in (
        (("--out", "rows.csv"), "--force"),
        (("--out", "other.csv"), "other.png"),
        (("--out", "curve.png"), "end it in .csv"),
        (("--out", "."), "got the directory ."),
        (("--out", "nine.npy"), "is read here"),
        (("--stride", "half"), "expected a stride"),
        (("--base", "cubic"), "none, anchored, linear"),
        (("--device", "none such"), "device auto, cpu"),
        ((), "64 x 64 grid"),
    ):
        assert run("learning-curve", "nine.npy", *arguments) == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_stride_is_kept_and_taken_by_evaluation_and_forecast(capsys, adapted):
    from rdjepa.adaptation.saving import load_forecaster

    long = np.random.default_rng(1).standard_normal((20, 16, 16, 1)).astype(np.float32)
    np.save("long.npy", long)
    forecaster = load_forecaster("mine.safetensors")
    forecaster.record.update(stride=2, measured=1)
    forecaster.save("every-second.safetensors")
    assert not run("forecast", "every-second.safetensors", "long.npy")
    assert "one of every 2 frames is taken, 10 of 20" in capsys.readouterr().err
    with np.load("forecast.npz") as stored:
        np.testing.assert_array_equal(stored["context"], np.concatenate([long[-7::2], long[-9:-1:2]], axis=-1))
    assert not run("evaluate", "every-second.safetensors", "long.npy")
    assert "one of every 2 frames" in capsys.readouterr().err
