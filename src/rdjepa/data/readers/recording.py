"""A recording: one or several trajectories of one source, whose fields are read only when asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from rdjepa.data.readers import axes as order
from rdjepa.data.readers.damage import damaged, intact
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.sizes import require_memory
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import DataError

CHUNK = 64 * 2**20  # bytes that are read at once


class Lazy(Protocol):
    """An array whose parts are read when it is indexed, such as one of h5py or Zarr, or an array in memory."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""

    @property
    def dtype(self) -> Any:
        """Kind of the numbers."""

    def __getitem__(self, index: Any) -> Any:
        """Read the part at a tuple of integers and slices."""


class Deferred:
    """An array that is loaded whole when it is first indexed."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, place: str, load: Callable[[], np.ndarray]) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._place, self._load = place, load
        self._content: np.ndarray | None = None

    def __getitem__(self, index: Any) -> np.ndarray:
        """Read the part at an index."""
        if self._content is None:
            require_memory(int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize, self._place)
            self._content = self._load()
        return self._content[index]


@dataclass(frozen=True)
class Recording:
    """Trajectories that share one shape.

    Attributes:
        kind: of the source, in words.
        place: where it is, for messages.
        arrays: one for each component, of equal shapes; or one that holds all.
        axes: a letter for each axis of the arrays.
        origin: where the order of axes comes from, in words.
        names: of the components; empty when unknown.
        times: (T,) or (B, T); None when unknown.
        length: side length of the domain; None when unknown.
        boundary: "periodic", or the kind of wall; None when unknown.
        spacing: distance between neighboring rows, and between neighboring columns; None when unknown.
        coefficients: name -> value, or (B,) values.
        whole: reads a trajectory of this package with everything that belongs to it.
        forecast: whether a forecaster of this package made the fields.
        remarks: sentences on what was left out, or is taken for something else.
        taken: positions of the trajectories that it has on the axis of them; None for all.
    """

    kind: str
    place: str
    arrays: Sequence[Lazy]
    axes: str
    origin: str
    names: tuple[str, ...] = ()
    times: np.ndarray | None = None
    length: float | None = None
    boundary: str | None = None
    spacing: tuple[float, float] | None = None
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    whole: Callable[[int], Trajectory] | None = None
    forecast: bool = False
    remarks: tuple[str, ...] = ()
    taken: Sequence[int] | None = None

    @classmethod
    def of(
        cls,
        kind: str,
        place: str,
        arrays: Sequence[Lazy],
        reading: Reading,
        *,
        dimensions: Sequence[str] | None = None,
        layout: str | None = None,
        **known: Any,
    ) -> "Recording":
        """Find the order of the axes, as given, of the format, named or guessed, and return the recording.

        Raises:
            DataError: the arrays differ in shape, hold something else than real numbers, or have no such order.
        """
        shape = tuple(arrays[0].shape)
        if any(tuple(array.shape) != shape for array in arrays):
            listed = ", ".join(str(tuple(array.shape)) for array in arrays)
            raise DataError(f"expected components of one shape, got {listed} in {place}; choose those that fit")
        for array in arrays:
            _require_numbers(array.dtype, place)
        if reading.axes is not None:
            letters, origin = order.fit(reading.axes, shape, place), "as given"
        elif layout is not None:
            letters, origin = order.fit(layout, shape, place), "as the format says"
        elif dimensions is not None:
            letters, origin = order.named(dimensions, shape, place), "named in the source"
        else:
            letters, origin = order.guess(shape, place, separate=len(arrays) > 1), "guessed; --axes says another"
        if len(arrays) > 1 and "c" in letters:
            raise DataError(
                f"expected separate components without an axis of components, got shape {shape} for each in {place}; "
                "choose one array with --field"
            )
        return cls(kind, place, arrays, letters, origin, **known)

    def points(self, letter: str) -> int:
        """Return the length of an axis; 1 where there is no such axis."""
        return int(self.arrays[0].shape[self.axes.index(letter)]) if letter in self.axes else 1

    @property
    def count(self) -> int:
        """Number of trajectories."""
        return self.points("b") if self.taken is None else len(self.taken)

    @property
    def frames(self) -> int:
        """Number of frames of each."""
        return self.points("t")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.points("y"), self.points("x")

    @property
    def components(self) -> int:
        """Number of components."""
        return len(self.arrays) if len(self.arrays) > 1 else self.points("c")

    @property
    def dtype(self) -> np.dtype:
        """Kind of the numbers as they are stored."""
        return np.result_type(*(array.dtype for array in self.arrays))

    @property
    def frame_bytes(self) -> int:
        """Size of a frame with all components."""
        return self.grid[0] * self.grid[1] * self.components * self.dtype.itemsize

    def taking(self, numbers: Sequence[int]) -> "Recording":
        """Return the recording with these of its trajectories alone; of a recording that has all of them."""
        whole = self.whole
        values = {name: np.ravel(v)[numbers] if np.ndim(v) else v for name, v in self.coefficients.items()}
        found = (lambda index: whole(numbers[index])) if whole else None
        return replace(self, coefficients=values, whole=found, taken=numbers)

    def position(self, index: int) -> int:
        """Return where a trajectory is on the axis of all that the source has."""
        return index if self.taken is None else self.taken[index]

    def read(self, index: int, start: int, stop: int, components: Sequence[int]) -> np.ndarray:
        """Read frames start to stop - 1 of a trajectory, (stop - start, H, W, C) as stored.

        Raises:
            DataError: the source is truncated or damaged.
            InsufficientMemoryError: the frames do not fit into memory.
        """
        require_memory((stop - start) * self.frame_bytes, self.place)
        chosen = [self.arrays[each] for each in components] if len(self.arrays) > 1 else self.arrays
        with intact(self.kind, self.place):
            parts = [self._part(array, index, start, stop) for array in chosen]
        if len(parts) > 1:
            return np.concatenate(parts, axis=-1)
        every = len(self.arrays) > 1 or tuple(components) == tuple(range(self.components))
        return parts[0] if every else parts[0][..., list(components)]

    def chunks(self, index: int, components: Sequence[int]) -> Iterator[np.ndarray]:
        """Read a trajectory in pieces (t, H, W, C) of bounded size; one that is in memory in one piece."""
        held = len(self.arrays) == 1 and type(self.arrays[0]) is np.ndarray
        step = self.frames if held else max(1, CHUNK // max(self.frame_bytes, 1))
        for start in range(0, self.frames, step):
            yield self.read(index, start, min(start + step, self.frames), components)

    def properties(self, index: int) -> dict[str, Any]:
        """Return the attributes of a `Trajectory` that the source tells, without fields and times."""
        known = {"length": self.length, "boundary": self.boundary, "spacing": self.spacing}
        values = {name: float(np.ravel(v)[index if np.ndim(v) else 0]) for name, v in self.coefficients.items()}
        return {name: value for name, value in known.items() if value is not None} | {"coefficients": values}

    def _part(self, array: Lazy, index: int, start: int, stop: int) -> np.ndarray:
        where = {"b": self.position(index), "t": slice(start, stop), "1": 0}
        try:
            part = array[tuple(where.get(letter, slice(None)) for letter in self.axes)]
        except MemoryError as error:  # what the source declares does fit: a piece of it claims more
            raise damaged("piece of data", self.place, error) from error
        if np.ma.is_masked(part):
            raise DataError(
                f"expected a value at every point, got {np.ma.count_masked(part)} masked ones in {self.place}; "
                "fill them, or cut the trajectory there"
            )
        left = [letter for letter in self.axes if letter not in "b1"]
        part = np.asarray(part).transpose([left.index(letter) for letter in "tyxc" if letter in left])
        return part if "c" in left else part[..., None]


def unnamed(reading: Reading, kind: str) -> tuple[str, ...]:
    """Return a sentence where a user chooses among the arrays of a kind of source in which they have no names."""
    if reading.field is None:
        return ()
    return (f"--field (field=) chooses among named arrays, and has no effect on a source without ({kind})",)


def _require_numbers(dtype: Any, place: str) -> None:
    """Refuse objects, texts, truth values and complex numbers; objects could only be unpickled, which is never done."""
    kind = np.dtype(dtype).kind
    if kind not in "fiu":
        advice = {
            "c": "give real and imaginary part as the two components",
            "b": "give 0 and 1 as floating numbers",
            "O": "save arrays of numbers; objects are never unpickled",
        }.get(kind, "choose arrays of numbers")
        raise DataError(f"expected fields of a floating dtype, got {dtype} in {place}; {advice}")
