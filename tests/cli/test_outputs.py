"""Commands never replace what they read, nor a file that another command made."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest

import rdjepa
from rdjepa.cli import main as cli
from rdjepa.data import store
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError
from rdjepa.forecasters import build
from rdjepa.forecasters.fno import Config
from rdjepa.io.tensors import save_tensors


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with one trajectory and one forecaster of it."""
    folder = tmp_path_factory.mktemp("made")
    fields = np.random.default_rng(0).standard_normal((10, 16, 16, 2)).astype("float32")
    np.save(folder / "data.npy", fields)
    model = build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16))
    rdjepa.adapt(model, fields, steps=1).save(folder / "mine.safetensors")
    return folder


def run(*arguments):
    """The exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return ended.value.code


def refused(capsys, *arguments):
    """Run a command that must end with one sentence and exit status 2; every file stays as it was."""
    before = {path: path.read_bytes() for path in sorted(path for path in Path().rglob("*") if path.is_file())}
    assert run(*arguments) == 2
    assert {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()} == before
    return capsys.readouterr().err


COMMANDS = (
    ("adapt", "data.npy", "--steps", "1"),
    ("forecast", "mine.safetensors", "data.npy"),
    ("evaluate", "mine.safetensors", "data.npy"),
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_output_that_is_an_input_is_refused_even_when_forced(here, capsys, command, force):
    for out in [each for each in command if "." in each]:
        for spelled in (out, f"./{out}", str(here / out)):
            assert "which is read here" in refused(capsys, *command, "--out", spelled, *force)
    (here / "link").hardlink_to(here / "data.npy")
    assert "which is read here" in refused(capsys, *command, "--out", "link", *force)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_inside_a_directory_of_data_that_is_read_is_refused(here, capsys, command):
    (here / "folder").mkdir()
    (here / "data.npy").rename(here / "folder" / "data.npy")
    command = [each.replace("data.npy", "folder") for each in command]
    for out in ("folder/data.npy", "folder/new", "folder/below/new"):
        assert "which is read here" in refused(capsys, *command, "--out", out)
    assert not (here / "folder" / "below").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_another_kind_is_replaced_only_when_forced(here, capsys, command):
    (here / "notes.txt").write_text("three years of work")
    assert "replace it with --force" in refused(capsys, *command, "--out", "notes.txt")
    assert "name a file in it" in refused(capsys, *command, "--out", ".")


def test_what_a_command_made_it_may_make_again(here):
    for _ in range(2):
        assert not run("forecast", "mine.safetensors", "data.npy", "--out", "future")
        assert not run("evaluate", "mine.safetensors", "data.npy", "--out", "rows")
    with np.load("future") as made:
        assert made["forecast"].shape == (5, 16, 16, 2)
    assert json.loads((here / "rows").read_text().splitlines()[0])["metric"] == "relative_l2"
    (here / "notes.txt").write_text("nothing of use")
    assert not run("forecast", "mine.safetensors", "data.npy", "--out", "notes.txt", "--force")
    assert rdjepa.load_forecaster("mine.safetensors").record["forecaster"] == "fno"


def test_files_that_only_look_alike_are_of_another_kind(here, capsys):
    space = rdjepa.load_forecaster("mine.safetensors").model.get_buffer("space")
    save_tensors(here / "state", {"a": space}, {"step": 3})
    assert "--force" in refused(capsys, "adapt", "data.npy", "--out", "state")
    np.savez(here / "mine.npz", fields=np.zeros(3))
    assert "--force" in refused(capsys, "forecast", "mine.safetensors", "data.npy", "--out", "mine.npz")
    (here / "table.jsonl").write_text('{"value": 1}\n')
    assert "--force" in refused(capsys, "evaluate", "mine.safetensors", "data.npy", "--out", "table.jsonl")


@pytest.mark.parametrize("command", [*COMMANDS, ("first-look", "data.npy"), ("learning-curve", "data.npy")])
def test_an_output_that_cannot_be_written_is_refused_before_any_work(here, capsys, monkeypatch, command):
    for name in ("rdjepa.api.adapt", "rdjepa.api.evaluate", "rdjepa.api.first_look", "rdjepa.api.learning_curve"):
        monkeypatch.delattr(name)
    monkeypatch.delattr("rdjepa.data.readers.load")
    for out in ("data.npy/sub/made", "data.npy/made"):
        assert "a file where a directory is needed; choose another path" in refused(capsys, *command, "--out", out)


def test_a_folder_of_results_that_cannot_be_written_is_refused_before_any_is_read(here, capsys, monkeypatch):
    monkeypatch.delattr("rdjepa.study.collect.collect")
    for verb in ("tables", "figures", "report"):
        said = refused(capsys, "study", verb, "heldout", "--out", "data.npy")
        assert "a file where a directory is needed; choose another path" in said


def test_a_folder_without_permission_is_refused_before_any_work(here, capsys, monkeypatch):
    monkeypatch.delattr("rdjepa.api.adapt")

    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "locked")

    monkeypatch.setattr("rdjepa.io.atomic.Path.touch", forbidden)
    said = refused(capsys, "adapt", "data.npy", "--out", "new/folder/f.safetensors")
    assert said.endswith("new/folder/f.safetensors, got no permission; write elsewhere\n")
    assert not (here / "new").exists()


def test_a_forced_learning_curve_passes_that_on(here, capsys, monkeypatch):
    def ended(*_, out, force, **__):
        raise DataError(f"expected a, got {out} {force}; do c")

    monkeypatch.setattr("rdjepa.api.learning_curve", ended)
    (here / "rows.csv").write_text("a,b\n")
    assert "rows.csv True" in refused(capsys, "learning-curve", "data.npy", "--out", "rows.csv", "--force")


def test_a_demonstration_replaces_its_own_files_alone(here, capsys, monkeypatch):
    def begun(*_):
        raise DataError("begun")

    monkeypatch.setattr("rdjepa.demo._simulated", begun)
    for name in ("result.json", "curve.png", "forecast.png", "forecast.gif", "forecaster.safetensors"):
        (here / name).write_text('{"config": 1}')
        assert f"got {name}; choose another --out, or move it away" in refused(capsys, "demo", "--out", ".")
        (here / name).unlink()
    parts = ("config", "support", "test", "windows_per_trajectory", "errors", "seconds")
    (here / "result.json").write_text(json.dumps(dict.fromkeys(parts, 1)))
    (here / "curve.png").write_bytes(b"of the demonstration")
    (here / "forecaster.safetensors").write_bytes(b"of nobody")
    assert "got forecaster.safetensors; choose" in refused(capsys, "demo", "--out", ".")
    (here / "mine.safetensors").replace(here / "forecaster.safetensors")
    assert refused(capsys, "demo", "--out", ".") == "error: begun\n"


def test_what_is_made_to_try_an_output_is_removed(here, capsys):
    assert "expected a share" in refused(capsys, "adapt", "data.npy", "--out", "new/folder/f", "--retain", "half")
    assert not (here / "new").exists()


@pytest.mark.parametrize(("option", "bad"), [("--retain", "half"), ("--stride", "many")])
def test_bad_options_are_refused_before_anything_is_simulated(here, capsys, monkeypatch, option, bad):
    monkeypatch.delattr("rdjepa.api.rehearsal")
    assert f"got '{bad}'" in refused(capsys, "adapt", "data.npy", "--rehearse", "1", option, bad)


def test_what_is_rehearsed_is_read_from_a_data_set(here, capsys, monkeypatch):
    def rehearsal(model, count, data, progress):
        raise DataError(f"{model} {count} {data}")

    monkeypatch.setattr("rdjepa.api.rehearsal", rehearsal)
    monkeypatch.setattr("rdjepa.api.adapt", lambda *_, rehearse, **__: rehearse())
    given = ("--model", "nano", "--rehearse", "2", "--rehearse-data", "sets")
    assert "nano 2 sets" in refused(capsys, "adapt", "data.npy", *given)
    assert "expected --rehearse with" in refused(capsys, "adapt", "data.npy", "--rehearse-data", "sets")


def test_trajectories_that_share_their_place_are_numbered_in_their_order(here, capsys):
    fields = np.random.default_rng(1).standard_normal((3, 10, 16, 16, 2)).astype("float32")
    keys = [Key("barkley", "pool"), Key("barkley", "test"), Key("schnakenberg", "pool", index=3)]
    every = [Trajectory(part, np.arange(10.0), key=key) for part, key in zip(fields, keys, strict=True)]
    paths = [str(store.write(here / "data", trajectory)) for trajectory in every]
    assert not run("evaluate", "mine.safetensors", *paths, "--out", "rows")
    rows = [json.loads(line) for line in (here / "rows").read_text().splitlines()]
    assert {(row["regime"], row["trajectory"]) for row in rows} == {("", 0), ("", 1), ("", 2)}
    assert "rows number them by position" in capsys.readouterr().err
    assert not run("evaluate", "mine.safetensors", *paths[1:], "--out", "rows")
    rows = [json.loads(line) for line in (here / "rows").read_text().splitlines()]
    assert {(row["regime"], row["trajectory"]) for row in rows} == {("id", 0), ("id", 3)}


def test_evaluate_takes_the_components_of_a_forecaster_once(here, capsys):
    fields = np.random.default_rng(2).standard_normal((2, 10, 16, 16, 3)).astype("float32")
    for name, each in zip(("first.npy", "second.npy"), fields, strict=True):
        np.save(name, each)
    model = build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16))
    reading = rdjepa.Reading(components=(2, 0))
    forecaster = rdjepa.adapt(model, "first.npy", steps=1, reading=reading)
    forecaster.save("chosen.safetensors")
    assert not run("evaluate", "chosen.safetensors", "second.npy", "--out", "rows")
    assert capsys.readouterr().err.count("components 2, 0 are taken") == 1
    rows = [json.loads(line) for line in Path("rows").read_text().splitlines()]
    own = [row["value"] for row in rows if row["forecaster"] == "fno"]
    assert own == [row.value for row in rdjepa.evaluate(forecaster.forecast, fields[1][..., [2, 0]])]


def test_rows_are_written_before_they_are_summarized(here, monkeypatch):
    def failing(*_):
        raise DataError("expected a, got b; do c")

    monkeypatch.setattr("rdjepa.evaluation.aggregate.per_horizon", failing)
    assert run("evaluate", "mine.safetensors", "data.npy", "--out", "rows") == 2
    assert len((here / "rows").read_text().splitlines()) == 3 * 2 * 5


def test_a_first_look_is_written_before_it_is_summarized(here, monkeypatch):
    def failing(*_):
        raise DataError("expected a, got b; do c")

    monkeypatch.setattr("rdjepa.cli.look.say_width", failing)
    np.save("long.npy", np.random.default_rng(0).standard_normal((24, 16, 16, 2)).astype("float32"))
    assert run("first-look", "long.npy", "--model", "linear", "--out", "look") == 2
    assert len(list((here / "look").iterdir())) == 3


@pytest.mark.parametrize(
    ("out", "reason"),
    [("loop", "a loop of links"), ("loop/mine.safetensors", "a file where a directory is needed")],
)
@pytest.mark.parametrize("source", ["data.npy", "folder"])
def test_a_loop_of_links_is_refused(here, capsys, source, out, reason):
    (here / "loop").symlink_to("loop")
    (here / "folder").mkdir()
    (here / "folder" / "data.npy").write_bytes((here / "data.npy").read_bytes())
    assert f"{reason}; choose another path" in refused(capsys, "adapt", source, "--steps", "1", "--out", out)


def test_probes_that_cannot_be_written_are_refused_before_any_is_fitted(here, capsys):
    for out, words in (("data.npy", "a file where a directory is needed"), ("taken", "got the directory")):
        Path("taken/probes.json").mkdir(parents=True, exist_ok=True)
        assert words in refused(capsys, "probe", "no-such-model", "--out", out)
