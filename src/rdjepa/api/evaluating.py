"""The public functions that measure errors on trajectories: evaluate and compare."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from rdjepa.adaptation.differences import grid_to
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.checks import of_class
from rdjepa.data import readers
from rdjepa.data.readers import Reading
from rdjepa.data.soundness import why_repeated
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.well import checksum
from rdjepa.errors import ArgumentError, Note, warn
from rdjepa.evaluation.evaluate import Forecast, Row, require_context, require_metrics, warn_of_vanishing
from rdjepa.evaluation.evaluate import evaluate as _evaluate
from rdjepa.evaluation.metrics import DEFAULT_METRICS
from rdjepa.forecasters.base import CONTEXT
from rdjepa.forecasters.persistence import RULES
from rdjepa.progress import Progress


def evaluate(
    forecaster: Forecaster | Callable[[np.ndarray], np.ndarray],
    trajectories: Any,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    context: int = CONTEXT,
    resample: bool = False,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Evaluate a forecaster on every window of whole trajectories, in physical units (S3.4).

    Trajectories that the forecaster was adapted to are evaluated too, with a warning. Frames are taken at the stride
    that it was adapted with, unless `reading` names one.

    Args:
        forecaster: an adapted forecaster, or any function from (B, T, H, W, C) to (B, 5, H, W, C), arrays of NumPy; it
            may return tensors.
        trajectories: as for `adapt`.
        metrics: names from `rdjepa.metrics.METRICS`.
        context: frames T that are given, those before a window too, as far as there are some; the paper gives 4. What
            is forecast is the same for any number.
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
    metrics, context = require_metrics(metrics), require_context(context)
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
    return _evaluate(forecast, given, metrics=metrics, progress=progress, context=context)


def compare(
    forecaster: Forecaster,
    trajectories: Any,
    rivals: Mapping[str, Forecaster | Forecast] | None = None,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    context: int = CONTEXT,
    resample: bool = False,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> dict[str, list[Row]]:
    """Evaluate a forecaster and its rivals on the same windows: on its grid, with its frame stride and components.

    Beside it stand what it is made of, where it is combined with simple forecasts (its network alone,
    "rd-jepa-alone", the "equation" of each context, and "autoregression" and "linear" where they have a share) or
    anchored in its context (its network alone), and "persistence" and "extrapolation". It has the name of its network:
    "rd-jepa" is here what studies call "rd-jepa-auto-augmented" where nothing else was asked of `adapt`.

    Args:
        forecaster: an adapted forecaster.
        trajectories: as for `evaluate`.
        rivals: names, and forecasters or functions as for `evaluate`, in physical units.
        metrics: as for `evaluate`.
        context: as for `evaluate`; frames before the newest four are for what is fitted to a context, and for rivals.
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
    metrics, context = require_metrics(metrics), require_context(context)
    rivals = of_class({} if rivals is None else rivals, Mapping, "rivals")
    named = {name: _function(rival) for name, rival in rivals.items()}
    if taken := named.keys() & {*forecaster.parts(), *RULES}:
        raise ArgumentError(f"expected rivals with names of their own, got {min(taken)!r}; give it another one")
    others = {name: rival for name, rival in rivals.items() if isinstance(rival, Forecaster)}
    _require_read_alike(forecaster, others, reading or Reading())
    given = _unseen(forecaster, trajectories, resample, reading)
    for rival in others.values():
        rival.require_fitting(given)
        _warn_of_seen([checksum(each.fields) for each in given], rival.record.get("checksums", ()))
    warn_of_vanishing(given, metrics)
    rows: dict[str, list[Row]] = {}
    for position, trajectory in enumerate(given):
        own = {name: part.forecast for name, part in forecaster.parts().items()}
        for name, forecast in (own | named | {name: each for name, each in RULES.items() if name not in own}).items():
            found = _evaluate(forecast, [trajectory], metrics=metrics, context=context)
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
    """Return what forecasts, from contexts (B, T, H, W, C) in physical units: of a forecaster, or a function as it is.

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
    grid = grid_to(forecaster.model.grid, resample)
    given = readers.load(trajectories, grid=grid, reading=forecaster.reading(reading))
    forecaster.require_fitting(given)
    return _told_apart(given, forecaster.record.get("checksums", ()))


def _told_apart(given: list[Trajectory], seen: Collection[str] = ()) -> list[Trajectory]:
    """Return trajectories whose rows can be told apart by regime and index, and warn of some.

    Those repeat another, or are among `seen`, the checksums of what a forecaster was adapted to. Of several systems or
    splits some have the same regime and index; then keys are left out, and rows number all trajectories by their
    position.
    """
    checksums = [checksum(each.fields) for each in given]
    _warn_of_seen(checksums, seen)
    if repeated := len(given) - len(set(checksums)):
        warn(f"{why_repeated(repeated, len(given))}, as means count them as often")
    keys = [(each.key.regime, each.key.index) for each in given if each.key]
    if len(set(keys)) < len(keys):
        warn("some trajectories have the same regime and index; rows number them by position", Note)
        return [replace(each, key=None) for each in given]
    return given


def _warn_of_seen(checksums: Sequence[str], seen: Collection[str]) -> None:
    """Warn of trajectories that a forecaster was adapted to."""
    if known := sum(each in seen for each in checksums):
        warn(
            f"expected trajectories that the forecaster has not seen, got {known} of {len(checksums)} that it was "
            "adapted to; its errors on those say nothing about new ones",
        )
