"""Reading of a user's own data into trajectories: the only road from any source, with every check and conversion."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from rdjepa.checks import of_class
from rdjepa.data import soundness
from rdjepa.data.borders import WALLS
from rdjepa.data.fields import COMPONENTS, with_second
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Recording
from rdjepa.data.readers.registry import KNOWN, describe, recordings
from rdjepa.data.readers.sizes import require_memory
from rdjepa.data.regrid import Regridding, has_walls
from rdjepa.data.statistics import Moments, fold
from rdjepa.data.trajectory import SAME_RATIO, Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError, Note, warn

AS_FOUND = Reading()
OTHER_INTERVAL = 0.05  # a frame interval that differs by more, as a share, is another one
FEWER = "read some of the trajectories, as --index 0,1 (index=), or give fewer frames, or --resample (resample=True)"
SPREAD = 16  # frames by whose borders the boundary of what is read in pieces is judged
Sliced = TypeVar("Sliced", bound=Any)


def load(
    source: Any,
    limit: int | None = None,
    minimum_frames: int = FORECASTING.length,
    grid: int | None = None,
    reading: Reading | None = None,
) -> list[Trajectory]:
    """Read trajectories from a file, a directory, arrays, objects of xarray or a mixed list of these.

    Rows of a grid run along y, as everywhere in this package; the x-first fields of The Well are transposed. Files are
    read piece by piece, so that only what is returned has to fit into memory; npz and MATLAB 5 files are read whole.
    What is decided about the data is said in a `Note`.

    Args:
        source: one of the kinds in `KNOWN`; a directory stands for the files directly in it, in the order of names,
            2 before 10.
        limit: read at most this many trajectories; the rest of a large file is not read.
        minimum_frames: smallest number of frames per trajectory: one forecasting window by default, which adaptation
            and evaluation need; a forecast needs its context only.
        grid: bring the fields to this many points per side, by `Regridding`; as they are when None.
        reading: what the source does not say itself.

    Returns:
        At least one trajectory; fields are finite float32 (T, H, W, 2), and times are equally spaced.

    Raises:
        DataError: the source is unknown or damaged, or its fields or times are unfit.
        ArgumentError: a chosen component is not there.
        InsufficientMemoryError: the fields do not fit into memory.
    """
    notes = _Notes()
    pieces = _trajectories(source, reading, minimum_frames, grid, notes)
    found = list(islice(pieces, limit))
    if not found:
        raise DataError(f"expected at least one trajectory, got none in {describe(source)}; give {KNOWN}")
    notes.give()
    return found


def trajectories(
    source: Any,
    minimum_frames: int = FORECASTING.length,
    grid: int | None = None,
    reading: Reading | None = None,
) -> Iterator[Trajectory]:
    """Read trajectories one at a time, so that memory holds one; arguments and errors as for `load`."""
    notes = _Notes()
    yield from _trajectories(source, reading, minimum_frames, grid, notes)
    notes.give()


@dataclass
class _Notes:
    """What is to be said once all is read: sentences, doubts, and the errors of resampling by what was done."""

    said: dict[str, None] = field(default_factory=dict)
    doubts: dict[str, None] = field(default_factory=dict)
    losses: dict[str, list[float]] = field(default_factory=dict)

    def say(self, sentence: str) -> None:
        self.said[sentence] = None

    def give(self) -> None:
        """Warn of the doubts, and note the rest."""
        for sentence in self.doubts:
            warn(sentence)
        for sentence in self.said:
            warn(sentence, Note)
        for method, losses in self.losses.items():
            error = float(np.sqrt(np.mean(np.square(losses))))
            warn(f"fields are {method}; going there and back changes them by {error:.2g} of their variation", Note)


def _trajectories(
    source: Any, reading: Reading | None, minimum_frames: int, grid: int | None, notes: _Notes
) -> Iterator[Trajectory]:
    reading = of_class(reading, Reading | None, "reading") or AS_FOUND
    for recording in recordings(source, reading):
        components = chosen(recording, reading)
        reading = remembering(reading, recording, components)
        require_shape(recording, minimum_frames, reading.step)
        for sentence in remarks(recording, reading, components):
            notes.say(sentence)
        notes.doubts |= dict.fromkeys(doubts(recording))
        for index in range(recording.count):
            yield _trajectory(recording, index, reading, components, grid, notes)


def chosen(recording: Recording, reading: Reading) -> tuple[int, ...]:
    """Return the positions of the one or two components that are read.

    Raises:
        DataError: there are more than two and the user chose none.
    """
    found = reading.choose(recording.components, recording.names, recording.place)
    if found is None:
        found = called(recording, reading.names)
    if found is None and recording.components > COMPONENTS:
        listed = f" ({', '.join(recording.names)})" if recording.names else ""
        two = recording.names[:2] or (0, 1)
        raise DataError(
            f"expected {COMPONENTS} components, got {recording.components}{listed} in {recording.place}, axes "
            f"{' '.join(recording.axes)}; choose one or two to be forecast, as --components {two[0]},{two[1]} "
            f"(components={two}), or say the order of axes with --axes"
        )
    return tuple(range(recording.components)) if found is None else found


def called(recording: Recording, names: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the positions of the components of these names; None where it has not all, or two names are the same."""
    found = len(set(names)) == len(names) and set(names) <= set(recording.names)
    return tuple(map(recording.names.index, names)) if names and found else None


def remembering(reading: Reading, recording: Recording, components: tuple[int, ...]) -> Reading:
    """Return what is said of sources after a recording: components of the same names, those of the first with some."""
    return reading if reading.names else replace(reading, names=_names(recording, components))


def _names(recording: Recording, components: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the components that are read, where the source has some."""
    return tuple(recording.names[each] for each in components) if recording.names else ()


def remarks(recording: Recording, reading: Reading, components: tuple[int, ...]) -> Iterator[str]:
    """Yield a sentence for everything that is decided about a recording without reading it."""
    shape, kind = recording.arrays[0].shape, recording.dtype
    order = " ".join(recording.axes)
    yield from recording.remarks
    if recording.origin.startswith("guessed") and order not in ("t y x c", "b t y x c"):
        yield f"axes of shape {tuple(shape)} are taken as {order}; --axes (axes=) says another order"
    elif recording.origin.startswith("guessed") and recording.frames == recording.grid[0] != recording.grid[1]:
        yield f"axes of shape {tuple(shape)} are taken as {order}; if the first are the grid, say --axes (axes=)"
    if kind.kind in "iu":
        yield f"whole numbers ({kind}) are read as real ones, without a scale"
    elif kind.itemsize < 4:
        yield f"{kind} has three digits; changes between frames that are smaller are lost"
    own = _names(recording, components)
    if own and reading.names and reading.components is None and own != reading.names:
        yield f"components are called {', '.join(own)} and {', '.join(reading.names)}; they are taken in this order"
    elif own == reading.names and components != tuple(sorted(components)) and reading.components is None:
        yield f"components are taken in the order {', '.join(own)}"
    if len(components) == 1:
        yield "there is one component; the second is the same field one frame earlier"
    if reading.step > 1:
        left = len(strided(range(recording.frames), reading.step))
        yield f"one of every {reading.step} frames is taken, {left} of {recording.frames}"
    if reading.interval is not None and recording.times is not None:
        yield f"the times in the source are replaced by an interval of {reading.interval:g}"


def doubts(recording: Recording) -> Iterator[str]:
    """Yield a sentence where a recording is not what it is taken for."""
    if recording.forecast:
        yield (
            f"expected data, got a forecast of this package in {recording.place}; what is learned from it, or measured "
            "on it, is not about the system"
        )


def require_shape(recording: Recording, minimum_frames: int = FORECASTING.length, stride: int = 1) -> None:
    """Refuse a recording with too few frames, or of a line of points, before it is read.

    Raises:
        DataError: one of these.
    """
    needed = (minimum_frames - 1) * stride + 1
    if recording.frames < needed:
        taken = f", one of every {stride} of them to be taken" if stride > 1 else ""
        most = (recording.frames - 1) // max(1, minimum_frames - 1)
        smaller = f"take --stride {most} (stride=) at most, " * (stride > most >= 1)
        raise DataError(
            f"expected at least {needed} frames on the first axis{taken}, got {recording.frames} in "
            f"{recording.place}, axes {' '.join(recording.axes)}; {smaller}save more frames of each trajectory, or say "
            "the order of axes with --axes"
        )
    soundness.require_grid(*recording.grid)


def _trajectory(
    recording: Recording, index: int, reading: Reading, components: tuple[int, ...], grid: int | None, notes: _Notes
) -> Trajectory:
    """Read one trajectory, a piece at a time, convert it and check it."""
    side = recording.grid if grid is None else (grid, grid)
    require_memory(recording.frames * side[0] * side[1] * COMPONENTS * 4, recording.place, FEWER)
    whole = recording.whole(index) if recording.whole else None
    source = recording if whole is None else replace(recording, arrays=[np.asanyarray(whole.fields)], axes="tyxc")
    distances = reading.spacing or recording.spacing or (whole.spacing if whole else (1.0, 1.0))
    fields, done, way = np.empty(0, np.float32), 0, None
    for chunk in source.chunks(index if whole is None else 0, components):
        piece = soundness.single(chunk, done)
        if grid is not None and recording.grid != side:
            if way is None:
                said = reading.boundary or recording.boundary
                parted = said is None and len(piece) < source.frames
                seen = _spread(source, index, components) if parted else piece
                known = Trajectory(seen, np.empty(0), **recording.properties(index))
                way = Regridding(recording.grid, grid, has_walls(known, reading.boundary))
                _say_aspect(recording.grid, distances, notes)
            last, piece = piece[-1], way.there(piece)
        if not done:  # one piece is not copied, several are put into their place
            fields = piece if len(piece) == source.frames else np.empty((source.frames, *piece.shape[1:]), np.float32)
        if fields is not piece:
            fields[done : done + len(piece)] = piece
        done += len(piece)
    if way is not None:
        notes.losses.setdefault(way.method(), []).append(way.loss(last))
    # a copy, since a view would keep the frames that are left out
    fields = np.ascontiguousarray(strided(fields, reading.step))
    if fields.shape[-1] == 1:
        fields = with_second(fields)
    soundness.require_change(fields)
    magnitude = np.maximum(-fields.min((0, 1, 2)), fields.max((0, 1, 2)))
    singles = (Moments.of(fields[each : each + 1]) for each in range(len(fields)))
    spread = fold(singles).std  # of all at once it would take as much memory as the fields
    for component, (largest, own) in enumerate(zip(magnitude.tolist(), spread.tolist(), strict=True)):
        if sentence := soundness.why_rounded(component, largest, own):
            notes.say(sentence)
    told: dict[str, Any] = {"names": _names(recording, components)} if recording.names else {}
    told["spacing"] = way.spacing(distances) if way else distances
    if way is not None and way.walls and recording.boundary is None:  # whatever is left to be seen of them
        told["boundary"] = WALLS
    return _complete(recording, index, reading, whole, fields, told)


def _spread(recording: Recording, index: int, components: tuple[int, ...]) -> np.ndarray:
    """Read a few frames (t, H, W, C) at even distances, the first and the last among them, 0 for what is not finite."""
    numbers = np.linspace(0, recording.frames - 1, min(SPREAD, recording.frames)).astype(int).tolist()
    frames = np.concatenate([recording.read(index, number, number + 1, components) for number in numbers])
    return np.nan_to_num(frames.astype(np.float64), posinf=0.0, neginf=0.0)


def times_of(recording: Recording, index: int, reading: Reading) -> np.ndarray:
    """Return the times of a trajectory: by the user's interval, as the source has them, or 0, 1, 2, ..."""
    if reading.interval is not None or recording.times is None:
        return np.arange(recording.frames, dtype=np.float64) * (reading.interval or 1.0)
    times = np.asarray(recording.times)
    return times[recording.position(index)] if times.ndim == 2 and len(times) == recording.points("b") else times


def interval_of(trajectory: Trajectory) -> float | None:
    """Return the time between frames; None where they were only counted."""
    times = np.asarray(trajectory.times)
    if not trajectory.timed or times.ndim != 1 or len(times) < 2 or times.dtype.kind not in "fiu":
        return None
    return float(np.median(np.diff(times)))


def strided(frames: Sliced, stride: int) -> Sliced:
    """Return every so many frames, counted back from the last, which a forecast begins at."""
    return frames[(len(frames) - 1) % stride :: stride]


def _say_aspect(grid: tuple[int, int], distances: tuple[float, float], notes: _Notes) -> None:
    """Note that a domain that is no square becomes one."""
    sides = [count * distance for count, distance in zip(grid, distances, strict=True)]
    if max(sides) > (1 + SAME_RATIO) * min(sides):
        notes.say(
            f"a domain of {grid[0]} x {grid[1]} points is squeezed into a square, so shapes change by "
            f"{max(sides) / min(sides):.3g} : 1; crop the fields to a square to keep them. Rows lie as far apart as "
            "columns, for equations too, unless the data or --spacing (spacing=) say others"
        )


def _complete(
    recording: Recording,
    index: int,
    reading: Reading,
    whole: Trajectory | None,
    fields: np.ndarray,
    known: dict[str, Any],
) -> Trajectory:
    """Return the fields with their times and all that is known, by the source or the user; a given one if unchanged."""
    own = None if whole is None or reading.interval is not None else np.asarray(whole.times)
    times = times_of(recording, index, reading) if own is None else own
    times = strided(times, reading.step) if reading.step > 1 else times
    soundness.require_times(times, len(fields))
    said = {name: getattr(reading, name) for name in ("length", "boundary")}
    known |= {name: value for name, value in said.items() if value is not None}
    if whole is None:
        timed = reading.interval is not None or recording.times is not None
        found = {**recording.properties(index), "timed": timed, **known}
        return Trajectory(fields, np.asarray(times, dtype=np.float64), **found)
    if reading.interval is not None:
        known["timed"] = True
    new = {name: value for name, value in known.items() if value != getattr(whole, name)}
    if np.may_share_memory(fields, whole.fields) and times is whole.times and not new:
        return whole
    return replace(whole, fields=fields, times=times, **new)
