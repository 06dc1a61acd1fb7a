"""Errors against the number of support trajectories K, by leaving trajectories out: is K enough?

In every draw some trajectories are left out and measured on, the others are shuffled; the first K of them are the
support. Within a draw supports of different K are nested and measured on the same windows, so differences between two K
are paired. Draws differ in what is left out and in the order, which gives the bars.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rdjepa.checks import Few, Seed, checked
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.evaluation.evaluate import Forecast, evaluate
from rdjepa.forecasters import registry
from rdjepa.progress import Progress

METRIC = "relative_l2"
SPANS = 5  # at most, of a single trajectory
LEFT_OUT = 5  # one of so many trajectories is left out, at least one
WINDOWS = 8  # at most, of every left-out trajectory, at even distances; neighboring ones overlap and say little more
CERTAINTY = 0.9
LEAST_FALL = 0.02  # of the error: a smaller fall is none, however certain

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


class Summary(NamedTuple):
    """Mean over draws of the mean over horizons, with the smallest and the largest draw."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class LearningCurve:
    """Errors by forecaster and K.

    Attributes:
        rows: everything that was measured.
        subject: the forecaster that the advice is about.
        trajectories: number of trajectories, or of spans of time of a single one.
        spans: whether they are spans.
        notes: sentences on how it was measured.
    """

    rows: tuple[Measured, ...]
    subject: str
    trajectories: int
    spans: bool = False
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """Every K that was tried."""
        return tuple(sorted({row.k for row in self.rows if row.k}))

    @property
    def names(self) -> tuple[str, ...]:
        """Forecasters, in the order of their first rows."""
        return tuple(dict.fromkeys(row.forecaster for row in self.rows))

    def by_draw(self, name: str, k: int) -> dict[int, float]:
        """Return draw -> error, the mean over horizons, of a forecaster at one K, 0 for those without support."""
        found: dict[int, list[float]] = {}
        for row in self.rows:
            if (row.forecaster, row.k) == (name, k):
                found.setdefault(row.draw, []).append(row.value)
        return {draw: statistics.fmean(values) for draw, values in sorted(found.items())}

    def summary(self, name: str, k: int) -> Summary | None:
        """Return the error of a forecaster at one K over all draws; None where it was not measured."""
        values = list(self.by_draw(name, k).values())
        return Summary(statistics.fmean(values), min(values), max(values)) if values else None

    def fall(self) -> tuple[float, float]:
        """Return by how much the subject's error falls from the last K but one to the last, and the bar of that.

        Both are relative to the error at the last K but one. A mean of paired differences beyond the bar is a fall with
        nine tenths of certainty by Student's t over what draws leave out; the bar is at least `LEAST_FALL`, infinite
        where all leave out the same. Draws that leave out the same trajectories count as one, their mean: to repeat
        them tells nothing new of other trajectories.
        """
        from scipy.stats import t as student

        first, last = (self.by_draw(self.subject, k) for k in self.counts[-2:])
        by_left_out: dict[int, list[float]] = {}
        for draw in first.keys() & last.keys():
            by_left_out.setdefault(_turn(draw, self.trajectories), []).append(first[draw] - last[draw])
        falls = [statistics.fmean(each) for each in by_left_out.values()]
        scale = statistics.fmean(first.values())
        free = len(falls) - 1
        bar = student.ppf(CERTAINTY, free) * statistics.stdev(falls) / math.sqrt(free + 1) if free else math.inf
        return statistics.fmean(falls) / scale, max(bar / scale, LEAST_FALL)

    def draw(self, path: str | Path, title: str = "") -> Path:
        """Draw errors against K, with bars from the smallest to the largest draw, into a PNG file.

        Raises:
            OutputError: the file cannot be written.
        """
        from rdjepa.viz.learning import learning_curve  # matplotlib, which measuring does not need

        found = {name: {k: self.summary(name, k) for k in self.counts} for name in self.names}
        fitted = {name: {k: each for k, each in by_k.items() if each} for name, by_k in found.items()}
        flat = {name: self.summary(name, 0) for name in self.names}
        return learning_curve(
            {registry.title(name): by_k for name, by_k in fitted.items() if by_k},
            {registry.title(name): each.mean for name, each in flat.items() if each},
            path,
            styles={registry.title(name): registry.line_style(name) for name in self.names},
            title=title or f"{self.trajectories} {'spans of time' if self.spans else 'trajectories'}",
            things="spans" if self.spans else "trajectories",
        )

    def advice(self) -> str:
        """Return one sentence on what to record next."""
        counts, last = self.counts, self.counts[-1]
        means = {
            name: found.mean for name in self.names if (found := self.summary(name, last) or self.summary(name, 0))
        }
        own = means[self.subject]
        trivial: dict[str, float] = {name: means[name] for name in ("persistence", "extrapolation") if name in means}
        best = min(trivial, key=trivial.__getitem__, default="")
        thing = "span" if self.spans else "trajectory"
        things = f"{thing}s" if self.spans else "trajectories"
        if best and trivial[best] <= own:
            remedy = {
                "persistence": "give more updates before you record more",
                "extrapolation": "frames lie close together, so take fewer (--stride) or correct a linear forecast "
                "(--base linear) before you record more",
            }[best]
            return f"With K = {last} the error {own:.3g} is not below that of {best}, {trivial[best]:.3g}: {remedy}."
        if len(counts) < 2:
            return (
                f"With K = {last} the error is {own:.3g}; a single K shows no trend, so record at least one more "
                f"{'trajectory' if self.spans else thing} and run this again."
            )
        fall, bar = self.fall()
        trend = f"from K = {counts[-2]} to K = {last} the error changes by {-fall:+.0%}"
        rivals = [f"{name} has {each:.3g}" for name, each in means.items() if name not in trivial and each < own]
        left = f"{own:.3g} remains" + (f" ({'; '.join(rivals)})" if rivals else "")
        if math.isinf(bar):
            return f"One draw has no bars; {trend}, and {left}: raise --draws before you decide what to record."
        if fall > bar:
            more = f"record more {things} like these"
            return f"K is not enough yet: {trend}, beyond its bar of {bar:.0%}, and {left}; {more}."
        if -fall > bar:
            more = "give more updates before you record more"
            return f"More of them make it worse: {trend}, beyond its bar of {bar:.0%}, and {left}; {more}."
        return (
            f"K = {counts[-2]} is about enough: {trend}, within its bar of {bar:.0%}, and {left}; "
            f"more {things} like these will change little, so record other conditions, or give more updates."
        )


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
        turned = np.roll(circle, -_turn(draw, trajectories))
        order = rng.permutation(turned[size:])
        found.append(Draw(tuple(order.tolist()), tuple(turned[:size].tolist())))
    return found


def _left_out(trajectories: int) -> int:
    """Return how many trajectories a draw leaves out."""
    return max(1, trajectories // LEFT_OUT)


def _turn(draw: int, trajectories: int) -> int:
    """Return where on the circle of trajectories a draw begins; draws of one turn leave out the same ones."""
    return draw * _left_out(trajectories) % trajectories


def spans(trajectory: Trajectory) -> list[Trajectory]:
    """Cut a trajectory into equal spans of time, five at most, each of one window at least.

    Raises:
        DataError: there are too few frames for two.
    """
    frames, window = len(trajectory.fields), FORECASTING.length
    number = min(SPANS, frames // window)
    if number < 2:
        raise DataError(
            f"expected at least two trajectories, or one of {2 * window} frames to be cut into spans of time, got one "
            f"of {frames}; give more"
        )
    edges = np.linspace(0, frames, number + 1).astype(int)
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
