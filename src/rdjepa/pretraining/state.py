"""The state of a pretraining with any objective, its optimizer step (S2.5), and its files."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from rdjepa.errors import ArgumentError, CheckpointError, DivergenceError, Note, warn
from rdjepa.io import sealed
from rdjepa.io.tensors import load_tensors, save_tensors
from rdjepa.models.device import autocast
from rdjepa.models.rdjepa import RDJEPA, ModelConfig, build
from rdjepa.models.replay import Replayed
from rdjepa.models.seeds import seeded
from rdjepa.pretraining import objectives
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.engine import Engine
from rdjepa.pretraining.monitor import LatentQueue
from rdjepa.pretraining.objectives.base import ObjectiveModel, require_outcome
from rdjepa.pretraining.processes import Ranks
from rdjepa.pretraining.schedules import learning_rate
from rdjepa.pretraining.start import check_start

FREE = ("save_every", "log_every", "diagnose_every")  # settings that a resumed run may change
NETWORKS = "jepa."  # begins the names of weights in a state, whatever the objective


class TrainingState:
    """Networks, optimizer and step count; each step is a pure function of (state, step index).

    Args:
        preset: name of the model's sizes.
        config: optimization settings.
        device: where to train.
        engine: choices of speed and memory.
        ranks: this process among those of the run.
        model: sizes and parts of the model; those of the preset when None.
        start: a pretrained model of these sizes, with whose pretrained networks the run begins; none when None.

    Attributes:
        objective: the networks that are trained, and their loss.
        queue: latents of the latest samples, for the diagnostics.
        step: optimizer steps done.
        curves: checksum of the curves up to the state that was restored; "" where there is none.
    """

    def __init__(
        self,
        preset: str,
        config: PretrainConfig,
        device: torch.device,
        engine: Engine = Engine(),  # noqa: B008 - a frozen record
        ranks: Ranks = Ranks(),  # noqa: B008
        model: ModelConfig | None = None,
        start: RDJEPA | None = None,
    ) -> None:
        config = objectives.resolved(config)
        self.preset, self.config, self.device, self.step = preset, config, device, 0
        self.engine, self.ranks, self.curves = engine, ranks, ""
        self.start = start.fingerprint if start else ""
        self.model_config, made = first_networks(preset, config, engine, ranks, model, start)
        self.side = self.model_config.side
        self.objective = made.to(device)
        self.queue = LatentQueue(of=made.watched)
        self.engine.prepare(made.networks())
        self.online = ranks.wrap(self.objective)
        alone = self.engine.replays and ranks.size == 1
        self.replayed = Replayed(self._outcome, self.objective.trainable()) if alone else None
        self.names = [n for n, p in self.objective.named_parameters() if p.requires_grad]
        trained = self.objective.trainable()
        fused = not any(map(torch.is_complex, trained))  # the fused one takes no complex weights
        self.optimizer = torch.optim.AdamW(
            trained, lr=config.peak, betas=config.betas, weight_decay=config.weight_decay, fused=fused
        )

    def update(self, parts: Sequence[Batch]) -> dict[str, float]:
        """Make one optimizer step and what follows it; return loss, gradient norm and the schedules' values.

        Args:
            parts: this process's samples of one batch, in as many passes as the engine accumulates.

        Raises:
            DivergenceError: the loss or a gradient is not finite; weights are those before this step.
        """
        config = self.config
        rate = learning_rate(self.step, config.steps, config.warmup, config.peak, config.minimum)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.device)
        for number, part in enumerate(parts, 1):
            total += self._passed(part, len(parts), number == len(parts))
        norm = nn.utils.clip_grad_norm_(self.objective.trainable(), config.clip)
        # One transfer from the device for both numbers, and before the optimizer changes any weight.
        value, size = torch.stack([self.ranks.mean(total), norm.to(total)]).tolist()
        if not math.isfinite(value) or not math.isfinite(size):
            systems = sorted({system for part in parts for system in part.systems})
            raise DivergenceError(
                f"expected a finite loss and gradient, got {value} and {size} at step {self.step} on "
                f"{', '.join(systems)}; start a new run with a lower peak learning rate"
            )
        self.optimizer.step()
        followed = self.objective.follow(self.step)
        self.step += 1
        return {"loss": value, "gradient_norm": size, "learning_rate": rate, **followed}

    def _passed(self, part: Batch, count: int, last: bool) -> Tensor:
        """Run both passes of one of `count` parts of a batch, and queue its latents; return its share of the loss."""
        tensors = self._filled(part)
        if self.replayed:  # a whole batch
            loss, latent = self.replayed(*tensors)
        else:
            with self._averaging(last):
                loss, latent = self._outcome(*tensors)
                loss = loss / count  # parts are of equal size: the mean of means is the mean
                loss.backward()
        self.queue.push(latent, part.systems)
        return loss.detach()

    def _filled(self, batch: Batch) -> list[Tensor]:
        """Return the tensors of a batch in their order, of the target frames as many as the engine wants."""
        padded = self.engine.compiled or self.replayed  # not with several processes, which replay nothing
        futures = self.engine.futures(batch.futures, len(batch.context)) if padded else batch.futures
        return [value for name, value in vars(replace(batch, futures=futures)).items() if name != "systems"]

    def _outcome(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the objective of the tensors of a batch."""
        with autocast(self.device, self.config.precision):
            return require_outcome(self.online(Batch((), *tensors)), type(self.objective))

    def _averaging(self, last: bool) -> contextlib.AbstractContextManager:
        """Return a context whose backward pass averages gradients over processes, if it is the last one of a step."""
        if isinstance(self.online, DistributedDataParallel) and not last:
            return self.online.no_sync()
        return contextlib.nullcontext()

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights, and both moments of every one that was trained, by name."""
        tensors = {f"{NETWORKS}{name}": value for name, value in self.objective.state_dict().items()}
        for name, parameter in zip(self.names, self.objective.trainable(), strict=True):
            state = self.optimizer.state.get(parameter, {})
            for moment in ("exp_avg", "exp_avg_sq"):
                if moment in state:
                    tensors[f"{moment}.{name}"] = state[moment]
        return tensors

    def finished(self) -> RDJEPA:
        """Return the model as a checkpoint has it: the networks that the objective trained, the others fresh."""
        model = build(self.model_config, seed=self.config.seed)
        model.name = self.preset
        for part in self.objective.kept(self.config.options):
            getattr(model, part).load_state_dict(getattr(self.objective, part).state_dict())
        return model

    def save(self, path: Path, curves: str = "") -> None:
        """Write the complete state as one file, atomically, with the checksum of the run's curves up to it."""
        save_tensors(path, self.tensors(), {"step": self.step, "curves": curves, **self._settings()})

    def _settings(self) -> dict[str, Any]:
        """Return what a state belongs to: preset, sizes, optimization settings and what the run began with."""
        settings = {"preset": self.preset, "model": self.model_config.to_dict(), "config": asdict(self.config)}
        return settings | ({"start": self.start} if self.start else {})

    def load(self, path: Path) -> None:
        """Restore a state written by `save`.

        Raises:
            CheckpointError: the file is damaged, is no state, or has the weights of other networks.
            ArgumentError: it belongs to another configuration; the differing keys are named.
        """
        tensors, record = load_tensors(path, "check the disk")
        if missing := {"step", "config"} - record.keys():
            raise CheckpointError(
                f"expected a state of a pretraining, got a file without its {min(missing)} at {path}; move it away"
            )
        if path.name != state_name(record["step"]):
            raise CheckpointError(f"expected the state {path.stem}, got one of step {record['step']} in {path}")
        # Through JSON, which turns tuples into lists, as the file did.
        own = _flat(sealed.plain(self._settings()))
        stored = _flat(record)
        differing = sorted(k for k in own.keys() | stored.keys() if k not in FREE and own.get(k) != stored.get(k))
        if differing:
            raise ArgumentError(
                f"expected a run of the same configuration, got other values of {', '.join(differing)} in {path}; "
                "use another run directory"
            )
        weights = {k.removeprefix(NETWORKS): v for k, v in tensors.items() if k.startswith(NETWORKS)}
        try:
            self.objective.load_state_dict(weights)
        except RuntimeError as error:
            raise CheckpointError(
                f"expected the weights of the networks of {type(self.objective).__name__}, got those of others in "
                f"{path}; use another run directory, or the class that the run began with"
            ) from error
        # None before the first step, where random weights stay, and of weights that no loss has reached.
        for name, parameter in zip(self.names, self.objective.trainable(), strict=True):
            if f"exp_avg.{name}" in tensors:
                self.optimizer.state[parameter] = {
                    "step": torch.tensor(float(record["step"]), device=self.device),
                    "exp_avg": tensors[f"exp_avg.{name}"].to(self.device),
                    "exp_avg_sq": tensors[f"exp_avg_sq.{name}"].to(self.device),
                }
        self.step, self.curves = record["step"], record.get("curves", "")


def first_networks(
    preset: str,
    config: PretrainConfig,
    engine: Engine,
    ranks: Ranks,
    model: ModelConfig | None = None,
    start: RDJEPA | None = None,
) -> tuple[ModelConfig, ObjectiveModel]:
    """Return the sizes and the networks with which a run begins, for settings that `objectives.resolved` has returned.

    This takes no data, so that a run that cannot begin is refused before any are read.

    Raises:
        ArgumentError: settings that do not fit together, or that no state can hold.
    """
    with seeded(config.seed):
        fresh = build(model or preset)
        config.targets.require_fitting(fresh.config.side)
        check_start(start, fresh.config, config.objective)
        for part in start.pretrained if start else ():
            getattr(fresh, part).load_state_dict(getattr(start, part).state_dict())
        made = objectives.model_class(config.objective)(fresh, config)
    if missing := [name for name in made.kept(config.options) if not hasattr(made, name)]:
        raise ArgumentError(
            f"expected the networks that {type(made).__name__} keeps as its attributes, got no "
            f"{', '.join(missing)}; set them in its constructor, as self.{missing[0]} = model.{missing[0]}"
        )
    if made.whole_batch and ranks.size * engine.accumulate > 1:
        raise ArgumentError(
            f"expected one process and one pass a step with the objective {config.objective}, which compares the "
            f"samples of a batch, got {ranks.size} and {engine.accumulate}; use one of each"
        )
    try:
        sealed.plain(asdict(config))
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"expected settings that a state can hold as JSON, got some that it cannot ({error}); give the options of "
            f"{config.objective} as finite numbers, texts and tuples of them"
        ) from error
    return fresh.config, made


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return preset, sizes and each optimization setting by name.

    A state of the first revision has no sizes, one from before there were objectives, weights or strides names none.
    """
    earlier: dict[str, Any] = {"objective": objectives.DEFAULT, "options": None, "weights": [], "strides": [1]}
    own = {name: settings.get(name) for name in ("preset", "model", "start")}
    return {**own, **earlier, **settings["config"]}


def state_name(step: int) -> str:
    """Return the name of the file of a step's state."""
    return f"step-{step:08d}.safetensors"


def saved_states(run: Path) -> list[Path]:
    """List the saved states of a run directory, newest first."""
    return sorted((run / "state").glob("step-*.safetensors"), reverse=True)


def resume(training: TrainingState, run: Path) -> None:
    """Restore the newest valid state of a run; a damaged file is passed over for the one before it, with a note.

    Raises:
        CheckpointError: there are states, and every one is damaged.
    """
    damaged: list[str] = []
    for path in saved_states(run):
        try:
            training.load(path)
        except CheckpointError as error:
            damaged.append(str(error))
            continue
        if damaged and training.ranks.leads:
            warn(f"the run goes on from {path.name}, since what is newer cannot be used: {damaged[0]}", Note)
        return
    if damaged:
        raise CheckpointError(f"expected a valid state under {run / 'state'}, got only damaged ones: {damaged[0]}")
