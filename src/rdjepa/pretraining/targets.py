"""Targets of a pretraining sample: regions, offsets, queries, and the mask of its context (S2.2, S2.3)."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rdjepa.checks import Count, Share, check
from rdjepa.data.windows import PRETRAINING
from rdjepa.errors import ArgumentError

KINDS = BLOCK, TUBE, SAME_TIME = "future block", "future tube", "same time"


@dataclass(frozen=True)
class TargetConfig:
    """The sampling of Table S2 and of the context mask.

    Attributes:
        probabilities: those of a future block (one offset), a future tube (several), and the same time (offset 0).
        max_offset: largest offset; no more than the windows of pretraining have.
        tube: distinct offsets of a tube.
        rectangles: fewest and most rectangles of the target region.
        sides: shortest and longest side of a rectangle, in patches.
        queries: number M of (patch, offset) pairs drawn from region x offsets.
        mask_probability: probability that a sample's context is masked at random as well.
        mask_range: range of the per-token masking probability of such a sample.
    """

    probabilities: tuple[Share, Share, Share] = (0.50, 0.40, 0.10)
    max_offset: Count = PRETRAINING.max_offset
    tube: Count = 4
    rectangles: tuple[Count, Count] = (1, 4)
    sides: tuple[Count, Count] = (2, 6)
    queries: Count = 256
    mask_probability: Share = 0.35
    mask_range: tuple[Share, Share] = (0.05, 0.25)

    def __post_init__(self) -> None:
        """Check the values; refuse offsets whose frames would lie beyond the window, in the next trajectory."""
        check(self)
        if self.max_offset > PRETRAINING.max_offset:
            raise ArgumentError(
                f"expected a largest offset from 1 to {PRETRAINING.max_offset}, got {self.max_offset}; lower it"
            )
        if self.tube > self.max_offset:
            raise ArgumentError(
                f"expected a tube of at most {self.max_offset} distinct offsets, the largest one, got {self.tube}; "
                "shorten the tube"
            )
        if not math.isclose(sum(self.probabilities), 1.0, abs_tol=1e-8):
            raise ArgumentError(f"expected probabilities that add up to 1, got {self.probabilities}; correct them")
        for name in ("rectangles", "sides", "mask_range"):
            low, high = getattr(self, name)
            if low > high:
                raise ArgumentError(f"expected {name} from low to high, got {low} to {high}; exchange the two")

    def require_fitting(self, side: int) -> None:
        """Refuse rectangles that are longer than the latent grid of `side` tokens a side.

        Raises:
            ArgumentError: there are some.
        """
        if self.sides[1] > side:
            raise ArgumentError(
                f"expected targets with sides of at most {side} patches, the latent grid, got {self.sides[1]}; "
                "lower the sides of the targets"
            )

    def sample(self, rng: np.random.Generator, side: int) -> "Queries":
        """Draw the queries of one sample of pretraining, as `sample_queries`."""
        return sample_queries(rng, side, PRETRAINING.context, self)


@dataclass(frozen=True)
class Queries:
    """What one sample is asked to predict, and what is hidden from it.

    Attributes:
        kind: the target type.
        patches: (M,) patch indices, row-major; empty where whole frames are asked for.
        offsets: (M,) offsets h in frames, in the same order; empty where no later frame is needed.
        mask: (T, S) bool, true where a context token is hidden from the online encoder.

    Raises:
        ArgumentError: an offset that no window has: that frame would be another trajectory's.
    """

    kind: str
    patches: np.ndarray
    offsets: np.ndarray
    mask: np.ndarray

    def __post_init__(self) -> None:
        """Check the offsets."""
        first, last = 1 - PRETRAINING.context, PRETRAINING.max_offset
        if len(self.offsets) and not first <= self.offsets.min() <= self.offsets.max() <= last:
            raise ArgumentError(
                f"expected offsets from {first} to {last} frames, which a window has, got "
                f"{self.offsets.min()} to {self.offsets.max()}; ask for nearer frames, or take a stride"
            )

    @classmethod
    def of_frames(cls, offsets: np.ndarray, side: int) -> "Queries":
        """Ask for whole frames at offsets (M,), and hide nothing."""
        mask = np.zeros((PRETRAINING.context, side * side), dtype=bool)
        return cls("whole frames", np.zeros(0, dtype=np.int64), offsets, mask)


class Sampler(Protocol):
    """Whatever draws the queries of a sample: a `TargetConfig`, or an objective of pretraining."""

    def sample(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw from the sample's random stream, for a latent grid of `side` tokens a side."""
        ...


def sample_region(rng: np.random.Generator, side: int, config: TargetConfig) -> np.ndarray:
    """Draw the union of random rectangles, as sorted patch indices (n,); every valid corner is equally likely."""
    covered = np.zeros((side, side), dtype=bool)
    for _ in range(rng.integers(*config.rectangles, endpoint=True)):
        height, width = rng.integers(*config.sides, size=2, endpoint=True)
        top, left = rng.integers(0, side - height, endpoint=True), rng.integers(0, side - width, endpoint=True)
        covered[top : top + height, left : left + width] = True
    return np.flatnonzero(covered)


def sample_offsets(rng: np.random.Generator, config: TargetConfig) -> tuple[str, np.ndarray]:
    """Draw a target type and its distinct offsets (n,), sorted."""
    kind = KINDS[rng.choice(3, p=config.probabilities)]
    if kind == SAME_TIME:
        return kind, np.zeros(1, dtype=np.int64)
    count = config.tube if kind == TUBE else 1
    return kind, np.sort(rng.choice(np.arange(1, config.max_offset + 1), size=count, replace=False))


def sample_queries(rng: np.random.Generator, side: int, context: int, config: TargetConfig) -> Queries:
    """Draw one sample's region, target type, query list and context mask.

    Args:
        rng: the sample's own random stream.
        side: tokens per side of the latent grid.
        context: number of context frames T.
        config: the distributions.
    """
    region = sample_region(rng, side, config)
    kind, offsets = sample_offsets(rng, config)
    candidates = region.size * offsets.size
    chosen = rng.choice(candidates, size=config.queries, replace=candidates < config.queries)
    mask = np.zeros((context, side * side), dtype=bool)
    if rng.random() < config.mask_probability:
        mask |= rng.random(mask.shape) < rng.uniform(*config.mask_range)
    # At offset 0 the newest context frame is the target: without a mask the task would be to copy it.
    if kind == SAME_TIME:
        mask[-1, region] = True
    return Queries(kind, region[chosen // offsets.size], offsets[chosen % offsets.size], mask)
