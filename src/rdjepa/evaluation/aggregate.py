"""From rows to the numbers of a table: means over trajectories, then mean and spread over runs (S3.4).

A run is one support-set selection. The spread over runs measures sensitivity to the support set; the heterogeneity of
test trajectories is not in it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rdjepa.errors import ArgumentError
from rdjepa.evaluation.evaluate import Row

Run = TypeVar("Run")


@dataclass(frozen=True)
class Summary:
    """A value over runs.

    Attributes:
        mean: over runs.
        sd: sample standard deviation over runs (divisor n - 1); NaN for a single run.
        runs: number n of runs.
    """

    mean: float
    sd: float
    runs: int


def per_horizon(rows: Iterable[Row], metric: str, regime: str | None = None) -> dict[int, float]:
    """Mean over trajectories at each horizon, every trajectory with equal weight.

    Args:
        rows: of one run.
        metric: which rows to take.
        regime: take only this regime; None takes all.

    Raises:
        ArgumentError: no row is left, a trajectory occurs twice, or the horizons have different trajectories.
    """
    values: dict[int, dict[tuple[str, int], float]] = defaultdict(dict)
    for row in rows:
        if row.metric != metric or regime not in (None, row.regime):
            continue
        trajectory = (row.regime, row.trajectory)
        if trajectory in values[row.horizon]:
            raise ArgumentError(
                f"expected one row per horizon and trajectory, got two for {trajectory} at horizon {row.horizon}; "
                "aggregate the rows of one run and one system at a time"
            )
        values[row.horizon][trajectory] = row.value
    if not values:
        place = "" if regime is None else f" in regime {regime!r}"
        raise ArgumentError(f"expected rows of metric {metric!r}{place}, got none; evaluate it first")
    if len({frozenset(by_trajectory) for by_trajectory in values.values()}) > 1:
        raise ArgumentError("expected the same trajectories at every horizon, got different ones; evaluate them again")
    return {horizon: math.fsum(values[horizon].values()) / len(values[horizon]) for horizon in sorted(values)}


def horizon_average(rows: Iterable[Row], metric: str, regime: str | None = None) -> float:
    """Mean over horizons, with equal weight, of the means over trajectories: the run-level value of the tables."""
    means = per_horizon(rows, metric, regime)
    return math.fsum(means.values()) / len(means)


def over_runs(values: Mapping[Run, float]) -> Summary:
    """Mean and sample standard deviation of run-level values.

    Args:
        values: run (its support seed) -> value.

    Raises:
        ArgumentError: there is no run.
    """
    if not values:
        raise ArgumentError("expected the value of at least one run, got none; run one")
    numbers = np.array(list(values.values()), dtype=np.float64)
    sd = float(numbers.std(ddof=1)) if len(numbers) > 1 else math.nan
    return Summary(float(numbers.mean()), sd, len(numbers))


def reductions(model: Mapping[Run, float], baseline: Mapping[Run, float]) -> dict[Run, float]:
    """Percentage reduction 100 (1 - model / baseline) of each run, paired by support-set selection.

    Raises:
        ArgumentError: the runs differ, or an error of the baseline is not above zero.
    """
    if set(model) != set(baseline):
        raise ArgumentError(
            f"expected the same runs of model and baseline, got {sorted(map(str, model))} and "
            f"{sorted(map(str, baseline))}; run what is missing"
        )
    if any(not value > 0 for value in baseline.values()):
        raise ArgumentError(
            "expected baseline errors above zero, got one that is not; a reduction of it has no meaning"
        )
    return {run: 100.0 * (1.0 - value / baseline[run]) for run, value in model.items()}


def paired_reduction(model: Mapping[Run, float], baseline: Mapping[Run, float]) -> Summary:
    """Mean and sample standard deviation of `reductions`: a mean of matched ratios, not a ratio of means."""
    return over_runs(reductions(model, baseline))
