"""Temporal windows: a few consecutive context frames and the frames that follow them (S3.1)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rdjepa.errors import DataError


class Window(NamedTuple):
    """One window of a trajectory, as views of its fields.

    Attributes:
        context: (context, H, W, C), the given frames.
        targets: (max_offset, H, W, C); targets[h - 1] is the frame h intervals after the last context frame.
    """

    context: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class WindowSpec:
    """The shape of a window, in stored frames.

    Attributes:
        context: number of consecutive given frames.
        max_offset: largest lead time h: 5 for forecasting, 8 for pretraining.
    """

    context: int = 4
    max_offset: int = 5

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.context < 1 or self.max_offset < 1:
            raise DataError(f"expected a context and a largest offset of at least 1, got {self}; raise them")

    @property
    def length(self) -> int:
        """Number of frames that a window spans."""
        return self.context + self.max_offset

    def count(self, frames: int) -> int:
        """Number of windows in a trajectory of that many frames: T - context - max_offset + 1.

        Raises:
            DataError: the trajectory is shorter than one window.
        """
        if frames < self.length:
            raise DataError(
                f"expected at least {self.length} frames, got {frames}; "
                f"give longer trajectories or shrink the window of {self.context} + {self.max_offset} frames"
            )
        return frames - self.length + 1

    def starts(self, frames: int) -> range:
        """Index of the first context frame of every window, the last window included."""
        return range(self.count(frames))

    def cut(self, fields: np.ndarray, start: int) -> Window:
        """Cut the window that begins at frame `start` out of (T, H, W, C) fields.

        Raises:
            DataError: no whole window begins there.
        """
        if start not in self.starts(len(fields)):
            raise DataError(
                f"expected a start from 0 to {self.count(len(fields)) - 1}, got {start}; "
                f"take it from starts({len(fields)})"
            )
        middle = start + self.context
        return Window(fields[start:middle], fields[middle : middle + self.max_offset])


FORECASTING = WindowSpec(context=4, max_offset=5)
PRETRAINING = WindowSpec(context=4, max_offset=8)
