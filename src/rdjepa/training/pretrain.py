"""Predictive latent pretraining: a resumable loop from trajectories to encoder and predictor (S2.3-S2.5)."""

import contextlib
import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import PRESETS, RDJEPA, build
from rdjepa.training.diagnostics import diagnose
from rdjepa.training.losses import jepa_loss
from rdjepa.training.precision import autocast
from rdjepa.training.schedules import ema_momentum, learning_rate
from rdjepa.training.source import Batch, Source
from rdjepa.training.targets import TargetConfig
from rdjepa.training.tensorfile import CheckpointError, load_tensors, save_tensors, write_atomically

VALIDATION_SEED = 4321


@dataclass(frozen=True)
class PretrainConfig:
    """Optimisation of pretraining; the defaults are the paper's (Table S4).

    Attributes:
        steps: optimiser steps of the whole run; the schedules end with it.
        batch: samples a step.
        peak: learning rate after warm-up.
        minimum: learning rate at the end.
        warmup: steps of linear warm-up.
        weight_decay: AdamW's, on every parameter.
        betas: AdamW's.
        clip: global norm that gradients are clipped to.
        ema: averaging coefficient of the target encoder, first and last.
        seed: of the weights and of the sequence of batches.
        precision: "float32", or "bfloat16" for autocast (weights, optimiser and spectral layers stay float32).
        save_every: steps between saved states.
        log_every: steps between lines of metrics.jsonl.
        diagnose_every: steps between diagnostics on validation trajectories.
        targets: sampling of regions, offsets, queries and masks.
    """

    steps: int = 200_000
    batch: int = 4
    peak: float = 7e-5
    minimum: float = 1e-6
    warmup: int = 5_000
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0
    ema: tuple[float, float] = (0.996, 0.99995)
    seed: int = 1234
    precision: str = "float32"
    save_every: int = 1_000
    log_every: int = 50
    diagnose_every: int = 1_000
    targets: TargetConfig = field(default_factory=TargetConfig)


PROFILES = {
    "paper": PretrainConfig(precision="bfloat16"),
    "small": PretrainConfig(precision="bfloat16", peak=3e-4, batch=16, steps=100_000, warmup=2_000),
    "nano": PretrainConfig(peak=8e-4, batch=8, steps=12_000, warmup=600, save_every=500, diagnose_every=500),
}


class Pretraining:
    """The state of a run: model, optimiser and step, each step a pure function of (state, step index)."""

    def __init__(self, preset: str, config: PretrainConfig, device: torch.device) -> None:
        self.preset, self.config, self.device, self.step = preset, config, device, 0
        model = build(preset, seed=config.seed)
        self.side = model.config.side
        self.jepa = JEPA(model.encoder, model.predictor).to(device)
        self.names = [n for n, p in self.jepa.named_parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.jepa.trainable(), lr=config.peak, betas=config.betas, weight_decay=config.weight_decay, fused=True
        )

    def update(self, batch: Batch) -> dict[str, float]:
        """One optimiser step and one EMA step; returns loss, gradient norm and the schedules' values.

        Raises:
            FloatingPointError: the loss is not finite; weights are those before this step.
        """
        config = self.config
        rate = learning_rate(self.step, config.steps, config.warmup, config.peak, config.minimum)
        momentum = ema_momentum(self.step, config.steps, *config.ema)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with autocast(self.device, config.precision):
            latent = self.jepa.targets(batch.futures)
            predicted = self.jepa(batch.context, batch.patches, batch.offsets, batch.mask)
            loss = jepa_loss(predicted, latent[batch.frame_of_query, batch.patches])
        value = float(loss.detach())
        if not math.isfinite(value):
            raise FloatingPointError(
                f"expected a finite loss, got {value} at step {self.step} on {', '.join(sorted(set(batch.systems)))}; "
                "lower the peak learning rate and resume from the last saved state"
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.jepa.trainable(), config.clip)
        self.optimizer.step()
        self.jepa.update_target(momentum)
        self.step += 1
        return {"loss": value, "gradient_norm": float(norm), "learning_rate": rate, "momentum": momentum}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Weights, target weights and both moments of every parameter, by name."""
        tensors = {f"jepa.{name}": value for name, value in self.jepa.state_dict().items()}
        for name, parameter in zip(self.names, self.jepa.trainable(), strict=True):
            state = self.optimizer.state.get(parameter, {})
            for moment in ("exp_avg", "exp_avg_sq"):
                if moment in state:
                    tensors[f"{moment}.{name}"] = state[moment]
        return tensors

    def save(self, path: Path) -> None:
        """Write the whole state as one file, atomically."""
        save_tensors(path, self.tensors(), {"step": self.step, "preset": self.preset, "config": asdict(self.config)})

    def load(self, path: Path) -> None:
        """Restore a state written by `save`.

        Raises:
            CheckpointError: the file is damaged.
            ValueError: it belongs to another configuration; the differing keys are named.
        """
        tensors, record = load_tensors(path)
        mine = json.loads(json.dumps({"preset": self.preset, **asdict(self.config)}))
        theirs = {"preset": record["preset"], **record["config"]}
        free = {"save_every", "log_every", "diagnose_every"}
        differing = sorted(k for k in mine.keys() | theirs.keys() if k not in free and mine.get(k) != theirs.get(k))
        if differing:
            raise ValueError(
                f"expected a run of the same configuration, got other values of {', '.join(differing)} in {path}; "
                "use another run directory"
            )
        self.jepa.load_state_dict({k[5:]: v for k, v in tensors.items() if k.startswith("jepa.")})
        for name, parameter in zip(self.names, self.jepa.trainable(), strict=True):
            self.optimizer.state[parameter] = {
                "step": torch.tensor(float(record["step"]), device=self.device),
                "exp_avg": tensors[f"exp_avg.{name}"].to(self.device),
                "exp_avg_sq": tensors[f"exp_avg_sq.{name}"].to(self.device),
            }
        self.step = record["step"]


def newest_state(run: Path) -> list[Path]:
    """Saved states of a run directory, newest first."""
    return sorted((run / "state").glob("step-*.safetensors"), reverse=True)


def resume(training: Pretraining, run: Path) -> None:
    """Restore the newest valid state of a run; a damaged file is passed over for the one before it."""
    damaged: list[str] = []
    for path in newest_state(run):
        try:
            return training.load(path)
        except CheckpointError as error:
            damaged.append(str(error))
    if damaged:
        raise CheckpointError(f"expected a valid state under {run / 'state'}, got only damaged ones: {damaged[0]}")


def pretrain(
    preset: str,
    source: Source,
    run: Path,
    config: PretrainConfig,
    *,
    validation: Source | None = None,
    device: torch.device | None = None,
    resuming: bool = False,
    report: Callable[[int, dict], None] | None = None,
    stop_at: int | None = None,
) -> RDJEPA:
    """Pretrain a preset, or go on with a run.

    The run directory receives `metrics.jsonl` (one line per `log_every` steps), `state/` (the two newest states),
    `data.json` (normalisation and checksums of every trajectory used) and nothing else; write the finished model
    with `rdjepa.training.checkpoint.save`.

    Args:
        preset: "paper", "small" or "nano".
        source: trajectories of the source systems.
        run: run directory.
        config: optimisation settings.
        validation: trajectories for the diagnostics; none are computed without.
        device: where to train; CPU when None.
        resuming: go on from the newest valid state in `run`, if there is one.
        report: called after every step with the step count and the latest metrics.
        stop_at: end early at this step with the state saved; the schedules do not change.

    Returns:
        The model with the online encoder and the predictor of the last step, and a fresh decoder.

    Raises:
        ValueError: unknown preset, a used directory without `resuming`, or a run of another configuration or data.
    """
    if preset not in PRESETS:
        raise ValueError(f"expected a preset among {', '.join(PRESETS)}, got {preset!r}")
    device = device or torch.device("cpu")
    training = Pretraining(preset, config, device)
    _claim(run, source, resuming)
    if resuming:
        resume(training, run)
    _trim(run / "metrics.jsonl", training.step)
    held_out = (
        [validation.batch(VALIDATION_SEED, i, 16, training.side, config.targets).to(device) for i in range(8)]
        if validation
        else []
    )
    last = min(config.steps, stop_at or config.steps)
    started, first, window = time.perf_counter(), training.step, []
    with ThreadPoolExecutor(1) as reader, (run / "metrics.jsonl").open("a") as log:

        def fetch(index: int) -> Batch:
            return source.batch(config.seed, index, config.batch, training.side, config.targets)

        upcoming = reader.submit(fetch, training.step)
        while training.step < last:
            batch = upcoming.result().to(device)
            upcoming = reader.submit(fetch, training.step + 1)
            metrics = training.update(batch)
            window.append(metrics["loss"])
            step = training.step
            due = {
                name: step % every == 0 or step == last
                for name, every in (
                    ("log", config.log_every),
                    ("diagnose", config.diagnose_every),
                    ("save", config.save_every),
                )
            }
            if due["log"] or due["diagnose"]:
                rate = (step - first) / (time.perf_counter() - started)
                metrics |= {"loss": sum(window) / len(window), "steps_per_second": rate}
                window = []
                if due["diagnose"] and held_out:
                    with autocast(device, config.precision):
                        metrics |= diagnose(training.jepa, held_out)
                log.write(json.dumps({"step": step} | metrics) + "\n")
                log.flush()
            if due["save"]:
                training.save(run / "state" / f"step-{step:08d}.safetensors")
                for old in newest_state(run)[2:]:
                    old.unlink()
            if report:
                report(step, metrics)
    model = build(preset, seed=config.seed)
    model.encoder.load_state_dict(training.jepa.encoder.state_dict())
    model.predictor.load_state_dict(training.jepa.predictor.state_dict())
    return model


def _claim(run: Path, source: Source, resuming: bool) -> None:
    """Record the data of a new run, or check that a resumed run gets the same data."""
    record = {
        "normalizers": {name: n.to_dict() for name, n in source.normalizers.items()},
        "trajectories": source.checksums,
    }
    path = run / "data.json"
    if path.exists():
        if not resuming:
            raise ValueError(f"expected an empty run directory, got a run at {run}; resume it or choose another")
        if json.loads(path.read_text())["trajectories"] != source.checksums:
            raise ValueError(f"expected the trajectories that {run} was started with, got others; use the same data")
    else:
        write_atomically(path, json.dumps(record, indent=1).encode())


def _trim(path: Path, step: int) -> None:
    """Drop the lines of steps after the state that a resumed run starts from."""
    if path.exists():
        kept = []
        for line in path.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
        write_atomically(path, "".join(kept).encode())


def scaled(config: PretrainConfig, steps: int) -> PretrainConfig:
    """The same profile over another number of steps; the warm-up keeps its share, schedules end with the run."""
    return replace(config, steps=steps, warmup=max(1, round(config.warmup * steps / config.steps)))
