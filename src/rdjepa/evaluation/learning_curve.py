"""Errors against the number of support trajectories K: is K enough?"""

import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rdjepa.evaluation.leaving_out import Measured, turn
from rdjepa.forecasters import registry

CERTAINTY = 0.9
LEAST_FALL = 0.02  # of the error: a smaller fall is none, however certain


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
        trained: whether updates are made of the subject; otherwise it is fitted in closed form.
    """

    rows: tuple[Measured, ...]
    subject: str
    trajectories: int
    spans: bool = False
    notes: tuple[str, ...] = ()
    trained: bool = True

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
            by_left_out.setdefault(turn(draw, self.trajectories), []).append(first[draw] - last[draw])
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
        other = "give more updates" if self.trained else "try another model"
        if best and trivial[best] <= own:
            remedy = {
                "persistence": other,
                "extrapolation": "frames lie close together, so take fewer (--stride, stride=)"
                + " or correct a linear forecast (--base linear, base=)" * self.trained,
            }[best]
            worse = f"With K = {last} the error {own:.3g} is not below that of {best}, {trivial[best]:.3g}"
            return f"{worse}: {remedy} before you record more."
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
            more = "raise --draws (draws=) before you decide what to record"
            return f"One draw has no bars; {trend}, and {left}: {more}."
        if fall > bar:
            more = f"record more {things} like these"
            return f"K is not enough yet: {trend}, beyond its bar of {bar:.0%}, and {left}; {more}."
        if -fall > bar:
            more = f"{other} before you record more"
            return f"More of them make it worse: {trend}, beyond its bar of {bar:.0%}, and {left}; {more}."
        return (
            f"K = {counts[-2]} is about enough: {trend}, within its bar of {bar:.0%}, and {left}; "
            f"more {things} like these will change little, so record other conditions, or {other}."
        )
