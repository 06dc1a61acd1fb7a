"""Temporal windows: a few context frames and the frames that follow them (S3.1), consecutive or every so many.

The only place that counts frames: every index of a context frame or of a target comes from a `WindowSpec`. Fields are
arrays or tensors whose first axis is time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rdjepa.errors import DataError


class Window(NamedTuple):
    """One window of a trajectory, or several along a first axis.

    Attributes:
        context: (context, H, W, C), the given frames.
        targets: (max_offset, H, W, C); targets[h - 1] is the frame h intervals after the last context frame.
    """

    context: Any
    targets: Any


@dataclass(frozen=True)
class WindowSpec:
    """The shape of a window, in stored frames.

    Attributes:
        context: number of given frames.
        max_offset: largest lead time h: 5 for forecasting, 8 for pretraining.
        stride: every so many stored frames are one of the window; lead times count these.
    """

    context: int = 4
    max_offset: int = 5
    stride: int = 1

    def __post_init__(self) -> None:
        """Check that all numbers are at least 1."""
        if self.context < 1 or self.max_offset < 1 or self.stride < 1:
            raise DataError(f"expected a context, a largest offset and a stride of at least 1, got {self}; raise them")

    @property
    def length(self) -> int:
        """Number of stored frames that a window spans, from its first to its last."""
        return (self.context + self.max_offset - 1) * self.stride + 1

    def frames(self, windows: int) -> int:
        """Return the number of frames that hold that many windows: the inverse of `count`."""
        return windows + self.length - 1

    def count(self, frames: int) -> int:
        """Return the number of windows in a trajectory of T frames: T - length + 1.

        Raises:
            DataError: the trajectory is shorter than one window.
        """
        if frames < self.length:
            raise DataError(
                f"expected at least {self.length} frames, got {frames}; "
                f"give longer trajectories or shrink the window of {self.context} + {self.max_offset} frames"
                + (f", every {self.stride}" if self.stride > 1 else "")
            )
        return frames - self.length + 1

    def starts(self, frames: int) -> range:
        """Return the index of the first context frame of every window, the last window included."""
        return range(self.count(frames))

    def spread(self, frames: int, count: int) -> np.ndarray:
        """Return the starts (count,) of `count` windows, evenly spaced from the first window to the last."""
        return np.linspace(0, self.count(frames) - 1, count).astype(int)

    def at(self, start: Any, offset: Any) -> Any:
        """Return the index of the frame `offset` lead times after the newest context frame of the window at `start`.

        Both may be integers or integer arrays that broadcast; an offset of 0 gives the newest context frame itself.
        """
        return start + self.stride * (self.context - 1 + offset)

    def given(self, starts: Sequence[int] | np.ndarray, before: int = 0) -> np.ndarray:
        """Return the indices (n, before + context) of the frames before windows that begin at n starts, and of those
        of their context.
        """
        return np.asarray(starts)[:, None] + self.stride * np.arange(-before, self.context)

    def cut(self, fields: Any, start: int) -> Window:
        """Cut the window that begins at frame `start` out of (T, ...) fields, as views.

        Raises:
            DataError: no whole window begins there.
        """
        if start not in self.starts(len(fields)):
            raise self._unfit(len(fields), start)
        frames = fields[start : start + self.length : self.stride]
        return Window(frames[: self.context], frames[self.context :])

    def middle(self, fields: Any) -> Window:
        """Cut the middle one of all windows of the fields, as views."""
        return self.cut(fields, self.count(len(fields)) // 2)

    def stack(self, fields: Any, starts: Sequence[int] | np.ndarray | None = None, before: int = 0) -> Window:
        """Copy several windows out of (T, ...) fields: context (n, context, ...) and targets (n, max_offset, ...).

        Args:
            fields: of one trajectory.
            starts: first context frames of the windows; all windows when None.
            before: number of frames before each window that come first in its context.

        Raises:
            DataError: the trajectory is shorter than one window, or no whole window, with the frames before it, begins
                at a start.
        """
        where = np.asarray(self.starts(len(fields)) if starts is None else starts)
        outside = where[(where < before * self.stride) | (where >= self.count(len(fields)))]
        if len(outside):
            raise self._unfit(len(fields), outside[0])
        return Window(
            fields[self.given(where, before)], fields[self.at(where[:, None], np.arange(1, self.max_offset + 1))]
        )

    def _unfit(self, frames: int, start: int) -> DataError:
        return DataError(
            f"expected a start from 0 to {self.count(frames) - 1}, got {start}; take it from starts({frames})"
        )


FORECASTING = WindowSpec(context=4, max_offset=5)
PRETRAINING = WindowSpec(context=4, max_offset=8)


def largest_stride(frames: int, needed: int) -> int:
    """Return the largest stride at which so many frames leave as many as are needed; 1 where none does."""
    return max(1, (frames - 1) // max(1, needed - 1))
