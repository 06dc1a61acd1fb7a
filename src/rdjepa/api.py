"""The public functions that combine several subpackages: pretrain, load, adapt, evaluate."""

import copy
import dataclasses
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rdjepa import forecasters
from rdjepa.adaptation.adapt import PROFILES, AdaptConfig, train, windows
from rdjepa.adaptation.forecaster import Forecaster, why_unsavable
from rdjepa.checks import Count, Few, Seed, checked, of_class
from rdjepa.data import manifest, readers, store, survey
from rdjepa.data.fields import block_means, channels_first, validate
from rdjepa.data.inspection import Inspection
from rdjepa.data.readers import Reading
from rdjepa.data.regrid import has_walls
from rdjepa.data.simulate import simulate
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.well import checksum
from rdjepa.errors import ArgumentError, DataError, Note
from rdjepa.evaluation import curve_file
from rdjepa.evaluation.evaluate import Forecast, Row
from rdjepa.evaluation.evaluate import evaluate as _evaluate
from rdjepa.evaluation.learning_curve import Fit, LearningCurve, Measured, measure, spans
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.linear import Corrected, Linear
from rdjepa.forecasters.persistence import extrapolation, persistence
from rdjepa.forecasters.rates import Rates
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.io import cards, checkpoint, sealed
from rdjepa.io.atomic import write_bytes
from rdjepa.io.provenance import fingerprint, software
from rdjepa.models.device import device_named
from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import PRESETS, RDJEPA, with_fresh_decoder
from rdjepa.pretraining import config as profiles
from rdjepa.pretraining import processes
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.diagnostics import diagnose
from rdjepa.pretraining.engine import Engine, explain_out_of_memory, fastest
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.loop import METRICS, read_metrics
from rdjepa.pretraining.loop import pretrain as _pretrain
from rdjepa.pretraining.targets import TargetConfig
from rdjepa.pretraining.tensorboard import Board
from rdjepa.progress import Progress
from rdjepa.systems import SOURCES, family_names, get
from rdjepa.version import __version__
from rdjepa.viz import figures

BASES = ("none", "linear")
AUTO = "auto"
CURVE_UPDATES, CURVE_DRAWS = 60, 2  # of a learning curve; meant for ten minutes on two cores, not yet timed

# systems of the error that is recorded with a checkpoint; one trajectory takes a fraction of a second to simulate
CHECKED = ("gray-scott", "brusselator", "ginzburg-landau", "schnakenberg")


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
    systems: Sequence[str] | None = None,
    steps: int | None = None,
    precision: str | None = None,
    ema: tuple[float, float] | None = None,
    device: str = "auto",
    engine: Engine | None = None,
    resume: bool = False,
    stop_at: int | None = None,
    tensorboard: bool = False,
    progress: Progress | None = None,
) -> RDJEPA:
    """Pretrain on stored trajectories of several systems (S2.3-S2.5).

    Stored frames that are finer than the preset's grid are averaged over blocks of points. Under torchrun every
    process calls this function; the process of rank 0 writes files and reports progress.

    Args:
        preset: "paper", "small" or "nano".
        data: directory of stored trajectories; the pool trains, the validation split is for diagnostics only.
        out: run directory; the finished model is in its folder `model`.
        systems: what `rdjepa.systems.get` takes; the five sources when None. Batches depend on their order.
        steps: length of the run; the preset's own when None. Warm-up keeps its share.
        precision: "float32" or "bfloat16"; the preset's own when None.
        ema: averaging coefficient of the target encoder, first and last; the preset's own when None.
        device: "auto", "cpu", "cuda".
        engine: choices of speed and memory; what suits the device when None.
        resume: continue from the newest valid state in `out`.
        stop_at: save and return at this step; a later call with `resume` continues.
        tensorboard: write the diagnostics for TensorBoard too, into the folder `tensorboard` of `out`.
        progress: called after every step with its number, the number of steps and the latest diagnostics as text.

    Returns:
        The pretrained model.

    Raises:
        ArgumentError: unknown preset, precision or system, systems without trajectories, coefficients outside [0, 1),
            or a directory of another run.
        DivergenceError: loss or gradient is not finite; the states saved before remain.
        InsufficientMemoryError: more memory is needed than there is; the message says what to lower.
    """
    if preset not in PRESETS:
        raise ArgumentError(f"expected a preset among {', '.join(PRESETS)}, got {preset!r}; name one of them")
    config, run = profiles.PROFILES[preset], Path(out)
    if steps is not None:
        config = profiles.scaled(config, steps)
    if precision is not None:
        config = dataclasses.replace(config, precision=precision)
    if ema is not None:
        config = dataclasses.replace(config, ema=ema)
    files = _systems(SOURCES if systems is None else systems)
    torch_device = device_named(device)
    engine = engine or fastest(torch_device)
    started = time.perf_counter()
    with processes.joined(torch_device) as ranks, explain_out_of_memory():
        torch_device = ranks.device(torch_device)
        dtype = torch.bfloat16 if config.precision == "bfloat16" else torch.float32
        mapped = run / "frames" if engine.frames == "mapped" else None
        # The leader writes the memory-mapped frames; the other processes then only open them.
        with ranks.leader_first():
            grid = PRESETS[preset].grid
            dataset = Dataset.open(data, list(files), dtype=dtype, mapped=mapped, grid=grid)
            validation = Dataset.open(data, list(files), "validation", dtype=dtype, grid=grid)
        # Only training data: validation is read for diagnostics, a few batches in all.
        if engine.frames == "device":
            dataset = Dataset(dataset.frames.to(torch_device), dataset.normalizers, dataset.checksums)
        with Board(run / "tensorboard" if tensorboard and ranks.leads else None) as board:
            model = _pretrain(
                preset,
                dataset,
                run,
                config,
                validation=validation,
                device=torch_device,
                engine=engine,
                ranks=ranks,
                resuming=resume,
                stop_at=stop_at,
                progress=progress,
                line=board.write,
            )
        if ranks.leads:
            setup = {"engine": dataclasses.asdict(engine), "processes": ranks.size, **_nearest(data, dataset.checksums)}
            _finish(model, preset, run, config, dataset, validation, started, setup, files)
        ranks.wait()
    return checkpoint.load(run / "model")


def _systems(given: Sequence[str]) -> dict[str, str]:
    """Return a dictionary: name of every system -> the argument that named it, a name or a file that defines it."""
    files = {get(each).name: each for each in given}
    if not files or len(files) < len(given):
        raise ArgumentError(
            f"expected at least one system and each once, got {', '.join(given) or 'none'}; name each once"
        )
    return files


def _nearest(data: Path | str, keys: Iterable[str]) -> dict[str, Any]:
    """Return, under "nearest", how near the families among the trajectories come to what is held out."""
    families = [key for key in map(Key.parse, keys) if key.system in family_names()]
    near = {str(key): store.read_record(store.path_of(data, key)).nearest for key in families}
    return {"nearest": manifest.nearest_of_all(near)} if near else {}


def _finish(
    model: RDJEPA,
    preset: str,
    run: Path,
    config: profiles.PretrainConfig,
    dataset: Dataset,
    validation: Dataset,
    started: float,
    setup: Mapping[str, Any],
    files: Mapping[str, str],
) -> None:
    """Write the folder `model` of a run: weights, configuration, data, curves and card."""
    metrics = read_metrics(run / METRICS)
    record = {
        "config": dataclasses.asdict(config),
        "steps": metrics[-1]["step"],
        "systems": list(files),
        "grid": model.config.grid,
        "trajectories": dataset.frames.counts,
        "validation_trajectories": validation.frames.counts,
        "diagnostics": next((m for m in reversed(metrics) if "latent_loss" in m), {}),
        "seconds_of_last_session": round(time.perf_counter() - started, 1),
        "software": software(),
        "data": fingerprint(dataset.checksums),
        **setup,
    }
    # the latent loss of the written weights, to be compared after loading
    record["check"] = latent_error(model, dataset.normalizers, files)
    folder = run / "model"
    folder.mkdir(exist_ok=True)
    for name in (checkpoint.DATA, METRICS):
        write_bytes(folder / name, (run / name).read_bytes())
    figures.curves(metrics, folder / "curves.png")
    checkpoint.save(model, folder, record, cards.model_card(preset, record))


def latent_error(model: RDJEPA, normalizers: Mapping[str, Normalizer], files: Mapping[str, str] | None = None) -> float:
    """Return the mean latent loss on the first validation trajectory of some systems.

    The online encoder gives the targets. The loss is recorded with a checkpoint, so that a loaded checkpoint can be
    compared with the run that wrote it. The systems are those of `CHECKED` that the model was trained on, or the first
    of its systems where it was trained on none of these.

    Args:
        model: a pretrained model.
        normalizers: the field statistics of its pretraining data, by system.
        files: system -> file that defines it, for systems of the user.
    """
    files = files or {}
    checked = [name for name in CHECKED if name in normalizers] or list(normalizers)[:1]
    physical = {name: simulate(files.get(name, name), split="validation").fields for name in checked}
    fields = {
        name: [channels_first(normalizers[name].standardize(block_means(each, model.config.grid)))]
        for name, each in physical.items()
    }
    # A checkpoint has no target encoder; a copy of the online one makes the loss a function of the stored weights.
    jepa = JEPA(copy.deepcopy(model.encoder), model.predictor).to(next(model.parameters()).device)
    batch = Dataset(Frames.of(fields), normalizers).batch(0, 0, 16, model.config.side, TargetConfig())
    return diagnose(jepa, [batch.to(next(model.parameters()).device)])["latent_loss"]


def adapt(
    model: RDJEPA | ForecastModel | str | Path,
    trajectories: Any,
    *,
    steps: int | None = None,
    seed: int | None = None,
    config: AdaptConfig | None = None,
    normalizer: Normalizer | None = None,
    base: str = "none",
    resample: bool = False,
    reading: Reading | None = None,
    stride: int | str = 1,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
    observe: Callable[[int, str, Forecaster], None] | None = None,
    at: Collection[int] = (),
) -> Forecaster:
    """Adapt a pretrained model to one or a few trajectories of a system (S2.6), or train a control on them.

    Args:
        model: a pretrained RD-JEPA or its name or directory; its encoder is frozen, its predictor trained further, its
            decoder starts from fresh weights. Or a forecaster from `rdjepa.forecasters.build`, trained as it is. The
            argument itself is not changed.
        trajectories: `Trajectory` objects, (T, H, W, 2) or (K, T, H, W, 2) arrays, objects of xarray, or a path of any
            known format, or a list of these.
        steps: updates; those of `config` when None.
        seed: of the fresh weights and of the order of windows; that of `config` when None.
        config: all optimization settings; those of the preset when None.
        normalizer: field statistics; taken from the trajectories themselves when None.
        base: "none", the network forecasts the field, as in the paper; or "linear", it corrects a linear forecast of
            every point from its last four values, fitted to the trajectories: for fields that change slowly.
        resample: bring fields on another grid to the model's (`rdjepa.data.regrid`), instead of refusing them; the
            forecaster then takes and makes fields on its own grid.
        reading: what the data do not say themselves: their place in a file, order of axes, components, frame interval.
        stride: take every so many frames, counted back from the last; "auto" takes the one that `inspect` suggests. It
            is kept in the record, where `evaluate` finds it; contexts of `Forecaster.forecast` need it too.
        device: "auto", "cpu", "cuda", or a device of torch.
        progress: called after every update with its number, the number of updates and the loss as a short text.
        observe: called after the updates `at` with their number, "last" and the forecaster as it is then; where
            weights are averaged once more, with "averaged". It is valid during the call alone.
        at: numbers of updates.

    Returns:
        A forecaster in physical units. Its record holds the settings, and under "seconds" what computing the constant
        features and the updates took.

    Raises:
        ArgumentError: no update, or an unknown base.
        DataError: trajectories that cannot be used (the message says why).
        CheckpointError: a missing or damaged checkpoint.
        DivergenceError: the loss is not finite.
    """
    _require_base(base)
    of_class(model, str | Path | RDJEPA | ForecastModel, "a model")
    of_class(config, AdaptConfig | None, "config")
    of_class(normalizer, Normalizer | None, "normalizer")
    torch_device = device if isinstance(device, torch.device) else device_named(device)
    start = checkpoint.load(model) if isinstance(model, str | Path) else model
    settings = config or PROFILES.get(start.preset if isinstance(start, ForecastModel) else start.name, AdaptConfig())
    settings = dataclasses.replace(
        settings,
        steps=settings.steps if steps is None else steps,
        seed=settings.seed if seed is None else seed,
    )
    forecaster, pretrained = _forecaster(start, settings.seed)
    if refusal := why_unsavable(forecaster):
        warnings.warn(refusal, UserWarning, stacklevel=2)
    given, taken = _read(trajectories, forecaster.grid, resample, reading, stride)
    support = checked_fields(given, forecaster.grid)
    statistics = normalizer or Normalizer.fit(support, "support")
    if base == "linear":
        standard = (torch.from_numpy(channels_first(statistics.standardize(fields))) for fields in support)
        forecaster = Corrected(forecaster, Linear.fit(list(standard)))
    forecaster.to(torch_device)
    started = time.perf_counter()
    data = windows(forecaster, support, statistics, torch_device)
    prepared = time.perf_counter()

    def observed(updates: int, weights: str, model: ForecastModel) -> None:
        if observe:
            observe(updates, weights, Forecaster(model, statistics, {}))

    losses = train(forecaster, data, settings, progress, observed, at)
    record = {
        "forecaster": forecaster.name,
        "preset": forecaster.preset,
        "fingerprint": pretrained,
        "settings": forecaster.settings(),
        "config": dataclasses.asdict(settings),
        "stride": taken,
        "support": [str(trajectory.key or "without a key") for trajectory in given],
        "checksums": [checksum(fields) for fields in support],
        "seconds": {
            "features": round(prepared - started, 3),
            "adapt": round(time.perf_counter() - prepared, 3),
        },
        "software": software(),
    }
    return Forecaster(forecaster, statistics, record, losses)


def evaluate(
    forecaster: Forecaster | Callable[[np.ndarray], np.ndarray],
    trajectories: Any,
    *,
    metrics: Sequence[str] = ("relative_l2", "gradient_l1"),
    resample: bool = False,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Evaluate a forecaster on every window of whole trajectories, in physical units (S3.4).

    Trajectories that the forecaster was adapted to are evaluated too, with a warning. Frames are taken at the stride
    that it was adapted with, unless `reading` names one.

    Args:
        forecaster: an adapted forecaster, or any function from (B, 4, H, W, C) to (B, 5, H, W, C).
        trajectories: as for `adapt`.
        metrics: names from `rdjepa.metrics.METRICS`.
        resample: as for `adapt`; the errors are those on the grid of the forecaster.
        reading: as for `adapt`.
        progress: called with the number of trajectories done, their total and the key of the latest.

    Returns:
        One row per metric, horizon and trajectory: the mean over its windows.
    """
    if not (isinstance(forecaster, Forecaster) or callable(forecaster)):
        raise ArgumentError(f"expected a forecaster or a function, got {forecaster!r}; give one")
    function = forecaster.forecast if isinstance(forecaster, Forecaster) else forecaster
    of_class(metrics, list | tuple, "metrics")
    grid = forecaster.model.grid if resample and isinstance(forecaster, Forecaster) else None
    if isinstance(forecaster, Forecaster):
        reading = forecaster.reading(reading)
    given = readers.load(trajectories, grid=grid, reading=reading)
    if isinstance(forecaster, Forecaster):
        seen = set(forecaster.record.get("checksums", ()))
        known = sum(checksum(trajectory.fields) in seen for trajectory in given)
        if known:
            warnings.warn(
                f"expected trajectories that the forecaster has not seen, got {known} of {len(given)} that it was "
                "adapted to; its errors on those say nothing about new ones",
                UserWarning,
                stacklevel=2,
            )
    return _evaluate(function, given, metrics=tuple(metrics), progress=progress)


def learning_curve(
    trajectories: Any,
    *,
    model: RDJEPA | ForecastModel | str | Path = "nano",
    updates: int = CURVE_UPDATES,
    draws: int = CURVE_DRAWS,
    seed: int = 777,
    base: str = "none",
    resample: bool = False,
    reading: Reading | None = None,
    stride: int | str = 1,
    device: str | torch.device = "auto",
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> LearningCurve:
    """Measure the error against the number K of support trajectories, by leaving others out: is K enough?

    Beside the adapted model stand the same architecture from random weights, where there is a pretrained one, a
    regression of the local rates of change (`rdjepa.forecasters.rates`), persistence and linear extrapolation. A single
    trajectory is cut into spans of time, which stand for trajectories; spans of one recording are more alike.

    Args:
        trajectories: as for `adapt`; at least two, or one of 18 frames.
        model: as for `adapt`.
        updates: of every adaptation; the same for every K.
        draws: of what is left out and of the order of the others; one has no bars.
        seed: of the draws, of fresh weights and of the order of windows.
        base: as for `adapt`, for the model and its control.
        resample: as for `adapt`.
        reading: as for `adapt`.
        stride: as for `adapt`.
        device: as for `adapt`.
        out: CSV file of the rows, written after every fit; rows in it that were measured with the same data, model and
            settings are not measured again.
        progress: called after every fit with its number, the number of fits and a line on it.

    Raises:
        ArgumentError, DataError, CheckpointError, DivergenceError: as for `adapt`; too few trajectories, or a damaged
            file `out`.
    """
    checked(updates, Count, "updates")
    checked(draws, Few, "draws")
    checked(seed, Seed, "seed")
    _require_base(base)
    of_class(model, str | Path | RDJEPA | ForecastModel, "a model")
    known: dict[tuple[str, int, int, str], list[Measured]] = {}
    for row in curve_file.read(out) if out is not None and curve_file.is_curve(Path(out)) else ():
        known.setdefault((row.forecaster, row.k, row.draw, row.identity), []).append(row)
    start = checkpoint.load(model) if isinstance(model, str | Path) else model
    grid = start.grid if isinstance(start, ForecastModel) else start.config.grid
    given, _ = _read(trajectories, grid, resample, reading, stride)
    checked_fields(given, grid)
    single = len(given) == 1
    parts = spans(given[0]) if single else given
    settings = {"steps": updates, "seed": seed, "base": base, "device": device}
    subject = start.name if isinstance(start, ForecastModel) else RDJEPAForecaster.name
    models = {subject: start}
    if isinstance(start, RDJEPA):
        models["scratch"] = forecasters.build("scratch", start.name, seed=seed)
    fits: dict[str, Fit] = {name: partial(_adapted, each, settings) for name, each in models.items()}
    walls = any(has_walls(part) for part in parts)
    fits["rates"] = lambda support: Rates.fit([each.fields for each in support], walls).forecast
    unfitted: dict[str, Forecast] = {"persistence": persistence, "extrapolation": extrapolation}
    sums = [checksum(part.fields) for part in parts]
    origin = {subject: _weights(start), "scratch": start.name, "version": __version__}

    def identity(name: str, support: Sequence[int], left_out: Sequence[int]) -> str:
        of = {"left out": [sums[i] for i in left_out], "support": [sums[i] for i in support], "version": __version__}
        trained = {"updates": updates, "seed": seed, "base": base, "origin": origin[name]} if name in origin else {}
        return sealed.seal(of | trained)[:16]

    rows = measure(
        parts,
        fits,
        unfitted,
        number=draws,
        seed=seed,
        known=known,
        identity=identity,
        progress=progress,
        keep=None if out is None else lambda rows: curve_file.write(rows, out),
    )
    full = PROFILES.get(start.preset if isinstance(start, ForecastModel) else start.name, AdaptConfig()).steps
    notes = [f"{updates} updates for every K; adapt takes {full} by default"] if updates != full else []
    if single:
        notes.append(f"one trajectory is cut into {len(parts)} spans of time, more alike than trajectories are")
    return LearningCurve(tuple(rows), subject, len(parts), single, tuple(notes))


def _adapted(model: RDJEPA | ForecastModel, settings: Mapping[str, Any], support: Sequence[Trajectory]) -> Forecast:
    """Return the forecast of a model adapted to a support, without what was said when the data were read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        return adapt(model, support, **settings).forecast


def _weights(model: RDJEPA | ForecastModel) -> str:
    """Return a fingerprint of a model's weights."""
    known = getattr(model, "fingerprint", "")
    return known or sealed.seal({name: sha256(x.cpu().numpy()).hexdigest() for name, x in model.state_dict().items()})


def inspect(
    source: Any, *, model: RDJEPA | ForecastModel | str | Path = "nano", reading: Reading | None = None
) -> Inspection:
    """Look at a source of trajectories: what it holds, how it would be read, and what `adapt` would do with it.

    Large files are not read whole; the result says how many frames were looked at. `print` shows all of it.

    Args:
        source: as for `adapt`.
        model: as for `adapt`; its grid counts.
        reading: as for `adapt`.

    Raises:
        DataError: the source is unknown or damaged.
        CheckpointError: a missing or damaged checkpoint.
    """
    start = checkpoint.load(model) if isinstance(model, str | Path) else model
    return survey.inspect(source, reading, start.grid if isinstance(start, ForecastModel) else start.config.grid)


def _read(
    source: Any, grid: int | None, resample: bool, reading: Reading | None, stride: int | str
) -> tuple[list[Trajectory], int]:
    """Read trajectories at a stride, and say so where none was asked for and another is suggested."""
    if isinstance(stride, str) and stride != AUTO:
        raise ArgumentError(f'expected a stride of a whole number or "{AUTO}", got {stride!r}; give one of these')
    reading = reading or Reading()
    if isinstance(stride, str):
        stride = survey.inspect(source, dataclasses.replace(reading, stride=None)).stride
    if stride != 1:
        reading = dataclasses.replace(reading, stride=stride)
    given = readers.load(source, grid=grid if resample else None, reading=reading)
    found = survey.inspect(given) if reading.stride is None else None
    if found and found.stride > 1:
        warnings.warn(f"frame stride {found.pace}", Note, stacklevel=3)
    return given, reading.step


def _require_base(base: str) -> None:
    if base not in BASES:
        raise ArgumentError(f"expected a base among {', '.join(BASES)}, got {base!r}; name one of them")


def checked_fields(trajectories: Sequence[Trajectory], grid: int | None) -> list[np.ndarray]:
    """Return the fields (T, H, W, 2) of the support trajectories after checking shape, values and grid.

    Raises:
        DataError: no trajectory, invalid fields, or another grid than the model's.
    """
    support = [validate(trajectory.fields) for trajectory in trajectories]
    if not support:
        raise DataError("expected at least one trajectory, got none; give some")
    for fields in support:
        if grid is not None and fields.shape[1:3] != (grid, grid):
            raise DataError(
                f"expected fields on a {grid} x {grid} grid, got {fields.shape[1]} x {fields.shape[2]}; "
                "bring them to it with --resample (resample=True), or resample them yourself"
            )
    return support


def _forecaster(model: RDJEPA | ForecastModel, seed: int) -> tuple[ForecastModel, str]:
    """Return a trainable forecaster and the fingerprint of its pretrained weights, empty where there are none."""
    if isinstance(model, ForecastModel):
        return copy.deepcopy(model), ""
    return RDJEPAForecaster(with_fresh_decoder(model, seed)), model.fingerprint
