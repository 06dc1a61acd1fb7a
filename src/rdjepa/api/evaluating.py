"""The public functions that look at data and forecasters: evaluate, learning_curve, inspect."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch

from rdjepa.adaptation.adapt import PROFILES, AdaptConfig, fitted
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.api.adapting import BASES, adapt
from rdjepa.api.start import grid_of, loaded
from rdjepa.api.support import AUTO, checked_fields, domain_of, read_at_stride
from rdjepa.checks import Count, Few, Seed, among, checked, of_class
from rdjepa.data import readers, survey
from rdjepa.data.borders import PERIODIC, WALLS
from rdjepa.data.inspection import Inspection
from rdjepa.data.readers import Reading
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.well import checksum
from rdjepa.errors import ArgumentError, Note, warn
from rdjepa.evaluation import curve_file
from rdjepa.evaluation.evaluate import Forecast, Row, warn_of_vanishing
from rdjepa.evaluation.evaluate import evaluate as _evaluate
from rdjepa.evaluation.learning_curve import Fit, LearningCurve, measure, spans
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import extrapolation, persistence
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.forecasters.scratch import Scratch
from rdjepa.io import checkpoint, sealed
from rdjepa.io.provenance import source_of
from rdjepa.models.device import device_named, in_float32
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.models.seeds import seeded
from rdjepa.progress import Progress
from rdjepa.version import __version__

CURVE_UPDATES, CURVE_DRAWS = 40, 2  # of a learning curve: eight minutes on two cores


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
        forecaster: an adapted forecaster, or any function from (B, 4, H, W, C) to (B, 5, H, W, C), arrays of NumPy; it
            may return tensors.
        trajectories: as for `adapt`.
        metrics: names from `rdjepa.metrics.METRICS`.
        resample: as for `adapt`; the errors are those on the grid of the forecaster.
        reading: as for `adapt`.
        progress: called with the number of trajectories done, their total and the key of the latest.

    Returns:
        One row per metric, horizon and trajectory: the mean over its windows.

    Raises:
        ArgumentError: neither a forecaster nor a function, a function with `resample`, or unknown metrics.
        DataError: trajectories that cannot be used (the message says why).
    """
    forecast = _function(forecaster)
    of_class(metrics, list | tuple, "metrics")
    if isinstance(forecaster, Forecaster):
        given = _unseen(forecaster, trajectories, resample, reading)
    elif resample:
        raise ArgumentError(
            "expected a forecaster where fields are resampled, which has a grid, got a function; compare it with a "
            "forecaster on what that takes (rdjepa.compare), or resample the fields yourself"
        )
    else:
        given = _told_apart(readers.load(trajectories, reading=reading))
    warn_of_vanishing(given, metrics)
    return _evaluate(forecast, given, metrics=tuple(metrics), progress=progress)


def compare(
    forecaster: Forecaster,
    trajectories: Any,
    rivals: Mapping[str, Forecaster | Forecast] | None = None,
    *,
    metrics: Sequence[str] = ("relative_l2", "gradient_l1"),
    resample: bool = False,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> dict[str, list[Row]]:
    """Evaluate a forecaster and its rivals on the same windows: on its grid, with its frame stride and components.

    Beside it stand what it is made of, where it is combined with simple forecasts (its network alone,
    "rd-jepa-alone", and the "equation" of each context) or anchored in its context (its network alone), and
    "persistence" and "extrapolation".

    Args:
        forecaster: an adapted forecaster.
        trajectories: as for `evaluate`.
        rivals: names, and forecasters or functions as for `evaluate`, in physical units.
        metrics: as for `evaluate`.
        resample: as for `evaluate`.
        reading: as for `evaluate`.
        progress: as for `evaluate`.

    Returns:
        Name -> rows, as those of `evaluate`.

    Raises:
        ArgumentError, DataError: as for `evaluate`; or rivals without names, one with a name that is taken, one of
            another frame stride or other components where `reading` names none, or one that these trajectories do not
            fit.
    """
    of_class(forecaster, Forecaster, "a forecaster")
    of_class(metrics, list | tuple, "metrics")
    rivals = of_class({} if rivals is None else rivals, Mapping, "rivals")
    named = {name: _function(rival) for name, rival in rivals.items()}
    simple = {"persistence": persistence, "extrapolation": extrapolation}
    if taken := named.keys() & {*forecaster.parts(), *simple}:
        raise ArgumentError(f"expected rivals with names of their own, got {min(taken)!r}; give it another one")
    others = {name: rival for name, rival in rivals.items() if isinstance(rival, Forecaster)}
    _require_read_alike(forecaster, others, reading or Reading())
    given = _unseen(forecaster, trajectories, resample, reading)
    for rival in others.values():
        _require_new(rival, given)
    warn_of_vanishing(given, metrics)
    rows: dict[str, list[Row]] = {}
    for position, trajectory in enumerate(given):
        own = {name: part.forecast for name, part in forecaster.parts().items()}
        for name, forecast in (own | named | {name: each for name, each in simple.items() if name not in own}).items():
            found = _evaluate(forecast, [trajectory], metrics=tuple(metrics))
            place = found[0].trajectory if trajectory.key else position
            rows.setdefault(name, []).extend(replace(row, trajectory=place) for row in found)
        if progress is not None:
            progress(position + 1, len(given), str(trajectory.key or ""))
    return rows


def _require_read_alike(forecaster: Forecaster, rivals: Mapping[str, Forecaster], reading: Reading) -> None:
    """Refuse rivals that take other frames or components than the forecaster, where a reading does not say which."""
    for name, rival in rivals.items():
        own, others = (list(map(str, each.record.get("names", ()))) for each in (forecaster, rival))
        reordered = own != others and sorted(own) == sorted(others)
        for what, one, another, said in (
            ("frame stride", forecaster.stride, rival.stride, reading.stride),
            ("components", forecaster.components, rival.components, reading.components),
            ("order of components", own, others if reordered else own, reading.components),
        ):
            if one != another and not said:
                raise ArgumentError(
                    f"expected rivals of the forecaster's {what}, {_listed(one)}, got {_listed(another)} of {name!r}; "
                    "adapt it to the same, or say for all what is read (reading=)"
                )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "all")


def _function(given: Forecaster | Forecast) -> Forecast:
    """Return what forecasts, from contexts (B, 4, H, W, C) in physical units: of a forecaster, or a function as it is.

    Raises:
        ArgumentError: it is neither; a network is none, as it takes standardized tensors.
    """
    if isinstance(given, Forecaster):
        return given.forecast
    if isinstance(given, torch.nn.Module) or not callable(given):
        raise ArgumentError(
            f"expected a forecaster or a function, got {type(given).__name__}; give what rdjepa.adapt returned, or a "
            "function from contexts (B, 4, H, W, C) to forecasts (B, 5, H, W, C) in physical units"
        )
    return given


def _unseen(forecaster: Forecaster, trajectories: Any, resample: bool, reading: Reading | None) -> list[Trajectory]:
    """Read trajectories as a forecaster takes them, and warn of those that it was adapted to."""
    grid = forecaster.model.grid if resample else None
    given = readers.load(trajectories, grid=grid, reading=forecaster.reading(reading))
    _require_new(forecaster, given)
    return _told_apart(given)


def _told_apart(given: list[Trajectory]) -> list[Trajectory]:
    """Return trajectories whose rows can be told apart by regime and index.

    Of several systems or splits some have the same; then keys are left out, and rows number all trajectories by their
    position.
    """
    keys = [(each.key.regime, each.key.index) for each in given if each.key]
    if len(set(keys)) < len(keys):
        warn("some trajectories have the same regime and index; rows number them by position", Note)
        return [replace(each, key=None) for each in given]
    return given


def _require_new(forecaster: Forecaster, given: Sequence[Trajectory]) -> None:
    """Refuse trajectories that a forecaster cannot take, and warn of those that it was adapted to."""
    forecaster.require_fitting(given)
    seen = set(forecaster.record.get("checksums", ()))
    known = sum(checksum(trajectory.fields) in seen for trajectory in given)
    if known:
        warn(
            f"expected trajectories that the forecaster has not seen, got {known} of {len(given)} that it was "
            "adapted to; its errors on those say nothing about new ones",
        )


@in_float32
def learning_curve(
    trajectories: Any,
    *,
    model: RDJEPA | ForecastModel | str | Path = checkpoint.DEFAULT,
    steps: int = CURVE_UPDATES,
    draws: int = CURVE_DRAWS,
    seed: int = 777,
    base: str = AUTO,
    resample: bool = False,
    reading: Reading | None = None,
    stride: int | str = 1,
    device: str | torch.device = "auto",
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> LearningCurve:
    """Measure the error against the number K of support trajectories, by leaving others out: is K enough?

    Beside the adapted model stand the same architecture from random weights, where there is a pretrained one, a linear
    forecast of every point from its last four values (`rdjepa.forecasters.linear`), the equation of each context
    (`rdjepa.forecasters.equation`) and its autoregression (`rdjepa.forecasters.autoregression`), persistence and linear
    extrapolation. A single trajectory is cut into spans of time, which stand for trajectories;
    spans of one recording are more alike.

    Args:
        trajectories: as for `adapt`; at least two, or one of 18 frames.
        model: as for `adapt`.
        steps: updates of every adaptation; the same for every K.
        draws: of what is left out and of the order of the others; one has no bars.
        seed: of the draws, of fresh weights and of the order of windows.
        base: as for `adapt`, for the model and its control.
        resample: as for `adapt`.
        reading: as for `adapt`.
        stride: as for `adapt`.
        device: as for `adapt`.
        out: CSV file of the rows, written after every fit; rows in it that were measured with the same data, model and
            settings are not measured again, and others stay in it. Those of a forecaster whose class was typed at a
            prompt or in a notebook always are: whether its code is the same cannot be told.
        force: let `out` replace a file of another kind.
        progress: called after every fit with its number, the number of fits and a line on it.

    Raises:
        ArgumentError, DataError, CheckpointError, DivergenceError: as for `adapt`; too few trajectories, or a damaged
            file `out`.
        OutputError: `out` is a file of another kind, or cannot be written.
    """
    torch_device = device_named(device)
    steps, draws, seed = checked(steps, Count, "steps"), checked(draws, Few, "draws"), checked(seed, Seed, "seed")
    among(base, BASES, "a base")
    start = loaded(model)
    of_class(out, str | Path | None, "out")
    before = [] if out is None else curve_file.begin(out, force)
    grid = grid_of(start)
    given, _ = read_at_stride(trajectories, grid, resample, reading, stride)
    checked_fields(given, grid)
    warn_of_vanishing(given)
    single = len(given) == 1
    parts = spans(given[0]) if single else given
    settings = {"steps": steps, "seed": seed, "base": base, "encoder": AUTO, "decoder": AUTO, "retain": AUTO}
    subject = start.name if isinstance(start, ForecastModel) else RDJEPAForecaster.name
    models = {subject: start}
    origin: dict[str, Any] = {subject: _weights(start)}
    if isinstance(start, RDJEPA):
        origin["scratch"] = [start.name, start.config.to_dict()]
        with seeded(seed):
            models["scratch"] = Scratch(RDJEPA(start.config, start.name))
    domain = domain_of(parts, reading.boundary if reading else None)
    settled = {**settings, "reading": Reading(boundary=WALLS if domain.walls else PERIODIC), "device": torch_device}
    fits: dict[str, Fit] = {name: partial(_adapted, each, settled) for name, each in models.items()}
    for kind in (each for each in (Linear, Autoregression, Equation) if each.name != subject):
        fits[kind.name] = partial(_simple, kind(parts[0].fields.shape[-1]), domain, torch_device)
    unfitted: dict[str, Forecast] = {"persistence": persistence, "extrapolation": extrapolation}
    sums = [checksum(part.fields) for part in parts]

    def identity(name: str, support: Sequence[int], left_out: Sequence[int]) -> str:
        data = {"left out": [sums[i] for i in left_out], "support": [sums[i] for i in support], **domain.settings()}
        of: dict[str, Any] = data | {"version": __version__}
        trained = settings | {"origin": origin[name]} if name in origin else {}
        return sealed.seal(of | trained)[:16]

    rows = measure(
        parts,
        fits,
        unfitted,
        number=draws,
        seed=seed,
        known=before,
        identity=identity,
        progress=progress,
        keep=None if out is None else lambda rows: curve_file.write(list(dict.fromkeys([*rows, *before])), out),
    )
    full = PROFILES.get(start.preset, AdaptConfig()).steps
    notes = [f"{steps} updates for every K; adapt takes up to {full} by default"] if steps != full else []
    if single:
        notes.append(f"one trajectory is cut into {len(parts)} spans of time, more alike than trajectories are")
    return LearningCurve(tuple(rows), subject, len(parts), single, tuple(notes))


def _adapted(model: RDJEPA | ForecastModel, settings: Mapping[str, Any], support: Sequence[Trajectory]) -> Forecast:
    """Return the forecast of a model adapted to a support, without what was said when the data were read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        return adapt(model, support, **settings).forecast


def _simple(model: ForecastModel, domain: Domain, device: torch.device, support: Sequence[Trajectory]) -> Forecast:
    """Return the forecast of what is fitted to a support, or needs its field statistics alone."""
    fields = [each.fields for each in support]
    normalizer = Normalizer.fit(fields, "support")
    return Forecaster(fitted(model, fields, normalizer, device, domain), normalizer).forecast


def _weights(model: RDJEPA | ForecastModel) -> str:
    """Return a fingerprint of what decides how a model learns: its weights, sizes and preset, of a forecaster its code
    and rates too.
    """
    if isinstance(model, RDJEPA) and checkpoint.untouched(model):
        found: dict[str, Any] = {"weights": model.fingerprint}
    else:
        found = {name: sha256(x.cpu().numpy()).hexdigest() for name, x in model.state_dict().items()}
    found["preset"] = model.preset
    if isinstance(model, RDJEPA):
        found["config"] = model.config.to_dict()
    if isinstance(model, ForecastModel):
        kind = type(model)
        found["source"] = source_of(kind) or uuid4().hex  # code that cannot be read is another every time
        groups = [{key: str(x) for key, x in each.items() if key != "params"} for each in model.parameter_groups()]
        found |= {"class": kind.__qualname__, "settings": model.settings(), "groups": groups}
        found["constants"] = {key: str(x) for key, x in model.constants.items()}
    return sealed.seal(found)


def inspect(
    source: Any, *, model: RDJEPA | ForecastModel | str | Path = checkpoint.DEFAULT, reading: Reading | None = None
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
        ArgumentError: no model.
    """
    return survey.inspect(source, reading, grid_of(loaded(model)))
