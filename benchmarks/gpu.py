"""A lent GPU, used by one command: every path that only a GPU runs is tried first, then data, pretraining, results.

    python benchmarks/gpu.py check                                    # two minutes; which ways of computing work here
    python benchmarks/gpu.py go --preset small --work work --out out  # all of it, in slices that stop and go on
    python benchmarks/gpu.py join out/model                           # at home: put the shards of the weights together

`go` may be called again and again: it checks once, makes what data is missing, and pretrains with the fastest way
that passed the check (CUDA graphs, compiled, plain), for at most `--minutes` a call. A way that fails in mid-run is
given up for the next one with a warning, and the run goes on from its last state. When the run has reached its last
step, or with `--finish`, the model is written to `--out` with its weights in shards of 15 MiB, beside the metrics and
the check. With `--study heldout` the time that is left, and further calls, go to the cells of that study with this
model, several at once on the device; what is done is exported to `--out` at the end of every call.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from rdjepa.data.statistics import Normalizer
from rdjepa.models.device import device_named
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining.config import PROFILES
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.engine import Engine
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.processes import joined
from rdjepa.pretraining.state import Pretraining, newest_state
from rdjepa.systems import SOURCES

WAYS = ("graphs", "yes", "no")  # of compiling, fastest first
TRIED = {
    "plain": ("no", "float32", 1),
    "bfloat16": ("no", "bfloat16", 1),
    "compiled": ("yes", "bfloat16", 1),
    "graphs": ("graphs", "bfloat16", 1),
    "two ranks": ("no", "bfloat16", 2),
    "two ranks, graphs": ("graphs", "bfloat16", 2),
}
SHARD = 15 * 2**20
PATIENCE = 100  # seconds that one way may take in the check


def steps(arguments: argparse.Namespace) -> None:
    """Make three steps on noise with frames on the device; print losses and seconds of the last step as JSON."""
    device = device_named(arguments.device)
    with joined(device) as ranks:
        device = ranks.device(device) if torch.cuda.device_count() > 1 else device
        grid = PRESETS[arguments.preset].grid
        fields = np.random.default_rng(0).standard_normal((40, 2, grid, grid)).astype(np.float32)
        frames = Frames.of({"noise": [fields]}).to(device)
        dataset = Dataset(frames, {"noise": Normalizer((0.0, 0.0), (1.0, 1.0))})
        config = PROFILES[arguments.preset]
        settings = {name: getattr(config, name) for name in vars(config)} | {"precision": arguments.precision}
        training = Pretraining(
            arguments.preset, type(config)(**settings), device, Engine(arguments.compile, 1, "device"), ranks
        )
        (part,) = ranks.parts(config.batch, 1)
        losses, seconds = [], 0.0
        for number in range(3):
            plan = dataset.plan(0, number, config.batch, training.side, config.targets, part)
            started = time.perf_counter()
            losses.append(training.update([dataset.cut(plan).to(device)])["loss"])
            seconds = time.perf_counter() - started
        if ranks.leads:
            print(json.dumps({"losses": losses, "seconds": seconds}))


def check(arguments: argparse.Namespace) -> dict[str, dict]:
    """Try every way of computing in a process of its own; return what came out, with "works" for each."""
    found: dict[str, dict] = {}
    for name, (way, precision, ranks) in TRIED.items():
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command = (command if ranks > 1 else [sys.executable]) + [__file__, "steps", "--preset", arguments.preset]
        command += ["--compile", way, "--precision", precision, "--device", arguments.device]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            result = json.loads(done.stdout.splitlines()[-1]) if not done.returncode else {"error": done.stderr[-800:]}
        except subprocess.TimeoutExpired:
            result = {"error": f"no result after {PATIENCE} s"}
        reference = found.get("plain", {}).get("losses")
        close = reference is None or np.allclose(result.get("losses", np.nan), reference, rtol=0.05)
        found[name] = {"works": "error" not in result and bool(close)} | result
        note = f"{result['seconds']:.3f} s a step" if "seconds" in result else result["error"].strip().splitlines()[-1:]
        print(f"{name}: {'works' if found[name]['works'] else 'FAILS'}, {note}", flush=True)
    return found


def go(arguments: argparse.Namespace) -> None:
    """Check, make data, pretrain until the time is over, and write what is to be kept."""
    ends = time.monotonic() + 60 * arguments.minutes
    work, out = Path(arguments.work), Path(arguments.out)
    work.mkdir(parents=True, exist_ok=True)
    report = work / "check.json"
    if not report.exists():
        report.write_text(json.dumps(check(arguments), indent=1))
    passed = json.loads(report.read_text())
    names = {"graphs": "graphs", "yes": "compiled", "no": "bfloat16"}
    ways = [way for way in WAYS if passed[names[way]]["works"]] or ["no"]
    data, run = work / "datasets", work / arguments.preset
    rdjepa = [sys.executable, "-m", "rdjepa"]
    build = [*rdjepa, "data", "build", "--out", data, "--systems", ",".join(SOURCES), "--splits", "pool,validation"]
    build += ["--scale", arguments.scale, "--workers", os.cpu_count()]
    until(list(map(str, build)), ends, work / "data.log")
    pretrain = [*rdjepa, "pretrain", "--preset", arguments.preset, "--data", data, "--out", run, "--resume"]
    pretrain += ["--device", arguments.device] + (["--steps", arguments.steps] if arguments.steps else [])
    if arguments.finish and (states := newest_state(run)):
        pretrain += ["--stop-at", int(states[0].stem.removeprefix("step-"))]
    while time.monotonic() < ends and not (run / "model").exists():
        code = until([*map(str, pretrain), "--compile", ways[0]], ends, work / "pretrain.log")
        if code and code != -signal.SIGINT and time.monotonic() < ends:
            if len(ways) == 1:
                raise SystemExit(f"pretraining failed in every way; see {work / 'pretrain.log'}")
            print(f"WARNING: compile {ways[0]} failed with status {code}; going on with {ways[1]}", flush=True)
            ways = ways[1:]
    keep(run, report, out)
    if arguments.study and (run / "model").exists():
        root = work / "study"
        settings = ["--profile", arguments.preset, "--model", run / "model", "--data", data]
        settings += ["--device", arguments.device, "--workers", arguments.workers]
        settings += ["--only", arguments.cells] if arguments.cells else []
        command = [*rdjepa, "study", "run", arguments.study, "--root", root, *settings]
        until(list(map(str, command)), ends, work / "study.log")
        subprocess.run([*rdjepa, "study", "export", "--root", str(root), "--out", str(out / "study")], check=False)


def until(command: list[str], ends: float, log: Path) -> int:
    """Run a command with its output in a log; interrupt it when the time is over. Return its status."""
    left = ends - time.monotonic()
    if left <= 0:
        return -signal.SIGINT
    with log.open("a") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            return process.wait(timeout=left)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
            return -signal.SIGINT


def keep(run: Path, report: Path, out: Path) -> None:
    """Copy check, metrics and model to the output folder, the weights in shards."""
    (out / "model").mkdir(parents=True, exist_ok=True)
    found = [report, run / "metrics.jsonl", *sorted((run / "model").glob("*"))]
    for path in found:
        if path.is_file():
            folder = out / "model" if path.parent.name == "model" else out
            content = path.read_bytes()
            parts = [content[first : first + SHARD] for first in range(0, len(content), SHARD)]
            for number, part in enumerate(parts):
                (folder / (path.name if len(parts) == 1 else f"{path.name}.{number:02d}")).write_bytes(part)
            print(f"{path.name}: {len(content):,} bytes in {len(parts)}", flush=True)


def join(arguments: argparse.Namespace) -> None:
    """Put the shards of every file in a folder together."""
    folder = Path(arguments.folder)
    for first in sorted(folder.glob("*.00")):
        parts = sorted(folder.glob(f"{first.stem}.[0-9][0-9]"))
        (folder / first.stem).write_bytes(b"".join(part.read_bytes() for part in parts))
        for part in parts:
            part.unlink()


def main() -> None:
    """Run a verb."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    for name, function in (("check", check), ("go", go), ("steps", steps)):
        verb = verbs.add_parser(name)
        verb.set_defaults(function=function)
        verb.add_argument("--preset", choices=tuple(PRESETS), default="nano")
        verb.add_argument("--device", default="cuda")
        if name == "go":
            verb.add_argument("--work", default="work")
            verb.add_argument("--out", default="out")
            verb.add_argument("--minutes", type=float, default=9.0)
            verb.add_argument("--scale", type=float, default=1.0, help="share of the paper's numbers of trajectories")
            verb.add_argument("--steps", type=int, help="length of the run; the preset's own by default")
            verb.add_argument("--study", help="run this study with the model once it is there")
            verb.add_argument("--cells", help="conditions on its cells, as for: rdjepa study run --only")
            verb.add_argument("--workers", type=int, default=8, help="cells at once")
            verb.add_argument("--finish", action="store_true", help="write the model of the newest state and stop")
        if name == "steps":
            verb.add_argument("--compile", choices=WAYS, default="no")
            verb.add_argument("--precision", default="bfloat16")
    verb = verbs.add_parser("join")
    verb.set_defaults(function=join)
    verb.add_argument("folder")
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
