"""A trajectory: the saved fields of one simulation or measurement, and what is needed to simulate it again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rdjepa.checks import Size, checked, require_component, require_packages
from rdjepa.data.borders import PERIODIC, UNKNOWN
from rdjepa.data.fields import block_means, measured
from rdjepa.errors import ArgumentError
from rdjepa.pde.distance import Nearest
from rdjepa.pde.system import REGIMES

if TYPE_CHECKING:
    from rdjepa.viz.inline import Drawing, Movie

SPLITS = ("pool", "validation", "test")
SAME_RATIO = 1e-3  # cells whose sides differ by less, as a share, are squares
OTHER_RATIO = 0.01  # a ratio of their sides that differs by more, as a share, is another one


@dataclass(frozen=True)
class Key:
    """The address of a simulated trajectory: the same key gives the same bits on the same platform.

    Attributes:
        system: a name from `rdjepa.systems.names()`.
        split: "pool" (training and support sets), "validation" or "test".
        regime: "id" (in distribution), "coeff-ood" or "ic-ood" (S1.1 of the paper).
        index: position in the split, from 0; this is what the public functions call `seed`.
    """

    system: str
    split: str = "pool"
    regime: str = "id"
    index: int = 0

    def __str__(self) -> str:
        """Return "system/split/regime/index"."""
        return f"{self.system}/{self.split}/{self.regime}/{self.index:05d}"

    @classmethod
    def parse(cls, text: str) -> "Key":
        """Return the key that `str` turned into this text.

        Raises:
            ArgumentError: the text is no key.
        """
        parts = text.split("/")
        if len(parts) != 4 or parts[1] not in SPLITS or parts[2] not in REGIMES or not parts[3].isdecimal():
            raise ArgumentError(f'expected a key "system/split/regime/index", got {text!r}')
        return cls(parts[0], parts[1], parts[2], int(parts[3]))


@dataclass(frozen=True)
class Trajectory:
    """Saved states of one reaction-diffusion system, in physical units.

    Attributes:
        fields: (T, H, W, C) float32, T saved frames on an H x W grid with C components.
        times: (T,) float64, the time of each frame in the system's own unit.
        coefficients: name -> value; empty when unknown (a user's own data).
        key: the key it was simulated from, or None for a user's own data.
        attempt: number of draws that were rejected before this one passed screening.
        rejected: one reason per rejected draw, in order.
        initial_condition: name of the initial-condition family that was drawn.
        kind: kind of equation that was drawn, where a system has several; "" otherwise.
        nearest: the nearest held-out equation, where the system keeps a distance to some; None otherwise.
        timed: whether times are those of the frames; False where frames were only counted.
        names: of the measured components, where the source has some.
        length: side length of the square domain.
        spacing: distance between neighboring rows, and between neighboring columns; only their ratio counts.
        boundary: "periodic", the kind of wall, or "unknown".
        software: package -> version that made it.
    """

    fields: np.ndarray
    times: np.ndarray
    coefficients: Mapping[str, float] = field(default_factory=dict)
    key: Key | None = None
    attempt: int = 0
    rejected: tuple[str, ...] = ()
    initial_condition: str = ""
    length: float = 1.0
    boundary: str = UNKNOWN
    software: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    nearest: Nearest | None = None
    spacing: tuple[float, float] = (1.0, 1.0)
    timed: bool = True
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name it by its key, the shape of its fields and the span of its times."""
        times = np.asarray(self.times)
        span = f", times {times[0]:g} to {times[-1]:g}" if times.ndim == 1 and len(times) else ""
        return f"Trajectory({self.key or 'without a key'}, fields {np.shape(self.fields)}{span})"

    @property
    def says_walls(self) -> bool:
        """Whether its boundary is a wall by its own word."""
        return self.boundary not in (PERIODIC, UNKNOWN)

    def coarsened(self, size: int) -> "Trajectory":
        """Return it with fields averaged over blocks of points to `size` points per side; itself if they are not finer.

        Raises:
            ArgumentError: a size that is no number of points.
            DataError: a side is not a multiple of `size`.
        """
        size = checked(size, Size, "the size")
        height, width = self.fields.shape[1:3]
        if max(height, width) <= size:
            return self
        least = min(height, width)  # blocks have as many points per side as their fields, so cells change their shape
        spacing = self.spacing[0] * height / least, self.spacing[1] * width / least
        return replace(self, fields=block_means(self.fields, size), spacing=spacing)

    @property
    def _own(self) -> np.ndarray:
        """The fields of the measured components (T, H, W, C): without a second that is the first a frame earlier."""
        return self.fields[..., : measured(self.fields)]

    def plot(self) -> "Drawing":
        """Draw a few frames, a row for each component, as a figure of matplotlib that a notebook shows."""
        from rdjepa.viz import inline  # matplotlib, which simulation and reading do not need

        return inline.frames(self._own, self.times, names=self.names, spacing=self.spacing)

    def animate(self, component: int = 0) -> "Movie":
        """Play one component as a GIF that a notebook shows and `save` writes.

        Raises:
            ArgumentError: no component of this number.
        """
        from rdjepa.viz import inline, panels

        own = self._own
        require_component(component, own.shape[-1])
        name = panels.component_names(self.names, own.shape[-1])[component]
        return inline.movie({f"{self.key or ''} {name}".strip(): self.fields[..., component]}, self.spacing)

    def to_xarray(self) -> Any:
        """Return the fields as an xarray.DataArray (time, y, x, component) with the rest as attributes.

        Points between walls are cell centers; the coordinates begin at 0. The domain has its `length` along x, and
        along y what the spacing makes of it.

        Raises:
            ArgumentError: the package xarray is missing.
        """
        require_packages("of xarray objects", "formats", "xarray")
        import xarray  # an extra

        own = self._own
        _, height, width, components = own.shape
        shift = 0.5 * self.says_walls
        side = self.length / width
        tall = side * self.spacing[0] / self.spacing[1]
        return xarray.DataArray(
            own,
            dims=("time", "y", "x", "component"),
            coords={
                "time": self.times,
                "y": tall * (np.arange(height) + shift),
                "x": side * (np.arange(width) + shift),
                "component": list(self.names if len(self.names) == components else "uvw"[:components]),
            },
            name="fields",
            attrs=dict(self.coefficients)
            | {"key": str(self.key or ""), "boundary": self.boundary, "length": self.length},
        )

    def _repr_html_(self) -> str:
        """Show facts and a picture in a notebook."""
        from rdjepa.viz import inline, panels

        own = self._own
        frames, height, width, components = own.shape
        labels = inline.time_labels(self.times)
        facts = {
            "frames": f"{frames}, t = {labels[0]} to {labels[-1]}",
            "grid": f"{height} x {width}, side {self.length:g}, boundary {self.boundary}",
            "components": ", ".join(panels.component_names(self.names, components)),
        }
        if self.coefficients:
            facts["coefficients"] = ", ".join(f"{name} = {value:.4g}" for name, value in self.coefficients.items())
        picture = inline.frames(own, self.times, size=1.0, names=self.names, spacing=self.spacing)
        return inline.card(f"Trajectory {self.key or ''}", facts, picture)
