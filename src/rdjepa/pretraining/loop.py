"""The resumable loop that pretrains an encoder on trajectories, with any objective (S2.3-S2.5)."""

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from rdjepa.io.checkpoint import METRICS
from rdjepa.models.device import autocast, note_emulation
from rdjepa.models.rdjepa import RDJEPA, ModelConfig
from rdjepa.pretraining import objectives, run_directory
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch, Dataset
from rdjepa.pretraining.diagnostics import signs_of_collapse
from rdjepa.pretraining.engine import Engine, explain_out_of_memory
from rdjepa.pretraining.monitor import QUEUE, gradient_norms, short_line
from rdjepa.pretraining.prefetch import Prefetcher
from rdjepa.pretraining.processes import Ranks
from rdjepa.pretraining.state import TrainingState, resume, saved_states, state_name
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
    model: ModelConfig | None = None,
    start: RDJEPA | None = None,
) -> RDJEPA:
    """Pretrain a preset, or resume a run.

    The run directory receives `metrics.jsonl` (a line every `log_every` steps, every `diagnose_every` steps and at the
    end), `state/` (the two newest states), `data.json` (systems, normalization and checksums of every trajectory used);
    write the finished model with `rdjepa.io.checkpoint.save`.

    Args:
        preset: name of the sizes.
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
        model: sizes and parts of the model; those of the preset when None.
        start: a pretrained model to go on from; None begins with fresh weights.

    Returns:
        The model with the networks that the objective keeps, of the last step: the online encoder, and predictor and
        decoder where they are trained. The others are fresh.

    Raises:
        ArgumentError: unknown preset, a used directory without `resuming`, a run of another configuration or data, or
            a start that is missing or of other sizes.
        DivergenceError: loss or gradient is not finite; the saved states are those before.
        InsufficientMemoryError: a `MemoryError`; the sentence says what to lower.
    """
    device, engine, ranks = device or torch.device("cpu"), engine or Engine(), ranks or Ranks()
    parts = ranks.parts(config.batch, engine.accumulate)
    with explain_out_of_memory(), run_directory.alone(run) if ranks.leads else contextlib.nullcontext():
        training = TrainingState(preset, config, device, engine, ranks, model, start)
        if ranks.leads:
            run_directory.claim(run, dataset, resuming)
        if resuming:
            resume(training, run)
        ranks.check_consistent(training.step, "step")
        held_out = _held_out(validation, training) if validation and ranks.leads else []
        log = run / METRICS
        if ranks.leads:
            run_directory.trim(log, training.step, training.curves)
        if trained := objectives.get(config.objective).trained:
            _loop(training, dataset, parts, held_out, run, min(config.steps, stop_at or config.steps), progress, line)
        if ranks.leads and not (trained and log.exists()):  # no step, and no curves of earlier ones
            _stay(training, held_out, run, line)
    ranks.wait()
    return training.finished()


def _loop(
    training: TrainingState,
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
    note_emulation(config.precision, training.device)
    clock = Clock(training.step)
    latest: dict = {}
    losses: list[float] = []  # since the last line of metrics
    reader = Prefetcher(dataset, config, training.objective, training.side, parts, training.device, training.step)
    with reader as prefetcher:
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
                norms = gradient_norms(training.objective, metrics["gradient_norm"], config.clip)
                metrics |= _measure(training, norms, held_out if measure else None)
                losses = []
                run_directory.append(run / METRICS, {"step": step} | metrics)
                if line:
                    line({"step": step} | metrics)
            if save:
                path = run / "state" / state_name(step)
                training.save(path, run_directory.checksum(run / METRICS))
                # Two states are kept: if the newest is damaged, a resumed run starts from the one before. Those of
                # later steps are damaged, or it would have started from them.
                states = saved_states(run)
                here = states.index(path)
                for other in (*states[:here], *states[here + 2 :]):
                    other.unlink()
            if measure:
                latest.pop("warnings", None)
            latest |= metrics
            if progress:
                progress(step, config.steps, short_line(latest))


def _held_out(validation: Dataset, training: TrainingState) -> list[Batch]:
    """Return the fixed batches of the diagnostics, of windows at the strides of the training."""
    strides = training.config.strides
    return [
        validation.batch(VALIDATION_SEED, i, VALIDATION_BATCH, training.side, training.objective, strides).to(
            training.device
        )
        for i in range(VALIDATION_BATCHES)
    ]


def _stay(training: TrainingState, held_out: list[Batch], run: Path, line: Line | None) -> None:
    """Measure and save weights that no step changes; a resumed run does it again."""
    metrics = {"step": training.step} | _measure(training, {}, held_out)
    (run / METRICS).unlink(missing_ok=True)
    run_directory.append(run / METRICS, metrics)
    if line:
        line(metrics)
    training.save(run / "state" / state_name(training.step), run_directory.checksum(run / METRICS))


def _measure(training: TrainingState, norms: Mapping, held_out: list[Batch] | None) -> dict:
    """Measure the state without changing it: cheap quantities always, the rest if `held_out` is a list, even empty.

    Args:
        training: the state.
        norms: norms of the gradients of its modules.
        held_out: batches of the diagnostics.
    """
    objective, config = training.objective, training.config
    found: dict = objective.watch() | {"gradient_norms": norms}
    if held_out is None:
        return found
    measured: dict = {}
    if held_out:
        with autocast(training.device, config.precision), training.engine.eager():
            measured = objective.diagnose(held_out)
    queue = training.queue.measure()
    found |= measured | {"queue": queue}
    if training.step < config.warmup:  # when all signs of collapse are normal
        return found
    signs = signs_of_collapse(measured)
    if not measured or queue["samples"] == QUEUE:  # fewer, as after a resume, span fewer directions
        signs += [f"in training, {sign}" for sign in signs_of_collapse(queue)]
    return found | ({"warnings": signs} if signs else {})


class Clock:
    """Speed of one process, from the first step after its start or resumption."""

    def __init__(self, first: int) -> None:
        self.first, self.began = first, time.perf_counter()

    def read(self, step: int, waited: float) -> dict[str, float]:
        """Return steps per second, and the share of the time that was spent waiting for data."""
        passed = time.perf_counter() - self.began
        return {"steps_per_second": (step - self.first) / passed, "data_wait": waited / passed}
