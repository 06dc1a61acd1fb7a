"""What a user may say about data that do not say it themselves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rdjepa.checks import Count, Index, Rate, checked, of_class
from rdjepa.data.borders import PERIODIC, WALLS
from rdjepa.data.readers import axes as order
from rdjepa.errors import ArgumentError


@dataclass(frozen=True)
class Reading:
    """How a source is to be read; everything that is None is found out from the source.

    Trajectories of this package, in memory or in its files, say field and axes themselves, and have an interval, a
    length and a boundary.

    Attributes:
        field: which arrays of a file with several hold the fields: a path in the file, a group or a common beginning of
            names, or several of these separated by commas, one for each component.
        axes: the order of the axes as letters, such as "t y x c": b trajectories, t frames, y rows, x columns,
            c components, 1 for an axis of one point.
        components: one or two, by position from 0 or by name.
        interval: time between two stored frames; replaces the times in the source.
        length: side length of the domain, which is kept with the data; no forecast uses it.
        stride: take every so many frames, counted back from the last; what lies between is left out. None takes all,
            or for a forecaster as many as it was adapted with.
        boundary: how the domain ends: "periodic", or "walls" that nothing passes. None takes what the source says, or
            else what opposite borders look like (`rdjepa.data.borders`), and where these tell nothing, periodic; for a
            forecaster, first what was said when it was adapted.
        spacing: distance between neighboring rows, and between neighboring columns, which equations go by; only their
            ratio counts. None for square cells.
        names: of components that are taken, in this order, where none are chosen and the source has all of them; those
            of the first source of several when there are none, and for a forecaster those that it was adapted with.
            Names that are the same choose nothing.
        index: positions of the trajectories that are read, from 0 among all of the source; they keep its order, and the
            rest of a large file is not read. None reads all.

    Raises:
        ArgumentError: a value that no source could have.
    """

    field: str | None = None
    axes: str | None = None
    components: tuple[int | str, ...] | None = None
    interval: float | None = None
    length: float | None = None
    stride: int | None = None
    boundary: str | None = None
    spacing: tuple[float, float] | None = None
    names: tuple[str, ...] = ()
    index: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Check every value and bring the letters of the axes together."""
        kinds = {"field": str | None, "axes": str | None, "interval": Rate | None, "length": Rate | None}
        for name, kind in (kinds | {"stride": Count | None}).items():
            object.__setattr__(self, name, checked(getattr(self, name), kind, name))
        if self.axes is not None:
            object.__setattr__(self, "axes", order.parse(self.axes))
        if self.components is not None:
            if isinstance(self.components, str) or not isinstance(self.components, Iterable):
                raise ArgumentError(
                    f"expected components as one or two in a tuple, got {self.components!r}; give them as (0, 2)"
                )
            chosen = tuple(checked(list(self.components), list[int | str], "components"))
            if len(chosen) not in (1, 2) or len(set(map(str, chosen))) < len(chosen):
                raise ArgumentError(
                    f"expected one or two different components, got {', '.join(map(str, chosen)) or 'none'}; "
                    "choose those of the two fields that are to be forecast, such as 0,2 or u,w"
                )
            object.__setattr__(self, "components", chosen)
        if self.spacing is not None:
            distances = tuple(checked(list(of_class(self.spacing, Iterable, "spacing")), list[Rate], "spacing"))
            if len(distances) != 2:
                raise ArgumentError(
                    f"expected the distance between rows and that between columns, got {len(distances)} numbers; give "
                    "two, such as 0.5,0.8"
                )
            object.__setattr__(self, "spacing", distances)
        if self.index is not None:
            positions = tuple(checked(list(of_class(self.index, Iterable, "index")), list[Index], "index"))
            if not positions or len(set(positions)) < len(positions):
                raise ArgumentError(
                    f"expected different positions as index, got {', '.join(map(str, positions)) or 'none'}; give each "
                    "of the trajectories that are to be read once, such as 0,1,2"
                )
            object.__setattr__(self, "index", positions)
        if self.boundary not in (None, PERIODIC, WALLS):
            raise ArgumentError(
                f"expected a boundary {PERIODIC} or {WALLS}, got {self.boundary!r}; give one, or leave it out"
            )

    @property
    def step(self) -> int:
        """The stride, 1 where none is chosen."""
        return self.stride or 1

    def choose(self, count: int, names: Sequence[str], place: str) -> tuple[int, ...] | None:
        """Return the positions of the chosen components among `count`; None if nothing was chosen.

        Raises:
            ArgumentError: one of them is not there, or two are the same.
        """
        if self.components is None:
            return None
        known = list(names) if names else [str(number) for number in range(count)]
        found = []
        for each in self.components:
            text = str(each)
            if text in known:
                found.append(known.index(text))
            elif text.isdecimal() and int(text) < count:
                found.append(int(text))
            else:
                raise ArgumentError(
                    f"expected components among {', '.join(known)} or positions from 0 to {count - 1}, got {text!r} "
                    f"for {place}; name those that are there"
                )
        if len(set(found)) < len(found):
            raise ArgumentError(
                f"expected two different components, got {', '.join(map(str, self.components))}, both of which are "
                f"{known[found[0]]} of {place}; choose another for one of them, or that one alone"
            )
        return tuple(found)
