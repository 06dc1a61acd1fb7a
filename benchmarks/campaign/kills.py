"""Kills: a command ends by a signal at a random moment, then the same command runs again to its end.

What the second run leaves is compared with that of an undisturbed run, file by file; between the two runs every file
under its final name has to be whole, and what was finished then may not be made again.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from campaign import sandbox
from campaign.commands import COMMANDS, Command, prepare, run
from campaign.content import HalfWrittenError, content, is_temporary, temporary, visible
from campaign.trial import BITS, HALF, HANG, LEFT, LOST, STATUS, TRACEBACK, WELL, Trial
from rdjepa.io.atomic import RECENT

SIGNALS = {signal.SIGKILL: (-9,), signal.SIGTERM: (-15, 143), signal.SIGINT: (130,)}
ENDS = 20  # seconds in which a killed command has to be gone; one that starts workers waits until they have begun
ENDS_ALONE = 60
PART = "kills"
# Trials of a whole campaign, by command.
SHARES = {
    "simulate": 60,
    "data build": 60,
    "data build, two workers": 12,
    "data add": 40,
    "pretrain": 50,
    "adapt": 50,
    "study run": 50,
    "export": 40,
}


class Target:
    """A command with its inputs and the outcome of an undisturbed run.

    Args:
        command: what is killed.
        work: folder for inputs, outputs and texts.
    """

    def __init__(self, command: Command, work: Path) -> None:
        self.command, self.work, self.inputs = command, work, work / "inputs"
        prepare(self.inputs, command.needs)
        known = self.inputs / command.name  # what the same command left undisturbed for another part
        self.seconds = []
        found = [_contents(known)] if known.exists() else []
        while len(found) < 2:
            out = self.fresh()
            ended = self.run(command.filled(self.inputs, out))
            if ended.status:
                raise RuntimeError(f"{command.name} ended with {ended.status} undisturbed: {ended.text}")
            self.seconds.append(ended.seconds)
            found.append(_contents(out))
        self.reference = found[0]
        different = sorted(name for name in found[0] if found[0][name] != found[1].get(name))
        if different or len(found[0]) != len(found[1]):
            raise RuntimeError(f"two undisturbed runs of {command.name} differ in {different}")

    def run(self, arguments: list[str]) -> sandbox.Ended:
        """Run the command undisturbed to its end."""
        said = self.work / "said2"
        if not self.command.alone:
            return run(arguments, said)
        began = time.perf_counter()
        status, text, _ = _alone(arguments, said, 0, 120)
        return sandbox.Ended(-9 if status is None else status, text, time.perf_counter() - began, 0, status is None)

    def fresh(self) -> Path:
        """Return an empty output folder."""
        out = self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return out

    def finished(self, out: Path) -> dict[str, object]:
        """Return what is finished in an output folder, by name, with a sign that changes when it is made again."""
        if self.command.results == "state":
            steps = [int(path.stem.split("-")[1]) for path in (out / "state").glob("step-*.safetensors")]
            log = out / "metrics.jsonl"
            # The lines hold the speed, which differs when a step is made again.
            lines = log.read_text().splitlines() if steps and log.exists() else []
            return {line: 0 for line in lines if _step(line) <= max(steps)}
        pattern = self.command.results or "*.nothing"
        return {name: path.stat().st_ino for name, path in visible(out).items() if path.match(pattern)}

    def judge(self, out: Path, between: dict[str, object]) -> tuple[str, str]:
        """Compare an output folder after the second run; return the outcome and what is wrong."""
        now = self.finished(out)
        lost = [name for name, sign in between.items() if now.get(name) != sign]
        if lost:
            return LOST, f"{len(lost)} of {len(between)} finished results, such as {lost[0]}"
        files = visible(out)
        for name in sorted(self.reference.keys() - files.keys()):
            return LOST, f"no {name}"
        for name, expected in self.reference.items():
            try:
                found = content(files[name])
            except HalfWrittenError as error:
                return HALF, str(error)
            if found != expected:
                return BITS, name
        left = temporary(out) + sorted(name for name in files.keys() - self.reference.keys())
        return (LEFT, ", ".join(left[:3])) if left else (WELL, "")


def trials(work: Path, seed: int, share: float = 1.0, names: tuple[str, ...] = tuple(SHARES)) -> Iterator[Trial]:
    """Kill every command at random moments.

    Args:
        work: folder for everything that the trials write.
        seed: of signals and moments.
        share: of the trials of `SHARES`.
        names: which commands.
    """
    for name in names:
        target = Target(COMMANDS[name], work)
        rng = random.Random(f"{seed} {name}")
        for number in range(max(1, round(SHARES[name] * share))):
            # One in eight is a process of its own, which imports and compiles everything itself.
            yield kill(target, rng, alone=COMMANDS[name].alone or number % 8 == 7)


def kill(target: Target, rng: random.Random, alone: bool = False) -> Trial:
    """Make one trial: kill, look, run again, compare."""
    number = rng.choice(list(SIGNALS))
    moment = rng.uniform(0, max(target.seconds) + (5 if alone and not target.command.alone else 0))
    out, began = target.fresh(), time.perf_counter()
    arguments = target.command.filled(target.inputs, out)
    status, text, remaining = (_alone if alone else _forked)(arguments, target.work / "said", number, moment)
    done = f"{signal.Signals(number).name} after {moment:.3f} s" + (" of a process of its own" if alone else "")

    def trial(outcome: str, said: str = "") -> Trial:
        return Trial(PART, target.command.name, done, outcome, said, round(time.perf_counter() - began, 2))

    if status is None:
        return trial(HANG, f"not gone in time after the signal: {_last(text)}")
    for name, path in visible(out).items():
        try:
            if name != "metrics.jsonl":  # grows by a line at a time
                content(path)
        except HalfWrittenError as error:
            return trial(HALF, f"{name}: {error}")
    between = target.finished(out)
    _age(out)
    again = target.run(target.command.filled(target.inputs, out, again=True))
    if again.hung:
        return trial(HANG, f"the second run: {_last(again.text)}")
    if again.status:
        kind = TRACEBACK if "Traceback" in again.text else LOST
        return trial(kind, f"the second run ended with {again.status}: {_last(again.text)}")
    outcome, said = target.judge(out, between)
    if outcome not in (WELL, LEFT):
        return trial(outcome, said)
    if "Traceback" in text and "/rdjepa/" in text:  # Python's own, before the package is asked, is not its
        return trial(TRACEBACK, _last(text))
    if status not in (0, *SIGNALS[number]) and not ("Traceback" in text and "/rdjepa/" not in text):
        return trial(STATUS, f"{status}: {_last(text)}")
    if remaining:
        return trial(LEFT, f"{len(remaining)} processes after the end")
    return trial(outcome, said)


def _age(out: Path, seconds: float = 2 * RECENT) -> None:
    """Make unfinished files older than writers leave alone, so that the second run has to remove them."""
    then = time.time() - seconds
    for path in out.rglob("*"):
        if is_temporary(str(path.relative_to(out))):
            os.utime(path, (then, then))


def _forked(arguments: list[str], said: Path, number: int, moment: float) -> tuple[int | None, str, list[int]]:
    """Run a command in a fork and send it a signal; return status (None: it hangs), text and processes that remain."""
    child = sandbox.Child(sandbox.command(arguments), said, memory=None)
    if not child.over(moment):
        child.send(number)
    ended = child.end(moment + ENDS)
    return None if ended.hung else ended.status, ended.text, _remaining(child.pid)


def _alone(arguments: list[str], said: Path, number: int, moment: float) -> tuple[int | None, str, list[int]]:
    """Do the same with a process of its own."""
    plain = arguments[0] in ("simulate", "data")  # needs nothing that `small` registers
    program = ["-m", "rdjepa"] if plain else [str(Path(__file__).with_name("command.py"))]
    command = [sys.executable, *program, *arguments]
    with said.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            if number:
                process.send_signal(number)
        try:
            status: int | None = process.wait(ENDS_ALONE)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return status, said.read_text(errors="replace"), _remaining(process.pid)


def _remaining(leader: int, patience: float = 10) -> list[int]:
    """Return the processes of a session that do not end on their own in time, and end them."""
    until = time.monotonic() + patience
    while (found := sandbox.session_of(leader)) and time.monotonic() < until:
        time.sleep(0.1)
    for process in found:
        os.kill(process, signal.SIGKILL)
    return found


def _contents(out: Path) -> dict[str, object]:
    return {name: content(path) for name, path in visible(out).items()}


def _step(line: str) -> float:
    try:
        return json.loads(line)["step"]
    except ValueError:
        return float("inf")


def _last(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""
