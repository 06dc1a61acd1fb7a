"""Errors of forecasters that are fitted to some of several trajectories, on those that are left out.

In every draw some trajectories are left out and measured on, the others are shuffled; the first K of them are the
support. Within a draw supports of different K are nested and measured on the same windows, so differences between two K
are paired. Draws differ in what is left out and in the order, which gives the bars.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rdjepa.checks import Few, Seed, checked
from rdjepa.data.soundness import require_change
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.evaluation.evaluate import Forecast, evaluate
from rdjepa.progress import Progress

METRIC = "relative_l2"
SPANS = 5  # at most, of a single trajectory
LEFT_OUT = 5  # one of so many trajectories is left out, at least one
WINDOWS = 8  # at most, of every left-out trajectory, at even distances; neighboring ones overlap and say little more

Fit = Callable[[Sequence[Trajectory]], Forecast]


class Draw(NamedTuple):
    """Positions of trajectories: those that supports are taken from, in order, and those that are left out."""

    order: tuple[int, ...]
    left_out: tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """The error of one forecaster on the left-out trajectories of one draw, at one horizon.

    Attributes:
        forecaster: name.
        k: number of support trajectories; 0 for a forecaster that needs none.
        draw: number of the draw, from 0.
        horizon: lead time in frames, from 1.
        value: relative L2 error, the mean over windows and then over left-out trajectories.
        identity: of support, left-out data and settings: what has the same one need not be measured again.
    """

    forecaster: str
    k: int
    draw: int
    horizon: int
    value: float
    identity: str = ""


def counts(available: int) -> tuple[int, ...]:
    """Return the K that are tried: 1, 2, 5, 10, 20, 50, ... up to the number available, and that number."""
    series = (step * 10**power for power in range(len(str(available))) for step in (1, 2, 5))
    return tuple(sorted({k for k in series if k < available} | {available}))


def draws(trajectories: int, number: int, seed: int = 0) -> list[Draw]:
    """Return draws that take turns in what they leave out, a fifth of the trajectories and at least one.

    Raises:
        DataError: fewer than two trajectories.
        ArgumentError: fewer than one draw.
    """
    number = checked(number, Few, "draws")
    if trajectories < 2:
        raise DataError(
            f"expected at least two trajectories, one of them to be left out, got {trajectories}; give more"
        )
    rng = np.random.default_rng(checked(seed, Seed, "seed"))
    circle = rng.permutation(trajectories)
    size = _left_out(trajectories)
    found = []
    for draw in range(number):
        turned = np.roll(circle, -turn(draw, trajectories))
        order = rng.permutation(turned[size:])
        found.append(Draw(tuple(order.tolist()), tuple(turned[:size].tolist())))
    return found


def _left_out(trajectories: int) -> int:
    """Return how many trajectories a draw leaves out."""
    return max(1, trajectories // LEFT_OUT)


def turn(draw: int, trajectories: int) -> int:
    """Return where on the circle of trajectories a draw begins; draws of one turn leave out the same ones."""
    return draw * _left_out(trajectories) % trajectories


def spans(trajectory: Trajectory) -> list[Trajectory]:
    """Cut a trajectory into equal spans of time, five at most, each of one window at least.

    Raises:
        DataError: there are too few frames for two, or a component is constant in one.
    """
    frames, window = len(trajectory.fields), FORECASTING.length
    number = min(SPANS, frames // window)
    if number < 2:
        raise DataError(
            f"expected at least two trajectories, or one of {2 * window} frames to be cut into spans of time, got one "
            f"of {frames}; give more"
        )
    edges = np.linspace(0, frames, number + 1).astype(int).tolist()
    for a, b in pairwise(edges):  # adaptation would refuse it after others were adapted to
        require_change(trajectory.fields[a:b], f"frames {a} to {b - 1}, a span of time of the only trajectory")
    return [
        replace(trajectory, fields=trajectory.fields[a:b], times=trajectory.times[a:b], key=None)
        for a, b in pairwise(edges)
    ]


def measure(
    trajectories: Sequence[Trajectory],
    fits: Mapping[str, Fit],
    unfitted: Mapping[str, Forecast],
    *,
    number: int,
    seed: int = 0,
    known: Sequence[Measured] = (),
    identity: Callable[[str, Sequence[int], Sequence[int]], str] = lambda name, support, left_out: "",
    progress: Progress | None = None,
    keep: Callable[[Sequence[Measured]], Any] | None = None,
) -> list[Measured]:
    """Fit every forecaster to every support and measure it on what is left out.

    Args:
        trajectories: at least two, on one grid.
        fits: name -> function from a support to a forecast.
        unfitted: name -> forecast that needs no support.
        number: of draws.
        seed: of the draws.
        known: rows measured before; those of the same forecaster, K, draw and identity are taken.
        identity: of a forecaster, the positions of its support and of what is left out.
        progress: called after every fit with its number, their total and a line on it.
        keep: called after every fit with all rows so far.

    Returns:
        A row per forecaster, K, draw and horizon.
    """
    chosen = draws(len(trajectories), number, seed)
    tried = counts(len(chosen[0].order))
    jobs = [(draw, k, name) for draw in range(len(chosen)) for k in (0, *tried) for name in (fits if k else unfitted)]
    before: dict[tuple[str, int, int, str], list[Measured]] = {}
    for row in known:
        before.setdefault((row.forecaster, row.k, row.draw, row.identity), []).append(row)
    rows: list[Measured] = []
    for done, (draw, k, name) in enumerate(jobs, start=1):
        support, left_out = chosen[draw].order[:k], chosen[draw].left_out
        mark = identity(name, support, left_out)
        found = before.get((name, k, draw, mark))
        if found is None:
            forecast = fits[name]([trajectories[i] for i in support]) if k else unfitted[name]
            errors = _errors(forecast, [trajectories[i] for i in left_out])
            found = [Measured(name, k, draw, horizon, value, mark) for horizon, value in errors.items()]
        rows += found
        if keep:
            keep(rows)
        if progress:
            error = statistics.fmean(row.value for row in found)
            progress(done, len(jobs), f"draw {draw + 1}, K = {k}: {name} {error:.4f}")
    return rows


def _errors(forecast: Forecast, left_out: Sequence[Trajectory]) -> dict[int, float]:
    """Return horizon -> error, the mean over windows at even distances and then over trajectories."""
    rows = []
    for place, trajectory in enumerate(left_out):
        stride = -(-FORECASTING.count(len(trajectory.fields)) // WINDOWS)
        # keys are left out, as two trajectories may have the same
        found = evaluate(forecast, [replace(trajectory, key=None)], metrics=(METRIC,), stride=stride)
        rows += [replace(row, trajectory=place) for row in found]
    return per_horizon(rows, METRIC)
