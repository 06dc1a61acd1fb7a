"""Evaluation of a forecast on every window of test trajectories (S3.1, S3.4)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rdjepa.checks import checked, of_class
from rdjepa.data.fields import array_of, measured
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError, warn
from rdjepa.evaluation.metrics import DEFAULT_METRICS, METRICS
from rdjepa.progress import Progress

Forecast = Callable[[np.ndarray], np.ndarray]
RELATIVE = "relative_l2"
SCALED = "vrmse"
NEARLY_ZERO = 1e-4  # norm of a field, of the largest in its trajectory
SMALL_VARIANCE = 1e-5  # a hundred times what the metric adds to it
BATCH = 32  # windows per call of a forecast
SCORED = 4  # windows per call of a metric: they fit into the processor's cache, which is twice as fast as all at once
Observer = Callable[[str, np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class Row:
    """One trajectory's error at one horizon, averaged over its windows.

    Attributes:
        metric: a name in `METRICS`.
        horizon: lead time h in stored frames, from 1.
        regime: the regime of the trajectory's key; "" for data without one.
        trajectory: the index in the trajectory's key; its position in the list for data without one.
        value: the error, in the metric's own units.
    """

    metric: str
    horizon: int
    regime: str
    trajectory: int
    value: float


def evaluate(
    forecast: Forecast,
    trajectories: Sequence[Trajectory],
    metrics: Sequence[str] = DEFAULT_METRICS,
    progress: Progress | None = None,
    observe: Observer | None = None,
    stride: int = 1,
    context: int = FORECASTING.context,
) -> list[Row]:
    """Forecast the windows of every trajectory and average the errors within each trajectory.

    Args:
        forecast: context (B, T, H, W, C) to forecasts (B, 5, H, W, C), both in physical units; called with a few
            windows of one trajectory at a time.
        trajectories: what to forecast; taken one at a time, so `store.Stored` keeps only one in memory.
        metrics: names in `METRICS`.
        progress: called with the number of trajectories done, their total and the key of the latest.
        observe: called with the regime and with every batch of forecasts and references (B, 5, H, W, C).
        stride: take every `stride`-th window, from the first; all by default.
        context: frames T that are given, from 4 on: those before a window too, as far as there are some. The windows
            and what is forecast of them are the same for any number.

    Returns:
        One row per metric, horizon and trajectory. Where one component was measured, errors are of that alone, and not
        of the same field one frame earlier beside it (`rdjepa.data.fields.with_second`).

    Raises:
        ArgumentError: an unknown metric, no trajectory, or forecasts of a wrong shape or that are masked, not
            real or not finite, or a metric that gives no usable errors; or a context of fewer than four frames.
    """
    before = require_context(context) - FORECASTING.context
    metrics = require_metrics(metrics)
    if stride < 1:
        raise ArgumentError(f"expected a stride of at least one window, got {stride}; raise it")
    if not len(trajectories):
        raise ArgumentError("expected at least one trajectory to evaluate, got none; give some")
    rows: list[Row] = []
    for position, trajectory in enumerate(trajectories):
        key = trajectory.key
        regime, index = (key.regime, key.index) if key else ("", position)
        see = None if observe is None else partial(observe, regime)
        errors = _errors(forecast, trajectory, metrics, see, stride, before)
        for name, by_horizon in errors.items():
            rows.extend(Row(name, h, regime, index, float(value)) for h, value in enumerate(by_horizon, start=1))
        if progress is not None:
            progress(position + 1, len(trajectories), str(key or ""))
    return rows


def warn_of_vanishing(
    trajectories: Sequence[Trajectory], metrics: Sequence[str] = (RELATIVE,), largest: float = 0.0
) -> None:
    """Warn where errors are relative to hardly anything: huge, or small for the unit's sake; they stay as they are.

    Args:
        trajectories: that errors are measured on.
        metrics: that are measured.
        largest: norm of a frame that is none of theirs, but of the same recording.
    """
    for position, trajectory in enumerate(trajectories if RELATIVE in metrics else ()):
        norms = norms_of(trajectory.fields)
        small = np.flatnonzero(norms[FORECASTING.context :] <= NEARLY_ZERO * max(largest, norms.max()))
        if len(small):
            warn(
                f"expected fields to measure a relative error against, got nearly zero ones in "
                f"{trajectory.key or f'trajectory {position}'} from frame {FORECASTING.context + small[0]}; "
                f"{RELATIVE} says little there, so look at another metric, or leave these frames out"
            )
            break
    for position, trajectory in enumerate(trajectories if SCALED in metrics else ()):
        variances = trajectory.fields[FORECASTING.context :].var(axis=(1, 2), dtype=np.float64)
        if len(variances) and variances.min() <= SMALL_VARIANCE:
            warn(
                f"expected fields whose variance is far above 1e-7 for {SCALED}, got {variances.min():.2g} in "
                f"{trajectory.key or f'trajectory {position}'}; there it depends on the unit, so give them in a larger "
                "one, or look at another metric"
            )
            break


def require_metrics(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return the names of metrics.

    Raises:
        ArgumentError: no list of them, none, or an unknown one.
    """
    names = checked(list(of_class(metrics, list | tuple, "metrics")), tuple[str, ...], "metrics")
    if not names or any(name not in METRICS for name in names):
        raise ArgumentError(f"expected metrics among {', '.join(METRICS)}, got {', '.join(names)!r}; name known ones")
    return names


def require_context(context: int) -> int:
    """Return a number of context frames.

    Raises:
        ArgumentError: it is no whole number from 4 on.
    """
    if checked(context, int, "context") < FORECASTING.context:
        raise ArgumentError(f"expected a context of at least {FORECASTING.context} frames, got {context}; give more")
    return context


def _batches(starts: Sequence[int], before: int, size: int) -> Iterator[tuple[Sequence[int], int]]:
    """Yield starts of windows that have equally many frames before them, at most `before`, and this number."""
    early = [start for start in starts if start < before]
    yield from (([start], start) for start in early)
    for begin in range(len(early), len(starts), size):
        yield starts[begin : begin + size], before


def norms_of(fields: np.ndarray) -> np.ndarray:
    """Return the Euclidean norm of every frame of (T, H, W, C), (T,)."""
    return np.array([np.linalg.norm(frame.astype(np.float64)) for frame in fields])


def _errors(
    forecast: Forecast,
    trajectory: Trajectory,
    metrics: Sequence[str],
    see: Callable[[np.ndarray, np.ndarray], None] | None,
    stride: int,
    before: int,
) -> dict[str, np.ndarray]:
    """Return metric -> (horizons,) means of the errors over every `stride`-th window of one trajectory."""
    fields, own = trajectory.fields, measured(trajectory.fields)
    starts = FORECASTING.starts(len(fields))[::stride]
    totals = {name: np.zeros(FORECASTING.max_offset) for name in metrics}
    for some, earlier in _batches(starts, before, BATCH):
        context, targets = FORECASTING.stack(fields, some, earlier)
        made = array_of(forecast(context))
        predicted = np.asarray(made)
        if predicted.shape != targets.shape:
            raise ArgumentError(
                f"expected forecasts {targets.shape} (windows, horizons, H, W, C), got {predicted.shape}; "
                "return one field per window and horizon, components last"
            )
        if predicted.dtype.kind not in "biuf":
            raise ArgumentError(
                f"expected real forecasts, got {predicted.dtype}; return numbers, and the real part of complex ones"
            )
        if np.ma.is_masked(made):
            raise ArgumentError("expected forecasts with a value at every point, got masked ones; fill them")
        if not np.isfinite(predicted).all():
            raise ArgumentError(
                f"expected finite forecasts, got NaN or infinity for {trajectory.key or 'a trajectory'} in the "
                f"windows from frame {some[0]}; check how the model was trained"
            )
        if see is not None:
            see(predicted, targets)
        for first in range(0, len(targets), SCORED):
            pair = [part[first : first + SCORED, ..., :own].astype(np.float64) for part in (predicted, targets)]
            for part in pair:
                part.flags.writeable = False  # all metrics share it
            for name in totals:  # each once, also one that is named twice
                totals[name] += METRICS[name](*pair).sum(axis=0)
    return {name: total / len(starts) for name, total in totals.items()}
