"""A trial, its outcomes, and the file of all trials: one JSON line each."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# Outcomes, the good one first; the others are the columns of the table.
WELL = "well"
LOST, HALF, BITS, SILENT, CRASH, HANG, TRACEBACK, RAW, STATUS, LEFT, SLOW = BAD = (
    "lost",  # a finished result that was there before is gone or was made again
    "half written",  # a file under its final name that is not whole
    "different bits",  # after the same command ran again: another content than without the kill
    "silent",  # damage or nonsense that was accepted
    "crash",  # ended by a signal that nobody sent
    "hang",
    "traceback",  # an error that is none of rdjepa.errors
    "raw message",  # exit status 2 or an error of rdjepa, without a sentence "expected ..., got ..."
    "wrong status",
    "left over",  # temporary files or processes that remain after the second run
    "slow",  # more seconds than a user waits
)


@dataclass(frozen=True)
class Trial:
    """One trial.

    Attributes:
        part: "kills", "damage", "hostile", "resources" or "load".
        target: the command, or the kind of file or input.
        done: what was done to it, enough to do it again.
        outcome: `WELL` or one of `BAD`.
        said: the last line of the answer, or what was wrong.
        seconds: wall clock.
        figures: measured numbers, such as megabytes.
    """

    part: str
    target: str
    done: str
    outcome: str
    said: str = ""
    seconds: float = 0.0
    figures: Mapping[str, Any] = field(default_factory=dict)


class Log:
    """The trials of a campaign, appended to a file as they end.

    Args:
        path: file of JSON lines.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.trials = path, list[Trial]()
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, trial: Trial) -> None:
        """Append a trial; print one that did not go well."""
        self.trials.append(trial)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(trial)) + "\n")
        if trial.outcome != WELL:
            print(f"{trial.outcome}: {trial.part}, {trial.target}: {trial.done}: {trial.said[:300]}", flush=True)


def read(path: Path) -> list[Trial]:
    """Read the trials of a file that `Log` wrote."""
    return [Trial(**json.loads(line)) for line in path.read_text().splitlines()]
