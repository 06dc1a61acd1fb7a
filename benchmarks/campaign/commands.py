"""The commands that are killed, cut off from disk or run twice: arguments, inputs and what counts as finished."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign import sandbox, small

DATA = "data"  # pool and validation trajectories, made once
SYSTEM = ("--systems", small.SYSTEM)
FIRST, SECOND = (f"{{inputs}}/data/turning/data/train/id-0000{number}.hdf5" for number in (0, 1))


@dataclass(frozen=True)
class Command:
    """A command of rdjepa on small data.

    Attributes:
        name: in the table.
        arguments: with {inputs} and {out} for the two folders; outputs go below {out}.
        again: arguments that are added when it is run again.
        needs: names of the commands whose outputs it reads, in {inputs}.
        results: pattern of the files that stay once they are finished: a second run may not make them again.
        alone: whether it always runs as a process of its own, since it starts processes.
    """

    name: str
    arguments: tuple[str, ...]
    again: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    results: str = ""
    alone: bool = False

    def filled(self, inputs: Path, out: Path, again: bool = False) -> list[str]:
        """Return the arguments with the folders in place."""
        given = self.arguments + (self.again if again else ())
        return [each.replace("{inputs}", str(inputs)).replace("{out}", str(out)) for each in given]


def _to(name: str) -> tuple[str, str]:
    return "--out", f"{{out}}/{name}"


def _study(verb: str, *more: str) -> tuple[str, ...]:
    return ("study", verb, small.STUDY, "--profile", small.PRESET, *more)


PRETRAIN = ("pretrain", "--preset", small.PRESET, "--data", "{inputs}/data", *SYSTEM, "--out", "{out}")
BUILD = ("data", "build", *SYSTEM, "--splits", "pool,validation,test", "--count", "8", "--out", "{out}")
COMMANDS = {
    command.name: command
    for command in (
        Command("simulate", ("simulate", small.SYSTEM, "--count", "12", "--out", "{out}"), results="*.hdf5"),
        Command("data build", BUILD, results="*.hdf5"),
        Command("data build, two workers", (*BUILD, "--workers", "2"), results="*.hdf5", alone=True),
        Command("data add", ("data", "add", FIRST, SECOND, "--name", "mine", "--out", "{out}"), needs=(DATA,)),
        Command("pretrain", PRETRAIN, ("--resume",), (DATA,), "state"),
        Command(
            "adapt",
            ("adapt", FIRST, "--model", "{inputs}/pretrain/model", "--steps", "4", *_to("forecaster.safetensors")),
            needs=(DATA, "pretrain"),
        ),
        Command("study run", _study("run", "--root", "{out}"), results="record.json"),
        Command("export", ("study", "export", "--root", "{inputs}/study run", "--out", "{out}"), needs=("study run",)),
    )
}
# Needed by others and short: also in the other parts of the campaign.
_READ = ("{inputs}/adapt/forecaster.safetensors", SECOND)
FORECAST = Command("forecast", ("forecast", *_READ, *_to("forecast.npz")), needs=(DATA, "adapt"))
EVALUATE = Command("evaluate", ("evaluate", *_READ, *_to("rows.jsonl")), needs=(DATA, "adapt"))
CURVE = Command(
    "learning-curve",
    ("learning-curve", FIRST, SECOND, "--model", "{inputs}/pretrain/model", "--steps", "2", *_to("curve.csv")),
    needs=(DATA, "pretrain"),
)
LOOK = Command(
    "first-look",
    ("first-look", FIRST, SECOND, "--model", "{inputs}/pretrain/model", "--steps", "2", *_to("look")),
    needs=(DATA, "pretrain"),
)
EVERY = {**COMMANDS, "forecast": FORECAST, "evaluate": EVALUATE, "learning-curve": CURVE, "first-look": LOOK}


def run(arguments: Sequence[str], said: Path, **options) -> sandbox.Ended:
    """Run a command in a fork to its end."""
    options = {"seconds": 120, "memory": None} | options
    return sandbox.forked(sandbox.command(list(arguments)), said, **options)


def prepare(inputs: Path, names: Sequence[str], say: Callable[[str], None] = print) -> None:
    """Make the inputs that some commands need, each by its own command, unless they are there."""
    inputs.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (inputs / name).exists():
            continue
        made = inputs / f".{name}"
        shutil.rmtree(made, ignore_errors=True)
        if name == DATA:
            steps = [
                ["simulate", small.SYSTEM, "--split", split, "--count", count, "--out", str(made)]
                for split, count in (("pool", "4"), ("validation", "2"))
            ]
        else:
            prepare(inputs, EVERY[name].needs, say)
            steps = [EVERY[name].filled(inputs, made)]
        for arguments in steps:
            ended = run(arguments, inputs / ".said")
            if ended.status:
                raise RuntimeError(f"{name} ended with {ended.status}: {ended.text}")
        made.rename(inputs / name)
        say(f"made {name}")
