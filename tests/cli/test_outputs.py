"""Commands never replace what they read, nor a file that another command made."""

import json
from pathlib import Path

import numpy as np
import pytest

import rdjepa
from rdjepa.cli import main as cli
from rdjepa.forecasters import build
from rdjepa.forecasters.fno import Config
from rdjepa.io.tensors import save_tensors


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with one trajectory and one forecaster of it."""
    monkeypatch.chdir(tmp_path)
    fields = np.random.default_rng(0).standard_normal((10, 16, 16, 2)).astype("float32")
    np.save("data.npy", fields)
    model = build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16))
    rdjepa.adapt(model, fields, steps=1).save("mine.safetensors")
    return tmp_path


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
    assert "which is read here" in refused(capsys, *command, "--out", "folder/data.npy")


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
