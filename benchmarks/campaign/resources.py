"""Missing resources: a full or read-only disk, no inodes, no file handles, two runs at once, a moved folder, a clock.

Small file systems are tmpfs, which only root may mount; without it the size of a file is limited instead. A quota is
not tried: it takes the road of a full disk (EDQUOT beside ENOSPC in io/atomic.py).
"""

import contextlib
import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from campaign import sandbox
from campaign.answers import of_command
from campaign.commands import EVERY
from campaign.content import HalfWrittenError, content, temporary, visible
from campaign.kills import Target
from campaign.trial import HALF, LEFT, LOST, STATUS, WELL, Trial

PART = "resources"
EACH = 5  # trials of each way for each command in a whole campaign
NAMES = ("simulate", "data build", "data add", "pretrain", "adapt", "study run", "export", "forecast", "evaluate")
READ_ONLY = "a read-only disk; write elsewhere"
YEARS = 365 * 24 * 3600


def trials(work: Path, seed: int, each: int = EACH, names: tuple[str, ...] = NAMES) -> Iterator[Trial]:
    """Take a resource from every command, then give it back and run the command again.

    Args:
        work: folder for everything that the trials write.
        seed: of sizes and moments.
        each: trials of each way for each command.
        names: of commands.
    """
    for name in names:
        target = Target(EVERY[name], work)
        size = sum(path.stat().st_size for path in (work / "out").rglob("*") if path.is_file())
        rng = random.Random(f"{seed} {name}")
        for way in WAYS if may_mount(work) else [each for each in WAYS if each not in MOUNTS]:
            for _ in range(each):
                began = time.perf_counter()
                done, outcome, said = WAYS[way](target, rng, size)
                seconds = round(time.perf_counter() - began, 2)
                yield Trial(PART, f"{way}, {name}", done, outcome, said, seconds)


def may_mount(work: Path) -> bool:
    """Return whether a tmpfs can be mounted here."""
    folder = work / "mounted"
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(OSError, subprocess.CalledProcessError), mounted(folder, "size=1m"):
        return True
    return False


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a tmpfs on a folder while the block runs."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def remount(folder: Path, options: str) -> None:
    """Change the options of a mounted file system."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True, capture_output=True)


Result = tuple[str, str, str]


def first(target: Target, out: Path, prepare: Callable[[], object] | None = None, **options) -> sandbox.Ended:
    """Run the command of a target for the first time, without a resource."""
    arguments = target.command.filled(target.inputs, out)
    options = {"seconds": 60, "memory": None} | options
    return sandbox.forked(sandbox.command(arguments), target.work / "said", prepare=prepare, **options)


def judged(target: Target, out: Path, ended: sandbox.Ended, statuses: tuple[int, ...] = (0, 1, 2)) -> tuple[str, str]:
    """Judge the first run and what it left, then run again with everything at hand and compare."""
    outcome, said = of_command(ended, statuses)
    if outcome != WELL:
        return outcome, said
    for name, path in visible(out).items():
        try:
            if name != "metrics.jsonl":
                content(path)
        except HalfWrittenError as error:
            return HALF, f"{name}: {error}"
    if (left := temporary(out)) and not said.endswith(READ_ONLY):  # there nothing can be deleted
        return LEFT, ", ".join(left[:3])
    between = target.finished(out)
    again = target.run(target.command.filled(target.inputs, out, again=True))
    if again.status:
        return LOST, f"the second run ended with {again.status}: {of_command(again)[1]}"
    return target.judge(out, between)


def full(target: Target, rng: random.Random, size: int) -> Result:
    room = int(size * rng.uniform(0.02, 1.0)) // 4096 * 4096 + 4096
    with mounted(target.fresh(), f"size={room}") as out:
        ended = first(target, out)
        remount(out, "size=1g")
        return f"{room} bytes", *judged(target, out, ended)


def inodes(target: Target, rng: random.Random, size: int) -> Result:
    number = rng.randint(1, 12)
    with mounted(target.fresh(), f"size=1g,nr_inodes={number}") as out:
        ended = first(target, out)
        remount(out, "nr_inodes=100000")
        return f"{number} inodes", *judged(target, out, ended)


def read_only(target: Target, rng: random.Random, size: int) -> Result:
    """Read-only from the beginning, or from a moment on."""
    moment = rng.choice((0.0, rng.uniform(0, max(target.seconds))))
    with mounted(target.fresh(), "size=1g" if moment else "size=1g,ro") as out:
        child = sandbox.Child(
            sandbox.command(target.command.filled(target.inputs, out)), target.work / "said", memory=None
        )
        until = time.monotonic() + moment + 20
        child.over(moment)
        while moment and not child.over(0.002) and time.monotonic() < until:
            with contextlib.suppress(subprocess.CalledProcessError):  # busy while a file is open for writing
                remount(out, "ro")
                break
        ended = child.end(60)
        remount(out, "rw")
        return f"after {moment:.3f} s", *judged(target, out, ended)


def file_size(target: Target, rng: random.Random, size: int) -> Result:
    limit = int(size * rng.uniform(0.0, 0.5))
    ended = first(target, target.fresh(), lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    return f"files of at most {limit} bytes", *judged(target, target.work / "out", ended)


def handles(target: Target, rng: random.Random, size: int) -> Result:
    number = rng.randint(0, 12)

    def few() -> None:
        limit = max(int(path.name) for path in Path("/proc/self/fd").iterdir()) + number
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    ended = first(target, target.fresh(), few)
    return f"{number} file handles", *judged(target, target.work / "out", ended)


def twice(target: Target, rng: random.Random, size: int) -> Result:
    """Two runs at once in one directory, the second a moment later."""
    out, moment = target.fresh(), rng.uniform(0, max(target.seconds))
    commands = [sandbox.command(target.command.filled(target.inputs, out, again=bool(n))) for n in range(2)]
    one = sandbox.Child(commands[0], target.work / "said", memory=None)
    one.over(moment)
    two = sandbox.Child(commands[1], target.work / "said1", memory=None)
    for child in (one, two):
        outcome, said = of_command(child.end(120))
        if outcome != WELL:
            return f"{moment:.3f} s apart", outcome, said
    again = target.run(target.command.filled(target.inputs, out, again=True))
    if again.status:
        return f"{moment:.3f} s apart", LOST, f"a third run ended with {again.status}: {of_command(again)[1]}"
    return f"{moment:.3f} s apart", *target.judge(out, {})


def moved(target: Target, rng: random.Random, size: int) -> Result:
    """The output folder gets another name in the middle of a run."""
    out, there = target.fresh(), target.work / "elsewhere"
    shutil.rmtree(there, ignore_errors=True)
    moment = rng.uniform(0, max(target.seconds))
    child = sandbox.Child(sandbox.command(target.command.filled(target.inputs, out)), target.work / "said", memory=None)
    child.over(moment)
    out.rename(there)
    ended = child.end(60)
    for name, path in visible(there).items():
        try:
            if name != "metrics.jsonl":
                content(path)
        except HalfWrittenError as error:
            return f"after {moment:.3f} s", HALF, f"{name}: {error}"
    out.mkdir(exist_ok=True)
    outcome, said = judged(target, out, ended)
    if outcome == LOST and (there / said.removeprefix("no ")).exists():  # whole, in the folder that was moved
        outcome, said = WELL, ""
    return f"after {moment:.3f} s", outcome, said


def clock(target: Target, rng: random.Random, size: int) -> Result:
    """A run is killed, every file is from the future, and the second run's clock stands ten years back."""
    out, moment = target.fresh(), rng.uniform(0, max(target.seconds))
    child = sandbox.Child(sandbox.command(target.command.filled(target.inputs, out)), target.work / "said", memory=None)
    if not child.over(moment):
        child.send(9)
    child.end(60)
    between = target.finished(out)
    for path in out.rglob("*"):
        os.utime(path, (time.time() + 50 * YEARS,) * 2)
    back = time.time() - 10 * YEARS

    def earlier() -> None:
        time.time = lambda: back
        time.time_ns = lambda: int(back * 1e9)

    arguments = target.command.filled(target.inputs, out, again=True)
    ended = sandbox.forked(sandbox.command(arguments), target.work / "said2", 60, memory=None, prepare=earlier)
    outcome, said = of_command(ended)
    if outcome == WELL and ended.status:
        outcome, said = STATUS, f"{ended.status}: {said}"
    return f"killed after {moment:.3f} s", *((outcome, said) if outcome != WELL else target.judge(out, between))


WAYS: dict[str, Callable[[Target, random.Random, int], Result]] = {
    "full disk": full,
    "no inodes": inodes,
    "read-only": read_only,
    "file size": file_size,
    "file handles": handles,
    "two runs": twice,
    "moved folder": moved,
    "clock back": clock,
}
MOUNTS = ("full disk", "no inodes", "read-only")
