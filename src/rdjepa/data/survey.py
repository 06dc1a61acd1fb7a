"""Looking at a source of trajectories without reading more than is needed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np

from rdjepa.checks import of_class
from rdjepa.data import soundness
from rdjepa.data.borders import PERIODIC, UNKNOWN, WALLS, borders
from rdjepa.data.fields import COMPONENTS
from rdjepa.data.inspection import Component, Inspection
from rdjepa.data.readers.loading import AS_FOUND, chosen, doubts, remarks, remembering, require_shape, strided, times_of
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import CHUNK, Recording
from rdjepa.data.readers.registry import KNOWN, describe, recordings
from rdjepa.data.regrid import Regridding
from rdjepa.data.statistics import Moments, fold
from rdjepa.data.windows import FORECASTING, largest_stride
from rdjepa.errors import ArgumentError, DataError, RdjepaError

AUTO = "auto"
BUDGET = 256 * 2**20  # bytes of fields that are looked at; of more, frames at even distances
LARGEST = float(np.finfo(np.float32).max)
TRAJECTORIES = 8  # of more than fit into the budget, so many are looked at


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of values that float32 has none of, which is said
def inspect(source: Any, reading: Reading | None = None, grid: int | None = None) -> Inspection:
    """Look at a source without reading all of it: at most `BUDGET` bytes of fields, or two frames of any size.

    npz and MATLAB 5 files are read whole, to look at as much of them.

    Everything said of values is said of the components that are read; of all, where it is not clear which these are.

    Args:
        source: as `rdjepa.data.readers.load` takes it.
        reading: what the source does not say itself.
        grid: points per side that a model takes; any when None.

    Raises:
        DataError: the source is unknown or damaged.
    """
    reading = of_class(reading, Reading | None, "reading") or AS_FOUND
    # twice: how many frames there are decides which are looked at
    sizes = [(each.count, each.frames, each.frame_bytes) for each in recordings(source, reading)]
    total = sum(count for count, _, _ in sizes)
    if not total:
        raise DataError(f"expected at least one trajectory, got none in {describe(source)}; give {KNOWN}")
    whole = sum(count * frames * size for count, frames, size in sizes)
    looked = set(range(total) if whole <= BUDGET else np.linspace(0, total - 1, min(total, TRAJECTORIES)).astype(int))
    share = None if whole <= BUDGET else BUDGET // len(looked)
    found = _Found()
    number = 0
    for recording in recordings(source, reading):
        components = _components(recording, reading)
        found.add(recording, reading, components)
        alike = len(components) == len(found.names)  # others have no place in the statistics
        for index in range(recording.count) if alike else ():
            if number + index in looked:
                content = sha256()
                for piece, (start, stop) in enumerate(_spans(recording, share)):
                    part = recording.read(index, start, stop, components)
                    found.look(part, piece > 0 and share is None)
                    content.update(np.ascontiguousarray(part).data)
                if share is None:
                    found.contents.append(content.digest())
        number += recording.count
        found.plan(recording, reading, grid)
        if len(components) <= COMPONENTS:  # others would be refused
            reading = remembering(reading, recording, components)
    return found.result(describe(source), sum(count * frames for count, frames, _ in sizes))


def at_stride(source: Any, reading: Reading, stride: int | str, minimum_frames: int = FORECASTING.length) -> Reading:
    """Return how to read a source at a stride.

    Args:
        source: as for `inspect`.
        reading: what else is said of it.
        stride: take every so many frames; "auto" takes as many as `inspect` suggests, or as leave `minimum_frames`.
        minimum_frames: of the shortest trajectory.

    Raises:
        ArgumentError: it is neither a whole number from 1 on nor "auto", or `reading` has another one.
    """
    if isinstance(stride, str) and stride != AUTO:
        raise ArgumentError(f'expected a stride of a whole number or "{AUTO}", got {stride!r}; give one of these')
    if reading.stride not in (None, stride) and stride != 1:
        raise ArgumentError(
            f"expected one stride, got {stride} and {reading.stride} in reading; leave one of the two out"
        )
    if isinstance(stride, str):
        found = inspect(source, replace(reading, stride=None))
        stride = min(found.stride, largest_stride(found.frames[0], minimum_frames))
    return replace(reading, stride=stride) if stride != 1 else reading


def _components(recording: Recording, reading: Reading) -> tuple[int, ...]:
    """Return the components that would be read; all if reading would refuse."""
    try:
        return chosen(recording, reading)
    except RdjepaError:
        return tuple(range(recording.components))


def _spans(recording: Recording, share: int | None) -> Iterator[tuple[int, int]]:
    """Yield first and last + 1 of the frames to look at: overlapping pieces of all, or pairs at even distances."""
    size, frames = max(recording.frame_bytes, 1), recording.frames
    if share is None:
        step = max(1, CHUNK // size)
        for start in range(0, frames, step):
            yield max(0, start - 1), min(start + step, frames)
    elif frames < 2:
        yield 0, frames
    else:
        pairs = max(1, min(share // (2 * size), frames // 2))
        for start in np.linspace(0, frames - 2, pairs).astype(int):
            yield int(start), int(start) + 2


@dataclass
class _Found:
    """What is gathered on the way."""

    kinds: dict[str, None] = field(default_factory=dict)
    axes: dict[str, None] = field(default_factory=dict)
    dtypes: dict[str, None] = field(default_factory=dict)
    grids: dict[tuple[int, int], None] = field(default_factory=dict)
    said: dict[str, None] = field(default_factory=dict)
    refused: dict[str, None] = field(default_factory=dict)
    ways: dict[str, list[float]] = field(default_factory=dict)
    tiles: bool = False
    contents: list[bytes] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    frames: list[int] = field(default_factory=list)
    names: tuple[str, ...] = ()
    interval: float | None = None
    length: float | None = None
    spacing: tuple[float, float] | None = None
    boundary: str | None = None
    trajectories: int = 0
    windows: int = 0
    moments: list[Moments] = field(default_factory=list)
    changes: list[Moments] = field(default_factory=list)
    ranges: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    sides: list[tuple[str, str]] = field(default_factory=list)
    last: np.ndarray | None = None
    looked: int = 0
    broken: int = 0
    constant: int = 0
    repeated: int = 0

    def add(self, recording: Recording, reading: Reading, components: Sequence[int]) -> None:
        """Take up what is known without reading fields."""
        self.kinds[recording.kind] = None
        self.axes[f"{' '.join(recording.axes)} ({recording.origin})"] = None
        self.dtypes[str(recording.dtype)] = None
        self.grids[recording.grid] = None
        self.frames.append(recording.frames)
        self.said |= dict.fromkeys(recording.remarks)
        self.trajectories += recording.count
        known = recording.names or tuple(map(str, range(recording.components)))
        self.names = self.names or tuple(known[each] for each in components)
        times = None if recording.times is None else np.atleast_2d(recording.times)[0]
        numbers = times is not None and times.dtype.kind in "fiu"
        measured = None if times is None or not numbers or len(times) < 2 else float(np.median(np.diff(times)))
        self.interval = reading.interval or (self.interval if self.interval is not None else measured)
        self.length = reading.length or recording.length or self.length
        self.spacing = reading.spacing or recording.spacing or self.spacing
        self.boundary = recording.boundary or self.boundary

    def look(self, part: np.ndarray, overlaps: bool) -> None:
        """Take up values (t, H, W, C); the first frame was seen before if it overlaps."""
        part = part.astype(np.float64)
        good = np.isfinite(part).all(axis=(1, 2, 3))
        steps = np.diff(part, axis=0)[good[1:] & good[:-1]]
        if len(steps):
            self.changes.append(Moments.of(steps))
            self.repeated += int((steps == 0).all(axis=(1, 2, 3)).sum())
        first = 1 if overlaps else 0
        whole = part[first:][good[first:]]
        self.looked += len(part) - first
        self.broken += len(part) - first - len(whole)
        if not len(whole):
            return
        low, high = whole.min(axis=(1, 2)), whole.max(axis=(1, 2))
        self.constant += int((low == high).any(axis=-1).sum())
        self.moments.append(Moments.of(whole))
        self.ranges.append((low.min(axis=0), high.max(axis=0)))
        self.sides.append(borders(whole))
        self.last = whole[-1]

    def plan(self, recording: Recording, reading: Reading, grid: int | None) -> None:
        """Find out what reading for adaptation would do, from what was seen so far."""
        try:
            components = chosen(recording, reading)
            self.taken.add(len(components))
            self.said |= dict.fromkeys([*doubts(recording), *remarks(recording, reading, components)])
            require_shape(recording, stride=reading.step)
            for index in range(recording.count if recording.times is not None and recording.times.ndim == 2 else 1):
                soundness.require_times(times_of(recording, index, reading), recording.frames)
            self.windows += recording.count * FORECASTING.count(len(strided(range(recording.frames), reading.step)))
        except RdjepaError as error:
            self.refused[str(error)] = None
            return
        if grid is not None and self.last is not None:
            seen = recording.boundary != PERIODIC if recording.boundary else WALLS in self._borders()
            way = Regridding(recording.grid, grid, reading.boundary == WALLS if reading.boundary else seen)
            if recording.grid != (grid, grid) and self.last.shape[:2] == recording.grid:
                self.ways.setdefault(way.method(), []).append(way.loss(self.last))
                self.tiles = list(self.grids) == [(self.last.shape[0],) * 2] and self.last.shape[0] > grid

    def _borders(self) -> tuple[str, str]:
        """Return what most pieces show that show anything; for rows and for columns."""
        shown = [Counter(pair[axis] for pair in self.sides if pair[axis] != UNKNOWN) for axis in (0, 1)]
        y, x = (count.most_common(1)[0][0] if count else UNKNOWN for count in shown)
        return y, x

    def _refusals(self, components: tuple[Component, ...]) -> Iterator[str]:
        """Yield why adaptation would refuse the source, first what it would come upon first."""
        yield from self.refused
        if self.broken:
            some = self.broken < self.looked
            way = "cut the trajectories there" if some else "crop the fields to a part without them"
            yield f"expected finite fields, got {self.broken} frames that are not; fill these points, or {way}"
        if repeated := len(self.contents) - len(set(self.contents)):
            yield soundness.why_repeated(repeated, len(self.contents))
        if len(self.taken) > 1:
            yield soundness.MIXED
        yield from filter(None, (soundness.why_constant(each.name, each.low, each.high) for each in components))
        if any(max(abs(each.low), abs(each.high)) > LARGEST for each in components):
            yield "expected fields within the range of float32, got larger values; rescale the fields"

    def _plan(self, components: tuple[Component, ...]) -> tuple[str, bool]:
        for refusal in self._refusals(components):
            return f"would refuse: {refusal}", False
        steps = []
        for method, losses in self.ways.items():
            error = float(np.sqrt(np.mean(np.square(losses))))
            steps.append(f"with --resample fields are {method}, there and back changes them by {error:.2g}")
        if self.tiles:
            steps.append("with --tile they keep their points")
        count = f"{self.windows} windows of {FORECASTING.context} + {FORECASTING.max_offset} frames"
        return "; ".join([*steps, count]), True

    def result(self, source: str, total: int) -> Inspection:
        """Return everything."""
        components: tuple[Component, ...] = ()
        if self.moments:
            moments, low, high = fold(self.moments), *(np.stack(each) for each in zip(*self.ranges, strict=True))
            change = fold(self.changes).rms if self.changes else np.zeros(len(moments.mean))
            relative = change / np.where(moments.std > 0, moments.std, 1.0)
            components = tuple(
                Component(name, *map(float, values))
                for name, *values in zip(
                    self.names, low.min(axis=0), high.max(axis=0), moments.mean, moments.std, relative, strict=False
                )
            )
        for each in components:
            if sentence := soundness.why_rounded(each.name, max(abs(each.low), abs(each.high)), each.std):
                self.said[sentence] = None
        plan, usable = self._plan(components)
        return Inspection(
            source=source,
            kinds=tuple(self.kinds),
            trajectories=self.trajectories,
            frames=(min(self.frames), max(self.frames)),
            grids=tuple(self.grids),
            axes=tuple(self.axes),
            dtype=", ".join(self.dtypes),
            interval=self.interval,
            length=self.length,
            spacing=self.spacing,
            boundary=self.boundary,
            borders=self._borders(),
            components=components,
            looked=self.looked,
            total=total,
            broken=self.broken,
            constant=self.constant,
            repeated=self.repeated,
            remarks=tuple(self.said),
            plan=plan,
            usable=usable,
        )
