"""The public functions over several rooms of the house: pretrain, load, adapt, evaluate."""

import copy
import dataclasses
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rdjepa.adaptation.adapt import PROFILES, AdaptConfig, train, windows
from rdjepa.adaptation.forecaster import Forecaster, why_unsavable
from rdjepa.data import readers
from rdjepa.data.fields import channels_first, validate
from rdjepa.data.normalization import Normalizer
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.evaluation.evaluate import Row
from rdjepa.evaluation.evaluate import evaluate as _evaluate
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.linear import Corrected, Linear
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.io import cards, checkpoint
from rdjepa.io.atomic import write_bytes
from rdjepa.io.provenance import fingerprint, software
from rdjepa.models.device import device_named
from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import PRESETS, RDJEPA, with_fresh_decoder
from rdjepa.pretraining import config as profiles
from rdjepa.pretraining import processes
from rdjepa.pretraining.dataset import Source
from rdjepa.pretraining.diagnostics import diagnose
from rdjepa.pretraining.engine import Engine, fastest, saying_what_to_lower
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.loop import pretrain as _pretrain
from rdjepa.pretraining.targets import TargetConfig
from rdjepa.pretraining.tensorboard import Board
from rdjepa.systems import SOURCES
from rdjepa.viz import figures

Progress = Callable[[int, int], None]

BASES = ("none", "linear")

CHECKED = ("gray-scott", "brusselator", "ginzburg-landau", "schnakenberg")  # those that take a fraction of a second


def load(source: str | Path) -> RDJEPA:
    """Load a pretrained RD-JEPA; its decoder has fresh weights until `adapt`.

    Args:
        source: name of a shipped checkpoint ("nano"), a directory that `pretrain` wrote, or a hub id "owner/name".

    Raises:
        CheckpointError: missing, damaged or foreign; the shipped names are listed.
    """
    return checkpoint.load(source)


def pretrain(
    preset: str,
    data: str | Path,
    out: str | Path,
    *,
    steps: int | None = None,
    precision: str | None = None,
    ema: tuple[float, float] | None = None,
    device: str = "auto",
    engine: Engine | None = None,
    resume: bool = False,
    stop_at: int | None = None,
    tensorboard: bool = False,
    progress: Callable[[int, int, dict], None] | None = None,
) -> RDJEPA:
    """Pretrain on stored trajectories of the five source systems (S2.3-S2.5).

    Under torchrun every process calls this; the leading one writes and reports.

    Args:
        preset: "paper", "small" or "nano".
        data: directory of stored trajectories; the pool trains, the validation split is for diagnostics only.
        out: run directory; the finished model is in its folder `model`.
        steps: length of the run; the preset's own when None. Warm-up keeps its share.
        precision: "float32" or "bfloat16"; the preset's own when None.
        ema: averaging coefficient of the target encoder, first and last; the preset's own when None.
        device: "auto", "cpu", "cuda".
        engine: choices of speed and memory; what suits the device when None.
        resume: go on from the newest valid state in `out`.
        stop_at: save and return at this step; a later call with `resume` goes on.
        tensorboard: write the diagnostics for TensorBoard too, into the folder `tensorboard` of `out`.
        progress: called with (step, steps, metrics) after every step.

    Returns:
        The pretrained model.

    Raises:
        ArgumentError: unknown preset or precision, missing systems, coefficients outside [0, 1), or a directory of
            another run.
        DivergenceError: loss or gradient is not finite; the saved states are those before.
        InsufficientMemoryError: a `MemoryError`; the sentence says what to lower.
    """
    if preset not in PRESETS:
        raise ArgumentError(f"expected a preset among {', '.join(PRESETS)}, got {preset!r}")
    config, run = profiles.PROFILES[preset], Path(out)
    if steps is not None:
        config = profiles.scaled(config, steps)
    if precision is not None:
        config = dataclasses.replace(config, precision=precision)
    if ema is not None:
        config = dataclasses.replace(config, ema=ema)
    where = device_named(device)
    engine = engine or fastest(where)
    started = time.perf_counter()
    with processes.joined(where) as ranks, saying_what_to_lower():
        where = ranks.device(where)
        dtype = torch.bfloat16 if config.precision == "bfloat16" else torch.float32
        mapped = run / "frames" if engine.frames == "mapped" else None
        with ranks.leader_first():
            source = Source.open(data, SOURCES, dtype=dtype, mapped=mapped)
            validation = Source.open(data, SOURCES, "validation", dtype=dtype)
        if engine.frames == "device":
            source = Source(source.frames.to(where), source.normalizers, source.checksums)
        with Board(run / "tensorboard" if tensorboard and ranks.leads else None) as board:
            model = _pretrain(
                preset,
                source,
                run,
                config,
                validation=validation,
                device=where,
                engine=engine,
                ranks=ranks,
                resuming=resume,
                stop_at=stop_at,
                report=None if progress is None else lambda step, metrics: progress(step, config.steps, metrics),
                line=board.write,
            )
        if ranks.leads:
            setup = {"engine": dataclasses.asdict(engine), "processes": ranks.size}
            _finish(model, preset, run, config, source, validation, started, setup)
        ranks.wait()
    return checkpoint.load(run / "model")


def _finish(
    model: RDJEPA,
    preset: str,
    run: Path,
    config: profiles.PretrainConfig,
    source: Source,
    validation: Source,
    started: float,
    setup: Mapping[str, Any],
) -> None:
    """Write the folder `model` of a run: weights, configuration, data, curves and card."""
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    record = {
        "config": dataclasses.asdict(config),
        "steps": metrics[-1]["step"],
        "trajectories": source.frames.counts,
        "validation_trajectories": validation.frames.counts,
        "diagnostics": next((m for m in reversed(metrics) if "latent_loss" in m), {}),
        "seconds_of_last_session": round(time.perf_counter() - started, 1),
        "software": software(),
        "data": fingerprint(source.checksums),
        **setup,
    }
    record["check"] = latent_error(model, source.normalizers)
    folder = run / "model"
    folder.mkdir(exist_ok=True)
    for name in ("data.json", "metrics.jsonl"):
        write_bytes(folder / name, (run / name).read_bytes())
    figures.curves(metrics, folder / "curves.png")
    checkpoint.save(model, folder, record, cards.model_card(preset, record))


def latent_error(model: RDJEPA, normalizers: Mapping[str, Normalizer]) -> float:
    """The latent loss on the first validation trajectory of four systems, with the online encoder as target.

    It is recorded with a checkpoint, so that a loaded one can be held against the run that made it.

    Args:
        model: a pretrained model.
        normalizers: the field statistics of its pretraining data, by system.
    """
    fields = {
        name: [channels_first(normalizers[name].standardize(simulate(name, split="validation").fields))]
        for name in CHECKED
    }
    jepa = JEPA(copy.deepcopy(model.encoder), model.predictor).to(next(model.parameters()).device)
    batch = Source(Frames.of(fields), normalizers).batch(0, 0, 16, model.config.side, TargetConfig())
    return diagnose(jepa, [batch.to(next(model.parameters()).device)])["latent_loss"]


def adapt(
    model: RDJEPA | ForecastModel | str | Path,
    trajectories: Any,
    *,
    steps: int | None = None,
    seed: int = 777,
    config: AdaptConfig | None = None,
    normalizer: Normalizer | None = None,
    base: str = "none",
    device: str = "auto",
    progress: Progress | None = None,
) -> Forecaster:
    """Adapt a pretrained model to one or a few trajectories of a system (S2.6), or train a control on them.

    Args:
        model: a pretrained RD-JEPA or its name or directory; its encoder is frozen, its predictor goes on training,
            its decoder starts fresh. Or a forecaster from `rdjepa.forecasters.build`, trained as it is. The
            argument itself is not changed.
        trajectories: `Trajectory` objects, (T, H, W, 2) or (K, T, H, W, 2) arrays, or a path (HDF5, npz, npy), or
            a list of these.
        steps: updates; the preset's own when None.
        seed: of the fresh weights and of the order of windows.
        config: all optimisation settings; `steps` and `seed` override its own.
        normalizer: field statistics; taken from the trajectories themselves when None.
        base: "none", the network forecasts the field, as in the paper; or "linear", it corrects a linear forecast of
            every point from its last four values, fitted to the trajectories: for fields that change slowly.
        device: "auto", "cpu", "cuda".
        progress: called with (update, updates).

    Returns:
        A forecaster in physical units.

    Raises:
        ArgumentError: unfit trajectories (the sentence says why), an unknown checkpoint or base.
    """
    if base not in BASES:
        raise ArgumentError(f"expected a base among {', '.join(BASES)}, got {base!r}")
    where = device_named(device)
    forecaster, weights = _forecaster(model, seed)
    if refusal := why_unsavable(forecaster):
        warnings.warn(refusal, UserWarning, stacklevel=2)
    given = readers.load(trajectories)
    support = fit_fields(given, forecaster.grid)
    settings = config or PROFILES.get(forecaster.preset, AdaptConfig())
    settings = dataclasses.replace(settings, seed=seed, steps=settings.steps if steps is None else steps)
    if settings.steps < 1:
        raise ArgumentError(f"expected at least one update, got {settings.steps}")
    statistics = normalizer or Normalizer.fit(support, "support")
    if base == "linear":
        standard = (torch.from_numpy(channels_first(statistics.standardize(fields))) for fields in support)
        forecaster = Corrected(forecaster, Linear.fit(list(standard)))
    forecaster.to(where)
    started = time.perf_counter()
    data = windows(forecaster, support, statistics, where)
    losses = train(
        forecaster, data, settings, None if progress is None else lambda step, _: progress(step, settings.steps)
    )
    record = {
        "forecaster": forecaster.name,
        "preset": forecaster.preset,
        "fingerprint": weights,
        "settings": forecaster.settings(),
        "config": dataclasses.asdict(settings),
        "support": [str(trajectory.key or "without a key") for trajectory in given],
        "seconds": round(time.perf_counter() - started, 2),
        "software": software(),
    }
    return Forecaster(forecaster, statistics, record, losses)


def evaluate(
    forecaster: Forecaster | Callable[[np.ndarray], np.ndarray],
    trajectories: Any,
    *,
    metrics: Sequence[str] = ("relative_l2", "gradient_l1"),
    progress: Progress | None = None,
) -> list[Row]:
    """Errors of a forecaster on whole trajectories, every window, in physical units (S3.4).

    Args:
        forecaster: an adapted forecaster, or any function from (B, 4, H, W, C) to (B, 5, H, W, C).
        trajectories: as for `adapt`.
        metrics: names from `rdjepa.metrics.METRICS`.
        progress: called with (trajectory, trajectories).

    Returns:
        One row per metric, horizon and trajectory: the mean over its windows.
    """
    function = forecaster.forecast if isinstance(forecaster, Forecaster) else forecaster
    return _evaluate(function, readers.load(trajectories), metrics=tuple(metrics), progress=progress)


def fit_fields(trajectories: Sequence[Trajectory], grid: int | None) -> list[np.ndarray]:
    """Fields (T, H, W, 2) of the support trajectories, each checked against what the model can take.

    Raises:
        DataError: the first thing that is wrong, in one sentence.
    """
    support = [validate(trajectory.fields) for trajectory in trajectories]
    if not support:
        raise DataError("expected at least one trajectory, got none; give some")
    for fields in support:
        if grid is not None and fields.shape[1:3] != (grid, grid):
            raise DataError(
                f"expected fields on a {grid} x {grid} grid, got {fields.shape[1]} x {fields.shape[2]}; "
                "resample them to the grid that the model was pretrained on"
            )
    return support


def _forecaster(model: Any, seed: int) -> tuple[ForecastModel, str]:
    """Trainable copy and fingerprint of what `adapt` was given."""
    if isinstance(model, str | Path):
        model = checkpoint.load(model)
    if isinstance(model, ForecastModel):
        return copy.deepcopy(model), ""
    return RDJEPAForecaster(with_fresh_decoder(model, seed)), model.fingerprint
