"""Predictive latent pretraining: the resumable loop that trains encoder and predictor on trajectories (S2.3-S2.5)."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from rdjepa.errors import ArgumentError
from rdjepa.io.atomic import write_bytes
from rdjepa.models.device import autocast
from rdjepa.models.rdjepa import PRESETS, RDJEPA, build
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch, Dataset
from rdjepa.pretraining.diagnostics import diagnose, signs_of_collapse
from rdjepa.pretraining.engine import Engine, explain_out_of_memory
from rdjepa.pretraining.monitor import averaging_distance, gates, gradient_norms, short_line
from rdjepa.pretraining.prefetch import Prefetcher
from rdjepa.pretraining.processes import Ranks
from rdjepa.pretraining.state import Pretraining, newest_state, resume
from rdjepa.progress import Progress

VALIDATION_SEED = 4321
VALIDATION_BATCHES, VALIDATION_BATCH = 8, 16

Line = Callable[[Mapping], None]


def pretrain(
    preset: str,
    dataset: Dataset,
    run: Path,
    config: PretrainConfig,
    *,
    validation: Dataset | None = None,
    device: torch.device | None = None,
    engine: Engine | None = None,
    ranks: Ranks | None = None,
    resuming: bool = False,
    progress: Progress | None = None,
    line: Line | None = None,
    stop_at: int | None = None,
) -> RDJEPA:
    """Pretrain a preset, or resume a run.

    The run directory receives `metrics.jsonl` (one line per `log_every` steps), `state/` (the two newest states),
    `data.json` (systems, normalization and checksums of every trajectory used) and nothing else; write the finished
    model with `rdjepa.io.checkpoint.save`.

    Args:
        preset: "paper", "small" or "nano".
        dataset: trajectories of the systems to learn from.
        run: run directory.
        config: optimization settings.
        validation: trajectories for the held-out diagnostics; None computes none.
        device: where to train; CPU when None.
        engine: how to compute; plain when None.
        ranks: this process among those of the run; alone when None.
        resuming: continue from the newest valid state in `run`, if there is one.
        progress: called by the leading process after every step with its number, the number of steps and the
            latest metrics as a short line.
        line: called with every line that goes to `metrics.jsonl`.
        stop_at: end early at this step with the state saved; the schedules do not change.

    Returns:
        The model with the online encoder and the predictor of the last step, and a fresh decoder.

    Raises:
        ArgumentError: unknown preset, a used directory without `resuming`, or a run of another configuration or data.
        DivergenceError: loss or gradient is not finite; the saved states are those before.
        InsufficientMemoryError: a `MemoryError`; the sentence says what to lower.
    """
    if preset not in PRESETS:
        raise ArgumentError(f"expected a preset among {', '.join(PRESETS)}, got {preset!r}; name one of them")
    device, engine, ranks = device or torch.device("cpu"), engine or Engine(), ranks or Ranks()
    parts = ranks.parts(config.batch, engine.accumulate)
    with explain_out_of_memory():
        training = Pretraining(preset, config, device, engine, ranks)
        if ranks.leads:
            _claim(run, dataset, resuming)
        if resuming:
            resume(training, run)
        ranks.check_consistent(training.step, "step")
        held_out = _held_out(validation, training) if validation and ranks.leads else []
        log = run / "metrics.jsonl"
        if ranks.leads:
            _trim(log, training.step)
        _loop(training, dataset, parts, held_out, run, min(config.steps, stop_at or config.steps), progress, line)
    ranks.wait()
    model = build(preset, seed=config.seed)
    model.encoder.load_state_dict(training.jepa.encoder.state_dict())
    model.predictor.load_state_dict(training.jepa.predictor.state_dict())
    return model


def _loop(
    training: Pretraining,
    dataset: Dataset,
    parts: list[slice],
    held_out: list[Batch],
    run: Path,
    last: int,
    progress: Progress | None,
    line: Line | None,
) -> None:
    """Train up to step `last`; the leading process measures, writes and reports."""
    config, leads = training.config, training.ranks.leads
    clock = Clock(training.step)
    latest: dict = {}
    losses: list[float] = []  # since the last line of metrics
    with Prefetcher(dataset, config, training.side, parts, training.device, training.step) as prefetcher:
        while training.step < last:
            metrics: dict = training.update(prefetcher.next())
            if not leads:
                continue
            losses.append(metrics["loss"])
            step = training.step
            log, measure, save = (
                step % every == 0 or step == last
                for every in (config.log_every, config.diagnose_every, config.save_every)
            )
            if log or measure:
                metrics |= {"loss": sum(losses) / len(losses)} | clock.read(step, prefetcher.waited)
                metrics |= _measure(training, metrics["gradient_norm"], held_out if measure else None)
                losses = []
                _write(run / "metrics.jsonl", {"step": step} | metrics)
                if line:
                    line({"step": step} | metrics)
            if save:
                training.save(run / "state" / f"step-{step:08d}.safetensors")
                # Two states are kept: if the newest is damaged, a resumed run starts from the one before.
                for old in newest_state(run)[2:]:
                    old.unlink()
            if measure:
                latest.pop("warnings", None)
            latest |= metrics
            if progress:
                progress(step, config.steps, short_line(latest))


def _held_out(validation: Dataset, training: Pretraining) -> list[Batch]:
    """Return the fixed batches of the diagnostics."""
    targets = training.config.targets
    return [
        validation.batch(VALIDATION_SEED, i, VALIDATION_BATCH, training.side, targets).to(training.device)
        for i in range(VALIDATION_BATCHES)
    ]


def _measure(training: Pretraining, norm: float, held_out: list[Batch] | None) -> dict:
    """Measure the state without changing it: cheap quantities always, the rest if `held_out` is a list, even empty."""
    jepa, config = training.jepa, training.config
    found: dict = {
        "averaging_distance": averaging_distance(jepa),
        "gates": gates(jepa.predictor),
        "gradient_norms": gradient_norms(jepa, norm, config.clip),
    }
    if held_out is None:
        return found
    measured: dict = {}
    if held_out:
        with autocast(training.device, config.precision), training.engine.eager():
            measured = diagnose(jepa, held_out)
    queue = training.queue.measure()
    found |= measured | {"queue": queue}
    # All signs of collapse are normal in the first steps, so there is no warning during warm-up.
    signs = signs_of_collapse(queue | measured) if training.step >= config.warmup else []
    return found | ({"warnings": signs} if signs else {})


class Clock:
    """Speed of one process, from the first step after its start or resumption."""

    def __init__(self, first: int) -> None:
        self.first, self.began = first, time.perf_counter()

    def read(self, step: int, waited: float) -> dict[str, float]:
        """Return steps per second, and the share of the time that was spent waiting for data."""
        passed = time.perf_counter() - self.began
        return {"steps_per_second": (step - self.first) / passed, "data_wait": waited / passed}


def _write(path: Path, record: Mapping) -> None:
    """Append one record as a line of JSON."""
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def _claim(run: Path, dataset: Dataset, resuming: bool) -> None:
    """Record the data of a new run, or check that a resumed run gets the same data."""
    record = {
        "systems": list(dataset.frames.spans),
        "normalizers": {name: n.to_dict() for name, n in dataset.normalizers.items()},
        "trajectories": dataset.checksums,
    }
    path = run / "data.json"
    if path.exists():
        if not resuming:
            raise ArgumentError(f"expected an empty run directory, got a run at {run}; resume it or choose another")
        there = json.loads(path.read_text())
        known = there.get("systems", list(there["normalizers"]))  # earlier versions wrote no list
        if known != record["systems"]:
            raise ArgumentError(
                f"expected the systems {', '.join(known)} that {run} was started with, in this order, "
                f"got {', '.join(record['systems'])}; name the same systems or choose another directory"
            )
        if there["trajectories"] != dataset.checksums:
            raise ArgumentError(f"expected the trajectories that {run} was started with, got others; use the same data")
    else:
        write_bytes(path, json.dumps(record, indent=1).encode())


def _trim(path: Path, step: int) -> None:
    """Drop the lines of steps after the state that a resumed run starts from."""
    if path.exists():
        kept = []
        for line in path.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # an interrupted run may leave an incomplete line
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
        write_bytes(path, "".join(kept).encode())
