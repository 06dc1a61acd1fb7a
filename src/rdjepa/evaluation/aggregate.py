"""Aggregation of the rows of one run: means over trajectories, then over horizons (S3.4).

Mean and spread over the support sets of a study, and its paired reductions, are in `rdjepa.study.report.summary`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable

from rdjepa.errors import ArgumentError
from rdjepa.evaluation.evaluate import Row


def per_horizon(rows: Iterable[Row], metric: str, regime: str | None = None) -> dict[int, float]:
    """Return the mean over trajectories at each horizon, every trajectory with equal weight.

    Args:
        rows: of one run.
        metric: which rows to take.
        regime: take only this regime; None takes all.

    Returns:
        horizon -> mean, in the metric's own units.

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
    """Return the mean over horizons, with equal weight, of the means over trajectories: a run's value in the tables."""
    means = per_horizon(rows, metric, regime)
    return math.fsum(means.values()) / len(means)
