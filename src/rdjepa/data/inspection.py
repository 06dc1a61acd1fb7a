"""The result of looking at a source of trajectories: what it holds, and what adaptation would do with it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rdjepa.data import pace
from rdjepa.data.borders import PERIODIC, UNKNOWN, WALLS
from rdjepa.data.trajectory import SAME_RATIO

WRAPS = {
    PERIODIC: "wrap around: the jump across is like those inside",
    WALLS: "do not wrap around: the jump across is larger than those inside (walls, or an excerpt)",
    UNKNOWN: "cannot tell: little happens there, or neighbors differ as much as distant points",
}

MANY = 0.1  # of the frames, equal to the one before: no accident


@dataclass(frozen=True)
class Component:
    """Values of one component in the frames that were looked at.

    Attributes:
        name: as the source names it, or its position.
        low: smallest value.
        high: largest value.
        mean: mean.
        std: standard deviation.
        change: root mean square of the change from a frame to the next, of the standard deviation.
    """

    name: str
    low: float
    high: float
    mean: float
    std: float
    change: float


@dataclass(frozen=True)
class Inspection:
    """What was found in a source.

    Attributes:
        source: in words.
        kinds: of files or objects.
        trajectories: their number.
        frames: smallest and largest number of frames.
        grids: (rows, columns) that occur.
        axes: order of the axes of the arrays, and where it comes from.
        dtype: of the numbers as stored.
        interval: time between frames; None where the source has no times.
        length: side length of the domain; None where the source has none.
        spacing: distance between neighboring rows, and between neighboring columns; None where nothing says any.
        boundary: what the source says of its borders; None where it says nothing.
        borders: what the fields show at the borders of y and of x: "periodic", "walls" or "unknown".
        components: values of those that are read; of all, where it is not clear which these are.
        looked: number of frames that were looked at, of `total`.
        total: number of all frames.
        broken: frames with NaN or infinite values in these components.
        constant: frames in which one of them has one value everywhere.
        repeated: frames in which they equal the one before.
        remarks: what reading decides.
        plan: what adaptation does with the source, or why it refuses.
        usable: whether adaptation takes it.
    """

    source: str
    kinds: tuple[str, ...]
    trajectories: int
    frames: tuple[int, int]
    grids: tuple[tuple[int, int], ...]
    axes: tuple[str, ...]
    dtype: str
    interval: float | None
    length: float | None
    spacing: tuple[float, float] | None
    boundary: str | None
    borders: tuple[str, str]
    components: tuple[Component, ...]
    looked: int
    total: int
    broken: int
    constant: int
    repeated: int
    remarks: tuple[str, ...]
    plan: str
    usable: bool

    @property
    def change(self) -> float:
        """Relative change per frame: the root mean square of that of the components."""
        return float(np.sqrt(np.mean([each.change**2 for each in self.components]))) if self.components else 0.0

    @property
    def stride(self) -> int:
        """Suggested frame stride: that whose change per frame is nearest to the median of the pretraining systems."""
        return pace.stride(self.change, self.frames[0])

    @property
    def pace(self) -> str:
        """One line on the suggested stride."""
        if self.stride > 1:
            return f"{self.stride} suggested: these frames change little from one to the next; --stride auto takes it"
        low, _, high = pace.of_sources()
        if self.change > high:
            return "1; these frames change more than those of any pretraining system, so save more of them"
        if self.change < low:
            return "1; these frames change less than those of any pretraining system, but are too few to leave some out"
        return "1; the frames change about as much as those of the pretraining systems"

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield what was found as pairs of a heading and a text."""
        few, many = self.frames
        yield "kind", ", ".join(self.kinds)
        yield "trajectories", str(self.trajectories)
        yield "frames", str(few) if few == many else f"{few} to {many}"
        yield "grid", ", ".join(f"{rows} x {columns}" for rows, columns in self.grids) + " (y x x)"
        yield "axes", "; ".join(self.axes)
        yield "numbers", self.dtype
        yield (
            "frame interval",
            "not found in the source (1 is taken)" if self.interval is None else f"{self.interval:g}",
        )
        yield "domain length", "not found in the source (1 is taken)" if self.length is None else f"{self.length:g}"
        if self.spacing and not math.isclose(*self.spacing, rel_tol=SAME_RATIO):
            yield "cells", f"{self.spacing[0]:.4g} x {self.spacing[1]:.4g} (y x x)"
        for each in self.components:
            text = f"{each.low:.4g} to {each.high:.4g}, mean {each.mean:.4g}, standard deviation {each.std:.4g}"
            yield f"component {each.name}", f"{text}, change per frame {each.change:.3g} of it"
        low, median, high = pace.of_sources()
        yield (
            "change per frame",
            f"{self.change:.3g}; of the pretraining systems {low:.3g} to {high:.3g}, median {median:.3g}",
        )
        yield "frame stride", self.pace
        share = "all frames" if self.looked == self.total else f"{self.looked} of {self.total} frames looked at"
        yield "NaN or infinite", f"{self.broken} frames ({share})"
        yield "constant", f"{self.constant} frames; {self.repeated} equal the one before"
        same = self.borders[0] == self.borders[1]
        for name, shown in (
            [("borders", self.borders[0])] if same else zip(("rows", "columns"), self.borders, strict=True)
        ):
            yield name if same else f"borders ({name})", WRAPS[shown]
        if self.boundary is not None:
            yield "borders, as stored", self.boundary
        for sentence in self.remarks:
            yield "note", sentence
        if MANY * self.looked <= self.repeated < self.looked - 1:
            yield "note", "frames that equal the one before say nothing new: leave them out, or take a stride"
        yield "adapt", self.plan

    def __str__(self) -> str:
        """Return the rows as lines."""
        lines = [f"{heading:<20} {text}" for heading, text in self.rows()]
        return "\n".join([self.source, *lines])
