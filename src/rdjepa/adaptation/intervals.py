"""Intervals by split-conformal prediction: residuals on trajectories that were kept from adaptation, as quantiles.

Every residual is divided by what is expected to be hard at its point, the change that the forecast itself makes there,

    score[h, c] = |truth - forecast| / (std[c] scale[h, c]),   scale^2 = FLOOR^2 + <((forecast - newest) / std)^2>_5x5,

with <> the mean over 5 x 5 points. An interval of level p is forecast -+ q std scale, where q[h, c] is the quantile of
the scores at p (1 + 1/n), n the number of blocks.

Scores of one field, or of neighboring windows, are not independent, so they do not count one by one. They are grouped
into blocks, `BLOCK` consecutive windows of one of 4 x 4 parts of the grid, and every block has the same weight whatever
it holds. If the blocks, among them the one to be forecast, were exchangeable, a point drawn from it would lie within
with a probability of at least p (hierarchical conformal prediction: Lee, Barber, Willett, "Distribution-free inference
with hierarchical data", arXiv:2306.06342). That holds if each block is of another trajectory. Blocks of one trajectory
resemble each other more than those of different ones, so with few trajectories the coverage of new ones may be lower,
and nothing is promised for trajectories of another distribution; `benchmarks/intervals.py` measures both. The promise
is an average over points, windows and calibrations, not one for every point or pattern.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rdjepa.checks import Count, Rate, checked
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError, DataError, warn

FLOOR = 0.05  # standard deviations; where a forecast changes nothing, it may still be wrong by this scale
NEIGHBORS = 5  # points per side of the mean that smooths the scale
BLOCK = FORECASTING.length  # consecutive windows: those of two blocks that are not neighbors have no frame in common
PARTS = 4  # per side of the grid
STILL = 0.1  # change from frame to frame, of that of the support, below which errors say nothing of what moves
QUANTILES = 100  # that stand for the scores of one block, each rounded up


class Interval(NamedTuple):
    """A forecast with its lower and upper bound, (5, H, W, C) or (B, 5, H, W, C) each, in physical units."""

    forecast: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class Calibration:
    """Scores of blocks of equal weight, each block's as a hundred quantiles.

    Attributes:
        scores: (N, C, Q) of all blocks, increasing along the last axis.
        blocks: number n of blocks.
        trajectories: number of trajectories that they are of.
    """

    scores: np.ndarray
    blocks: int
    trajectories: int

    def __post_init__(self) -> None:
        """Check the shape and the numbers, which may come from a file."""
        checked(self.blocks, Count, "blocks")
        checked(self.trajectories, Count, "trajectories")
        if np.ndim(self.scores) != 3 or not np.shape(self.scores)[-1] or not np.isfinite(self.scores).all():
            raise ArgumentError(
                f"expected finite scores (N, C, Q), got {np.shape(self.scores)} or NaN; calibrate the forecaster again"
            )

    @property
    def highest(self) -> float:
        """Largest level of an interval: n / (n + 1)."""
        return self.blocks / (self.blocks + 1)

    def factors(self, level: float) -> np.ndarray:
        """Return the scores (N, C) that a share `level` of new ones does not exceed.

        Raises:
            ArgumentError: no level between 0 and 1, or one that takes more blocks.
        """
        check_level(level)
        if level > self.highest:
            raise ArgumentError(
                f"expected a level (--level, level=) of at most {math.floor(1000 * self.highest) / 1000:g}, which is "
                f"what a calibration on {self.blocks} {'block' if self.blocks == 1 else 'blocks'} of windows can give, "
                f"got {level:g}; calibrate on more or longer trajectories"
            )
        count = self.scores.shape[-1]
        place = max(1, math.ceil(level / self.highest * count - 1e-9))  # 1e-9: a product that is whole but for rounding
        return self.scores[..., place - 1]


def check_level(level: float) -> None:
    """Refuse a level that no interval has.

    Raises:
        ArgumentError: it is not between 0 and 1.
    """
    name = "the level of an interval (--level, level=)"
    if not 0 < checked(level, Rate, name) < 1:
        raise ArgumentError(f"expected {name} between 0 and 1, got {level:g}; give 0.9 for 90 %")


def check_share(share: float) -> None:
    """Refuse a share that cannot be held out.

    Raises:
        ArgumentError: it is not between 0 and 1.
    """
    if not 0 < checked(share, Rate, "the share held out") < 1:
        raise ArgumentError(f"expected a share held out between 0 and 1, got {share:g}; give 0.4")


def scales(forecast: np.ndarray, newest: np.ndarray, normalizer: Normalizer) -> np.ndarray:
    """Return the scale of residuals, in physical units.

    Args:
        forecast: (B, N, H, W, C).
        newest: (B, H, W, C), the newest frame of each context.
        normalizer: of the forecaster; its standard deviations are the units.
    """
    from scipy.ndimage import uniform_filter

    std = np.asarray(normalizer.scale)
    change = np.square((forecast - newest[:, None]) / std)
    smooth = uniform_filter(change, size=(0, 0, NEIGHBORS, NEIGHBORS, 0), mode="nearest")
    return np.sqrt(np.maximum(smooth, 0) + FLOOR**2) * std  # a running mean of squares may come out below zero


def pooled(blocks: Iterable[np.ndarray]) -> Calibration:
    """Return the calibration of blocks of scores (n, N, H, W, C) of one trajectory, each of which has the same weight.

    Raises:
        DataError: there is none, or a score is not finite.
    """
    found = []
    for block in blocks:
        flat = np.moveaxis(block, (1, -1), (0, 1)).reshape(block.shape[1], block.shape[-1], -1)
        if not np.isfinite(flat).all():
            raise DataError("expected finite forecasts to calibrate on, got NaN or infinity; adapt again, for longer")
        # the upper end of each quantile, so that none is too small
        places = -(-np.arange(1, QUANTILES + 1) * flat.shape[-1] // QUANTILES) - 1
        found.append(np.sort(flat, axis=-1)[..., places].astype(np.float32))
    if not found:
        raise DataError("expected at least one window to calibrate on, got none; give trajectories of nine frames")
    together = np.concatenate(found, axis=-1)
    return Calibration(np.sort(together, axis=-1), len(found), 1)


def calibrate(
    forecast: Callable[[np.ndarray], np.ndarray], normalizer: Normalizer, trajectories: Sequence[np.ndarray]
) -> Calibration:
    """Calibrate a forecast on every window of trajectories (T, H, W, C) that it was not adapted to.

    Raises:
        DataError: a trajectory is shorter than a window, or there is none.
    """

    def blocks() -> Iterator[np.ndarray]:
        for fields in trajectories:
            starts = FORECASTING.starts(len(fields))
            for some in np.array_split(starts, max(1, len(starts) // BLOCK)):
                window = FORECASTING.stack(fields, some)
                made = forecast(window.context)
                scores = np.abs(made - window.targets) / scales(made, window.context[:, -1], normalizer)
                for rows in np.array_split(scores, PARTS, axis=2):
                    # a grid of fewer points per side has fewer parts
                    yield from (part for part in np.array_split(rows, PARTS, axis=3) if part.size)

    return replace(pooled(blocks()), trajectories=len(trajectories))


def hold_out(support: list[np.ndarray], share: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Divide a support set into what is adapted to and what is kept for the calibration.

    Of several trajectories the last ones are kept, at least one; of a single one its last frames.

    Args:
        support: (T, H, W, C) each.
        share: of trajectories, or of frames, between 0 and 1.

    Raises:
        ArgumentError: no share between 0 and 1.
        DataError: a side would have no window.
    """
    check_share(share)
    if len(support) > 1:
        kept = min(max(1, round(share * len(support))), len(support) - 1)
        return support[:-kept], support[-kept:]
    frames, shortest = len(support[0]), FORECASTING.length
    kept = round(share * frames)
    if min(kept, frames - kept) < shortest:
        raise DataError(
            f"expected at least {shortest} frames to adapt to and {shortest} to hold out, got {frames - kept} and "
            f"{kept}; give another share, a longer trajectory, or other trajectories to calibrate on"
        )
    return [support[0][:-kept]], [support[0][-kept:]]


def warn_of_stillness(support: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> None:
    """Warn where hardly anything happens in what is measured on, compared with what is adapted to.

    Errors are small there, whoever forecasts, and so are intervals; on fields that move they are not.

    Args:
        support: (T, H, W, C) each, that is adapted to.
        others: the same, that is calibrated on.
    """
    known, seen = _changes(support), _changes(others)
    if (seen < STILL * known).all():
        ratio = float((seen / known).max())
        warn(
            f"expected something to happen in what is held out or calibrated on, got frames that change {ratio:.2g} "
            "times as much from one to the next as those that are adapted to; errors, intervals and a choice by them "
            "say nothing of what moves, so take another share, or other trajectories"
        )


def _changes(trajectories: Sequence[np.ndarray]) -> np.ndarray:
    """Return the root mean square change (C,) of trajectories (T, H, W, C) from one frame to the next."""
    squares = [np.square(np.diff(fields, axis=0), dtype=np.float64).mean((1, 2)) for fields in trajectories]
    return np.sqrt(np.concatenate(squares).mean(0))
