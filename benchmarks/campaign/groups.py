"""Kills in a group: one rank of two, and a worker of a Dask cluster, which is then replaced."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from campaign import sandbox
from campaign.answers import of_command
from campaign.commands import COMMANDS
from campaign.kills import PART, SIGNALS, Target
from campaign.trial import HANG, LOST, STATUS, TRACEBACK, WELL, Trial

SHARES = {"pretrain, a rank of two": 12, "data build, a Dask worker": 8, "study run, a Dask worker": 8}
AGENT = 5  # seconds after which torchrun ends the other ranks
COMMAND = str(Path(__file__).with_name("command.py"))


def trials(work: Path, seed: int, share: float = 1.0) -> Iterator[Trial]:
    """Kill members of groups at random moments; arguments as for `kills.trials`."""
    for name, number in SHARES.items():
        rng = random.Random(f"{seed} {name}")
        count = max(1, round(number * share))
        yield from (_ranks if "rank" in name else _workers)(work, name, rng, count)


class Ranks(Target):
    """Two forked processes that train together, as torchrun would start them."""

    def run(self, arguments: list[str]) -> sandbox.Ended:
        return max((child.end(120) for child in self.start(arguments)), key=lambda ended: abs(ended.status))

    def start(self, arguments: list[str]) -> list[sandbox.Child]:
        """Start both."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}

        def rank(number: int) -> sandbox.Child:
            own = group | {"RANK": str(number), "LOCAL_RANK": str(number)}
            command = sandbox.command(arguments)
            return sandbox.Child(
                command, self.work / f"said{number}", memory=None, prepare=lambda: os.environ.update(own)
            )

        return [rank(0), rank(1)]


def _ranks(work: Path, name: str, rng: random.Random, count: int) -> Iterator[Trial]:
    target = Ranks(COMMANDS["pretrain"], work)
    for _ in range(count):
        began, number, victim = time.perf_counter(), rng.choice(list(SIGNALS)), rng.randrange(2)
        moment = rng.uniform(0, max(target.seconds))
        done = f"{signal.Signals(number).name} to rank {victim} after {moment:.3f} s"
        out = target.fresh()
        children = target.start(target.command.filled(target.inputs, out))
        killed, other = children[victim], children[1 - victim]
        if not killed.over(moment):
            killed.send(number)
        ended = killed.end(moment + 20)
        alive = not other.over(AGENT)
        if alive:
            other.send(signal.SIGTERM)
        survivor = other.end(moment + 60)
        between = target.finished(out)
        again = target.run(target.command.filled(target.inputs, out, again=True))
        outcome, said = target.judge(out, between)
        if again.status:
            outcome, said = LOST, f"the second run ended with {again.status}: {again.text[-200:]}"
        for each in (ended, survivor):
            if outcome == WELL and each.hung:
                outcome, said = HANG, of_command(each)[1]
        if outcome == WELL and ended.status not in (0, 1, 2, *SIGNALS[number]):
            outcome, said = STATUS, str(ended.status)
        if outcome == WELL and "Traceback" in ended.text + survivor.text:
            outcome, said = TRACEBACK, of_command(survivor if "Traceback" in survivor.text else ended)[1]
        figures = {"ended by torchrun": alive}
        yield Trial(PART, name, done, outcome, said, round(time.perf_counter() - began, 2), figures)


def _workers(work: Path, name: str, rng: random.Random, count: int) -> Iterator[Trial]:
    target = Target(COMMANDS[name.partition(",")[0]], work)
    file = work / "scheduler.json"
    file.unlink(missing_ok=True)
    scheduler = _dask(work, "dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    workers = [_worker(work, file) for _ in range(2)]
    try:
        while not file.exists():
            time.sleep(0.1)
        address = ["--scheduler", json.loads(file.read_text())["address"]]
        for _ in range(2):  # compiles on the workers, then measures
            arguments = target.command.filled(target.inputs, target.fresh()) + address
            undisturbed = sandbox.forked(sandbox.command(arguments), work / "said", 120, memory=None)
        for _ in range(count):
            out, began = target.fresh(), time.perf_counter()
            number, victim = rng.choice((signal.SIGKILL, signal.SIGTERM)), rng.randrange(2)
            moment = rng.uniform(0, undisturbed.seconds)
            arguments = target.command.filled(target.inputs, out) + address
            child = sandbox.Child(sandbox.command(arguments), work / "said", memory=None)
            child.over(moment)
            workers[victim].send_signal(number)
            workers[victim].wait()
            workers[victim] = _worker(work, file)
            ended = child.end(120)
            outcome, said = of_command(ended)
            if outcome == WELL and ended.status:
                outcome, said = LOST, f"the command ended with {ended.status}: {ended.text[-200:]}"
            if outcome == WELL:
                outcome, said = target.judge(out, {})
            done = f"{signal.Signals(number).name} to worker {victim} after {moment:.3f} s"
            yield Trial(PART, name, done, outcome, said, round(time.perf_counter() - began, 2))
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def _worker(work: Path, file: Path) -> subprocess.Popen:
    options = ("--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard", "--preload", COMMAND)
    return _dask(work, "dask_worker", *options)


def _dask(work: Path, what: str, *options: str) -> subprocess.Popen:
    with (work / f"said of {what}").open("a") as said:
        command = [sys.executable, "-m", f"distributed.cli.{what}", *options]
        return subprocess.Popen(command, stdout=said, stderr=said, cwd=work)
