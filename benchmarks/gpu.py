"""A lent GPU, used by one command: every path that only a GPU runs is tried first, then data, pretraining, results.

    python benchmarks/gpu.py check                                    # which ways of computing work here, and how fast
    python benchmarks/gpu.py go --recipe small --out kept             # all of it, in slices that stop and go on
    python benchmarks/gpu.py go --recipe wide --seconds 300 --minutes 5
    python benchmarks/gpu.py study --cells k=1 k=5 -- decoder --model runs/gpu/whole/model --workers 12
    python benchmarks/gpu.py study --cells group=objectives -- ablation --workers 12
    python benchmarks/gpu.py join kept home                           # at home: put the shards together and unpack them

`go` may be called again and again: beside the check it makes what data is missing, and it pretrains in the fastest way
that passed, for at most `--minutes` a call. A recipe is a pretraining of the preset of this name on the five sources,
or `wide`: the stages of the shipped `nano-wide` (docs/how-to/pretrain.md), in larger batches, as long as `--seconds`
hold by the times of the check; `whole` is its last stage alone, from the model `--start`, and `rehearsal` has a
hundredth of its data. `study` computes cells, several at once on the device, with what `rdjepa study run` is given
after `--`; so an ablation makes its own data and pretrainings. Its workers take turns on the device unless
`nvidia-cuda-mps-control -d` was called before. It may be called again and again too. At the end of every call, also one
that failed, the newest model, the weights of an unfinished stage, the rows, the tracebacks of failed cells, metrics,
check and logs are in `--out`, as an archive in shards of 15 MiB for each of the two.
"""

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rdjepa
from rdjepa.data.statistics import Normalizer
from rdjepa.io.checkpoint import CONFIG
from rdjepa.io.tensors import load_tensors, save_tensors
from rdjepa.models.device import device_named
from rdjepa.models.rdjepa import PRESETS, build
from rdjepa.pretraining.config import PROFILES, PretrainConfig, scaled
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.engine import MODES, Engine
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.objectives.adaptation import AdaptationOptions
from rdjepa.pretraining.processes import joined
from rdjepa.pretraining.state import NETWORKS, TrainingState, saved_states
from rdjepa.systems import SOURCES
from slices import PACKING, end, join, pack, told, until

PATIENCE = 100  # seconds that one trial may take in the check
MARGIN = 1.3  # of the seconds of a step on noise: reading, measuring and saving take some too
ASSUMED = 0.03  # seconds of a step where none was timed
WARM_UP, TIMED = 12, 20  # steps of a trial; every shape of a batch occurs in the first ones
RDJEPA = [sys.executable, "-m", "rdjepa"]


@dataclass(frozen=True)
class Stage:
    """A pretraining of a recipe.

    Attributes:
        name: of its run directory.
        config: its settings; where a share is given, over as many steps as fit into it.
        share: of the seconds for training; 0 keeps the steps of `config`.
    """

    name: str
    config: PretrainConfig
    share: float = 0.0


@dataclass(frozen=True)
class Recipe:
    """Stages, each from the model of the one before, and their data.

    Attributes:
        preset: of the model.
        stages: pretrainings in their order.
        scale: share of the paper's trajectories of the sources.
        family: number of random equations.
    """

    preset: str
    stages: tuple[Stage, ...]
    scale: float = 1.0
    family: int = 0

    @property
    def systems(self) -> list[str]:
        """Names of the systems."""
        return [*SOURCES, *(["family"] if self.family else [])]


_WIDE = replace(
    PROFILES["nano"], weights=(("family", 5),), batch=32, save_every=500, diagnose_every=2_000, log_every=200
)
_FIELDS = replace(_WIDE, peak=3e-4, objective="adaptation", options=AdaptationOptions(encoder=True))
_STAGES = (
    Stage("latent", _WIDE, 0.4),
    Stage("decoder", replace(_WIDE, objective="decoder"), 0.1),
    Stage("whole", _FIELDS, 0.5),
)
RECIPES = {preset: Recipe(preset, (Stage("latent", PROFILES[preset]),)) for preset in PRESETS} | {
    "wide": Recipe("nano", _STAGES, scale=0.1, family=4_000),
    "whole": Recipe("nano", (replace(_STAGES[-1], share=1.0),), scale=0.1, family=4_000),
    "rehearsal": Recipe("nano", _STAGES, scale=0.002, family=40),  # to try the command
}


@dataclass(frozen=True)
class Trial:
    """A way of computing a stage; those of the preset alone are compared, and told in the documents."""

    preset: str
    way: str = "no"
    precision: str = "bfloat16"
    ranks: int = 1
    stage: str = ""  # of the recipe wide; the profile of the preset without one

    @property
    def name(self) -> str:
        """What it is, in words."""
        ranks = f"{self.ranks} ranks" if self.ranks > 1 else ""
        return " ".join(filter(None, (self.preset, self.stage, self.precision, self.way, ranks)))


def trials(preset: str, recipe: Recipe, fused: bool) -> list[Trial]:
    """Return what the check tries, what the rest of the run needs first; kernels of torch.compile where wanted."""
    found = [Trial(preset), Trial(preset, "graphs")]
    found += [Trial(preset, "graphs", stage=stage.name) for stage in recipe.stages if stage.share]
    found += [Trial(other, way) for way in ("graphs", "no") for other in PRESETS if other != preset]
    found.append(Trial(preset, "no", "float32"))
    found += [Trial(preset, ranks=2)] if torch.cuda.device_count() > 1 else []  # every process has a GPU of its own
    return found + [Trial(each, "yes") for each in PRESETS if fused]


def steps(arguments: argparse.Namespace) -> None:
    """Make some steps on noise with frames on the device; print the first losses and the median seconds as JSON."""
    device = device_named(arguments.device)
    with joined(device) as ranks:
        device = ranks.device(device)
        grid = PRESETS[arguments.preset].grid
        fields = np.random.default_rng(0).standard_normal((40, 2, grid, grid)).astype(np.float32)
        frames = Frames.of({name: [fields] for name in (*SOURCES, "family")}).to(device)
        dataset = Dataset(frames, {name: Normalizer((0.0, 0.0), (1.0, 1.0)) for name in frames.spans})
        stages = {stage.name: stage.config for stage in RECIPES["wide"].stages}
        config = stages[arguments.stage] if arguments.stage else PROFILES[arguments.preset]
        config = replace(config, precision=arguments.precision)
        start = None
        if config.objective != PROFILES["nano"].objective:
            start = build(arguments.preset, seed=0)
            start.pretrained, start.fingerprint = ("encoder", "predictor", "decoder"), "fresh"
        training = TrainingState(
            arguments.preset, config, device, Engine(arguments.compile, 1, "device"), ranks, start=start
        )
        (part,) = ranks.parts(config.batch, 1)
        losses, taken = [], []
        for number in range(WARM_UP + TIMED):
            plan = dataset.plan(0, number, config.batch, training.side, training.objective, part)
            started = time.perf_counter()
            losses.append(training.update([dataset.cut(plan).to(device)])["loss"])
            taken.append(time.perf_counter() - started)
        if ranks.leads:
            peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
            named = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
            found = {"batch": config.batch, "losses": losses[:3], "seconds": statistics.median(taken[WARM_UP:])}
            print(json.dumps(found | {"first": taken[0], "GiB": peak, "device": named}))


def attempt(trial: Trial, device: str, ends: float) -> dict[str, Any]:
    """Run one trial in a process of its own; return what it told, or its error; nothing where the time was over."""
    command = [sys.executable]
    if trial.ranks > 1:
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(trial.ranks)]
    command += [__file__, "steps", "--preset", trial.preset, "--compile", trial.way, "--precision", trial.precision]
    command += ["--device", device, "--stage", trial.stage]
    left = ends - time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=min(PATIENCE, left), check=False)
        found: dict[str, Any] = (
            json.loads(done.stdout.splitlines()[-1]) if not done.returncode else {"error": done.stderr[-6000:]}
        )
        return found | ({"note": done.stderr[-600:]} if "CUDA graph failed" in done.stderr else {})
    except subprocess.TimeoutExpired:
        return {"error": f"no result after {PATIENCE} s"} if left > PATIENCE else {}


def check(arguments: argparse.Namespace, ends: float = math.inf) -> dict[str, Any]:
    """Try every way of computing until the time is over; return what came out, with "works" for each."""
    recipe = RECIPES[arguments.recipe]
    report = Path(arguments.work) / "check.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    ends = min(ends, time.monotonic() + arguments.check_seconds)
    for trial in trials(recipe.preset, recipe, arguments.fused):
        if trial.name in found:
            continue
        if not (result := attempt(trial, arguments.device, ends)):
            break
        same = [each for each in found.values() if each["of"] == [trial.preset, trial.stage] and each["works"]]
        close = not same or np.allclose(result.get("losses", np.nan), same[0]["losses"], rtol=0.05)
        works = "error" not in result and bool(close)
        found[trial.name] = {"works": works, "of": [trial.preset, trial.stage]} | result
        speed = f"{result['seconds']:.4f} s" if "seconds" in result else result["error"].strip().splitlines()[-1:]
        told(f"{trial.name}: {'works' if works else 'FAILS'}, {speed} {result.get('note', '')}")
        report.write_text(json.dumps(found, indent=1))
    return found


def go(arguments: argparse.Namespace) -> None:
    """Check, make data, pretrain until the time is over, and write what is to be kept."""
    ends = time.monotonic() + 60 * arguments.minutes
    work, out, recipe = Path(arguments.work), Path(arguments.out), RECIPES[arguments.recipe]
    work.mkdir(parents=True, exist_ok=True)
    try:
        pretrain(arguments, recipe, work, ends)
    finally:
        pack(kept(recipe, work), work, out, "go")


def study(arguments: argparse.Namespace) -> None:
    """Compute cells of a study, one condition after the other, until the time is over, and write their rows."""
    ends = time.monotonic() + 60 * arguments.minutes
    work, log = Path(arguments.work), Path(arguments.work) / "study.log"
    work.mkdir(parents=True, exist_ok=True)
    run = [*RDJEPA, "study", "run", *arguments.run, "--root", work / "study", "--device", arguments.device]
    try:
        for cells in arguments.cells or [""]:
            code = until([*run, *(["--only", cells] if cells else [])], ends - PACKING, log)
            told(f"cells {cells}: status {code}")
    finally:
        export = [*RDJEPA, "study", "export", "--root", work / "study", "--out", work / "rows"]
        subprocess.run(list(map(str, export)), check=False)
        pack([work / "rows", work / "study" / "failed", log], work, Path(arguments.out), "study")


def pretrain(arguments: argparse.Namespace, recipe: Recipe, work: Path, ends: float) -> None:
    """Check and make data, then pretrain the stages, until the time is over."""
    lengths, until_data = work / "lengths.json", time.monotonic() + arguments.data_seconds
    # Once the lengths are known the data are what they are: a run that goes on wants those that it began with.
    with building(recipe, work, 0 if lengths.exists() else arguments.builders) as builder:
        found = check(arguments, ends - PACKING)
        with suppress(subprocess.TimeoutExpired):
            builder.wait(max(0.0, min(ends - PACKING, until_data) - time.monotonic()))
    told(f"data: status {builder.returncode}, {len(list(work.glob('datasets/**/*.hdf5')))} files")
    if builder.returncode and time.monotonic() < until_data:
        return  # another call goes on with them
    ways = [way for way in ("graphs", "no") if found.get(f"{recipe.preset} bfloat16 {way}", {}).get("works")] or ["no"]
    if not lengths.exists():
        lengths.write_text(json.dumps(planned(recipe, found, ways[0], arguments.seconds)))
    told(f"ways {ways}, steps {lengths.read_text()}")
    last = work / recipe.stages[-1].name
    train = [sys.executable, __file__, "train", "--recipe", arguments.recipe, "--work", work]
    train += ["--start", arguments.start] if arguments.start else []
    while time.monotonic() < ends - PACKING and not finished(last):
        command = [*train, "--device", arguments.device, "--compile", ways[0]]
        code = until(command, ends - PACKING, work / "pretrain.log")
        if code and code != -signal.SIGINT and time.monotonic() < ends:
            if len(ways) == 1:
                raise SystemExit(f"pretraining failed in every way; see {work / 'pretrain.log'}")
            told(f"WARNING: {ways[0]} failed with status {code}; going on with {ways[1]}")
            ways = ways[1:]


@contextmanager
def building(recipe: Recipe, work: Path, builders: int) -> Iterator[subprocess.Popen]:
    """Make the data that are missing in so many processes, none for no data, beside what is done meanwhile."""
    build = f"{sys.executable} -m rdjepa data build --out {work}/datasets --workers {builders}"
    lines = [f"{build} --systems {','.join(SOURCES)} --splits pool,validation --scale {recipe.scale}"]
    if recipe.family:  # last, what there may be less of
        lines += [f"{build} --systems family --splits validation --count 30"]
        lines += [f"{build} --systems family --splits pool --count {recipe.family}"]
    with (work / "data.log").open("a") as log:
        process = subprocess.Popen(
            " && ".join(lines) if builders else "true",
            shell=True,
            start_new_session=True,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        end(process, partial(os.killpg, process.pid))


def planned(recipe: Recipe, found: Mapping[str, Any], way: str, seconds: float) -> dict[str, int]:
    """Return the steps of every stage: those of its settings, or as many as its share of some seconds holds."""
    lengths = {}
    for stage in recipe.stages:
        if not stage.share:
            lengths[stage.name] = stage.config.steps
            continue
        trials = (found.get(f"{recipe.preset} {kind}bfloat16 {way}", {}) for kind in (f"{stage.name} ", ""))
        step = next((trial["seconds"] for trial in trials if "seconds" in trial), None)
        if step is None:
            step = ASSUMED
            told(f"WARNING: no step of {stage.name} was timed; {ASSUMED} s are assumed")
        lengths[stage.name] = max(20, round(stage.share * seconds / step / MARGIN))
    return lengths


def once(opened: Callable[..., Dataset], device: torch.device) -> Callable[..., Dataset]:
    """Return `Dataset.open` that reads every split once, as float32 on the device: all stages have the same frames."""
    known: dict[str, Dataset] = {}

    def read(data: Path, systems: list[str], split: str = "pool", **settings: Any) -> Dataset:
        if split not in known:
            found = opened(data, systems, split, **settings | {"dtype": torch.float32})
            known[split] = Dataset(found.frames.to(device), found.normalizers, found.checksums)
            told(f"{split}: {sum(found.frames.counts.values())} trajectories read")
        return known[split]

    return read


def train(arguments: argparse.Namespace) -> None:
    """Pretrain the stages of a recipe that are not finished, in their order, in this process."""
    recipe, work = RECIPES[arguments.recipe], Path(arguments.work)
    lengths = json.loads((work / "lengths.json").read_text())
    Dataset.open = once(Dataset.open, device_named(arguments.device))  # type: ignore[method-assign]
    before = Path(arguments.start) if arguments.start else None
    for stage in recipe.stages:
        out = work / stage.name
        if not finished(out):
            told(f"{stage.name}: {lengths[stage.name]} steps")
            rdjepa.pretrain(
                recipe.preset,
                work / "datasets",
                out,
                systems=recipe.systems,
                config=scaled(stage.config, lengths[stage.name]),
                start=before,
                device=arguments.device,
                engine=Engine(arguments.compile, 1, "device"),
                resume=True,
                progress=lambda done, total, text: told(f"{done}/{total} {text}") if done % 1_000 == 0 else None,
            )
            told(f"{stage.name}: finished")
        before = out / "model"


def finished(stage: Path) -> bool:
    """Return whether the model of a stage is whole: its configuration is written after its weights."""
    return (stage / "model" / CONFIG).is_file()


def kept(recipe: Recipe, work: Path) -> list[Path]:
    """Return what is to be kept: check, lengths, logs, metrics, the newest model, weights of a stage that goes on."""
    models = [work / stage.name / "model" for stage in recipe.stages if finished(work / stage.name)]
    found = [work / "check.json", work / "lengths.json", *work.glob("*.log"), *work.glob("*/metrics.jsonl")]
    found += models[-1:]
    unfinished = [saved_states(work / stage.name)[:1] for stage in recipe.stages[len(models) :]]
    for (state,) in filter(None, unfinished):  # weights alone: what a stage has learned is not lost with the machine
        tensors, record = load_tensors(state)
        weights = {name: value.half() for name, value in tensors.items() if name.startswith(NETWORKS)}
        found.append(work / f"{state.parent.parent.name}-{state.name}")
        save_tensors(found[-1], weights, record)
    return found


def _verb(verbs: Any, name: str, function: Callable[[argparse.Namespace], Any]) -> argparse.ArgumentParser:
    """Add a verb that works in a folder on a device."""
    verb: argparse.ArgumentParser = verbs.add_parser(name)
    verb.set_defaults(function=function)
    verb.add_argument("--work", default="runs/gpu")
    verb.add_argument("--device", default="cuda")
    return verb


def _add_slice(verb: argparse.ArgumentParser) -> None:
    """Add how long a call lasts, and where what is to be kept goes."""
    verb.add_argument("--out", default="runs/gpu-kept")
    verb.add_argument("--minutes", type=float, default=9.0, help="of this call")


def main() -> None:
    """Run a verb."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts with & ignores it, as would commands
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    for name, function in (("check", check), ("go", go), ("train", train)):
        verb = _verb(verbs, name, function)
        verb.add_argument("--recipe", choices=tuple(RECIPES), default="nano")
        if name != "check":
            verb.add_argument("--start", help="pretrained model that the first stage goes on from")
        if name == "train":
            verb.add_argument("--compile", choices=tuple(MODES), default="no")
            continue
        verb.add_argument("--check-seconds", type=float, default=120.0)
        verb.add_argument("--fused", action="store_true", help="try torch.compile too, which takes minutes")
        if name == "go":
            verb.add_argument("--seconds", type=float, default=300.0, help="for training the stages that have a share")
            verb.add_argument("--data-seconds", type=float, default=math.inf, help="for data; fewer make less of them")
            verb.add_argument("--builders", type=int, default=os.cpu_count(), help="processes that make data")
            _add_slice(verb)
    verb = _verb(verbs, "study", study)
    verb.add_argument("--cells", nargs="*", help="conditions of its runs, as for: rdjepa study run --only")
    verb.add_argument("run", nargs="+", help="what rdjepa study run is given, after --")
    _add_slice(verb)
    verb = verbs.add_parser("steps")
    verb.set_defaults(function=steps)
    verb.add_argument("--preset", choices=tuple(PRESETS), default="nano")
    verb.add_argument("--stage", default="", help="of the recipe wide, instead of the profile of the preset")
    verb.add_argument("--compile", choices=tuple(MODES), default="no")
    verb.add_argument("--precision", default="bfloat16")
    verb.add_argument("--device", default="cuda")
    verb = verbs.add_parser("join")
    verb.set_defaults(function=lambda arguments: join(arguments.folder, arguments.out))
    verb.add_argument("folder", type=Path)
    verb.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
