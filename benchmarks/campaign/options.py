"""Options of every command with values that nobody should give; the commands are asked for their options."""

import os
import random
import shutil
import stat
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign import sandbox, small
from campaign.answers import of_command
from campaign.commands import EVERY
from campaign.trial import SILENT, WELL, Trial

NUMBERS = (
    "",
    "-1",
    "0",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    str(10**30),
    str(-(10**30)),
    "0x10",
    "١",
    "2147483648",
    "1_0",
)
TEXTS = (
    "", " ", ",", ".", "..", "-", "nan", "a" * 300, "a" * 5000, "é" * 200, "\n", "\x1b[31mred", "‮abc", "a,b,,c", "%s%n",
    "$(id)", "a b", "turning,turning", "{}", "auto:7", "cpu:7", "cuda:99", "meta", "tcp://nowhere:1", "key=value",
    "k=1,k=",
)  # fmt: skip
# Paths, below the folder that the command runs in: a folder, a file, a device, and what cannot be made.
PATHS = (
    "", ".", "folder", "file", "file/below", "null", "fifo", "a" * 300, "é" * 200, "a/" * 2000, "new\nline", "loop",
    "-", "~", "/proc/self/mem", "/proc/new", "missing",
)  # fmt: skip
NONSENSE = ("", "-1", "nan", "inf", "-inf", "1e400", str(-(10**30)))  # that no number of things can be
ENDLESS = ("steps", "updates")  # who asks for a great number of these gets them
LONG = ("scheduler", "workers", "export", "first-look", "learning-curve")  # options and commands that take over 20 s


def trials(work: Path, rng: random.Random, share: float = 1.0) -> Iterator[Trial]:
    """Replace every option and argument of every command by every hostile value, or a share of them."""
    every = [
        (name, parameter, kind, value)
        for name, command in _commands().items()
        for parameter, kind in _parameters(command)
        for value in _values(kind)
        if not (parameter.name in ENDLESS and value in (str(10**30), "2147483648"))
    ]
    chosen = every if share >= 1 else rng.sample(every, max(1, round(len(every) * share)))
    for name, parameter, kind, value in chosen:
        yield _trial(work, name, parameter, kind, value)


def _trial(work: Path, name: str, parameter: Any, kind: str, value: str) -> Trial:
    folder = work / "here"
    shutil.rmtree(folder, ignore_errors=True)
    _furnish(folder)
    arguments = _arguments(name, parameter, value, work / "inputs")
    before = sorted(str(path) for path in folder.rglob("*"))
    seconds = 60 if parameter.name in LONG or name in LONG else 20
    ended = sandbox.forked(sandbox.command(arguments), work / "said", seconds, inside=folder)
    after = sorted(str(path) for path in folder.rglob("*"))
    outcome, said = of_command(ended)
    if outcome == WELL and not ended.status and _is_number(kind) and value in NONSENSE + ("1.5",) * ("int" in kind):
        outcome, said = SILENT, "accepted"
    if outcome == WELL and ended.status == 2 and after != before:
        outcome, said = SILENT, f"it wrote {sorted(set(after) - set(before))[:1]} and refused: {said}"
    done = f"{name}, {parameter.name} {value[:60]!r}"
    return Trial(
        "hostile", "options", done, outcome, said[:300], round(ended.seconds, 3), {"megabytes": ended.megabytes}
    )


def _commands() -> dict[str, Any]:
    """Return every command by its words."""
    import typer.main

    from rdjepa.cli.main import app

    found: dict[str, Any] = {}

    def walk(command: Any, words: str) -> None:
        if hasattr(command, "commands"):
            for name, each in command.commands.items():
                walk(each, f"{words} {name}".strip())
        else:
            found[words] = command

    walk(typer.main.get_command(app), "")
    return found


def _parameters(command: Any) -> list[tuple[Any, str]]:
    """Return the options and arguments of a command, each with its type."""
    hints = typing.get_type_hints(command.callback)
    return [(each, str(hints[each.name])) for each in command.params]


def _values(kind: str) -> tuple[str, ...]:
    """Return hostile values of a type, as the text of an annotation."""
    if "bool" in kind:
        return ()
    return NUMBERS if _is_number(kind) else PATHS if "Path" in kind else TEXTS


def _is_number(kind: str) -> bool:
    return "int" in kind or "float" in kind


def _arguments(name: str, parameter: Any, value: str, inputs: Path) -> list[str]:
    """Return the words of a short run of a command with one value replaced."""
    study = [small.STUDY, "--profile", small.PRESET]
    data = str(inputs / "data")
    short: dict[str, list[str]] = {  # of a command that is not listed its own defaults are taken
        "systems": ["turning"],
        "simulate": ["turning"],
        "adapt": [*EVERY["adapt"].filled(inputs, Path())[1:], "--steps", "1"],
        "evaluate": EVERY["evaluate"].filled(inputs, Path())[1:],
        "forecast": EVERY["forecast"].filled(inputs, Path())[1:],
        "learning-curve": [*EVERY["learning-curve"].filled(inputs, Path())[1:], "--draws", "1"],
        "first-look": [*EVERY["first-look"].filled(inputs, Path())[1:], "--steps", "1"],
        "demo": ["--system", "none such"],  # what is checked before that
        "info": [],
        "inspect": [data + "/turning/data/train/id-00000.hdf5"],
        "view": [data + "/turning/data/train/id-00000.hdf5"],
        "export": [str(inputs / "adapt" / "forecaster.safetensors")],
        "new-system": ["mine"],
        "check-system": [small.SYSTEM, "--draws", "1", "--seconds", "1"],
        "data build": ["--systems", small.SYSTEM, "--count", "1", "--out", "built"],
        "data verify": [str(inputs / "build")],
        "data card": ["copy"],
        "data sample": [str(inputs / "build"), "--out", "sample"],
        "pretrain": [*EVERY["pretrain"].filled(inputs, Path("run"))[1:], "--steps", "1"],
        "probe": [
            str(inputs / "pretrain" / "model"),
            "--data",
            data,
            "--systems",
            "turning",
            "--train",
            "5",
            "--test",
            "2",
        ],
        "study run": [*study, "--only", "forecaster=persistence,support_seed=1"],
        "study plan": [*study, "--only", "forecaster=persistence"],
        "study status": [*study, "--root", str(inputs / "study run")],
        "study export": ["--root", str(inputs / "study run")],
        **{f"study {verb}": [*study, "--root", str(inputs / "study run")] for verb in ("tables", "figures", "report")},
    }
    words = short.get(name, [])[:]
    if parameter.param_type_name == "argument":
        return [*name.split(), *words[1:], "--", value]  # the first word is the argument
    option = parameter.opts[0]
    if option in words:
        at = words.index(option)
        del words[at : at + 2]
    return [*name.split(), *words, option, *([value] if parameter.nargs < 2 else [value, "0.9"])]


def _furnish(folder: Path) -> None:
    """Make what the paths of `PATHS` lead to."""
    folder.mkdir(parents=True)
    (folder / "folder").mkdir()
    (folder / "file").write_text("text")
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    if not os.geteuid():
        os.mknod(folder / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # not /dev/null itself, which root may lose
