"""Fields on another grid and back: every value is the mean over its cell, and means are kept.

Rows and columns are mapped one after the other, each by a matrix: a trigonometric polynomial with the given means over
the old cells is averaged over the new ones; between walls it is that of the field continued by its mirror image. Where
the old number is a multiple of the new one these are block means. So a field that was refined and is averaged again is
the same, a constant stays itself, and so does the mean over the domain. Shares of old cells would be means too, but of
steps, whose errors differ from cell to cell: a pattern that stands still, which no equation explains.
"""

from dataclasses import dataclass

import numpy as np

from rdjepa.data.borders import PERIODIC, UNKNOWN, WALLS, borders
from rdjepa.data.fields import block_means
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import DataError


@dataclass(frozen=True)
class Regridding:
    """The way from a grid of H x W cells to one of `size` x `size`, and back.

    Attributes:
        shape: (H, W).
        size: cells per side of the other grid.
        walls: continue fields by their mirror image, not periodically.
    """

    shape: tuple[int, int]
    size: int
    walls: bool = False

    def there(self, fields: np.ndarray) -> np.ndarray:
        """Bring fields (..., H, W, C) to the grid of `size` x `size` cells."""
        return _between(fields, self.shape, (self.size, self.size), self.walls)

    def back(self, fields: np.ndarray) -> np.ndarray:
        """Bring fields (..., size, size, C) to the grid of H x W cells."""
        return _between(fields, (self.size, self.size), self.shape, self.walls)

    def spacing(self, given: tuple[float, float]) -> tuple[float, float]:
        """Return the distances between rows and between columns of the other grid, from those of the given one."""
        (rows, columns), (height, width) = given, self.shape
        return rows * height / self.size, columns * width / self.size

    def loss(self, frame: np.ndarray) -> float:
        """Return the error of going there and back, of a frame (H, W, C), relative to its deviation from the mean.

        The mean of squares is taken over components of the same weight; a constant component has no error.
        """
        frame = np.asarray(frame, dtype=np.float64)
        error = np.square(self.back(self.there(frame)) - frame).mean(axis=(0, 1))
        spread = frame.var(axis=(0, 1))
        return float(np.sqrt(np.mean(error[spread > 0] / spread[spread > 0]))) if (spread > 0).any() else 0.0

    def method(self) -> str:
        """Return what happens to the fields, in words."""
        (height, width), size = self.shape, self.size
        if (height, width) == (size, size):
            return "taken as they are"
        grids = f"{height} x {width} to {size} x {size} points"
        if height % size == 0 and width % size == 0:
            return f"averaged over blocks of {height // size} x {width // size}, {grids}"
        ways = {"averaged" if n > size else "refined" for n in self.shape if n != size}
        beyond = "mirrored at the walls" if self.walls else "continued periodically"
        return f"{' and '.join(sorted(ways))} by Fourier series, {beyond}, {grids}"


def has_walls(trajectory: Trajectory, said: str | None = None) -> bool:
    """Return whether a trajectory has walls: as is said of it, else by its own word, or else by opposite borders."""
    return said == WALLS if said is not None else bool(seems_walled(trajectory, trajectory.fields))


def seems_walled(trajectory: Trajectory, fields: np.ndarray) -> bool | None:
    """Return whether a trajectory has walls, by its own word or the borders of `fields`; None where neither tells."""
    if trajectory.boundary != UNKNOWN:
        return trajectory.says_walls
    seen = borders(fields)
    return True if WALLS in seen else False if set(seen) == {PERIODIC} else None


def cell_means(old: int, new: int, walls: bool = False) -> np.ndarray:
    """Return the matrix (new, old) from the means over some cells to those over others, of a trigonometric polynomial.

    The mean of exp(2 pi i k x) over a cell of n is that at its center times sinc(k / n), so a coefficient
    of the polynomial is the discrete one over sinc(k / old), which is at most pi / 2 larger.

    Args:
        old: number of given cells.
        new: number of wanted cells.
        walls: continue by the mirror image, which leaves cosines only.
    """
    if walls:
        whole = cell_means(2 * old, 2 * new)[:new]
        return whole[:, :old] + whole[:, : old - 1 : -1]
    waves = np.arange(1, old // 2 + 1)
    weights = np.where(2 * waves == old, 1.0, 2.0) * np.sinc(waves / new) / np.sinc(waves / old)
    here, there = ((np.arange(n) + 0.5)[:, None] * (2 * np.pi / n) * waves for n in (old, new))
    matrix = (np.cos(there) * weights) @ np.cos(here).T + (np.sin(there) * weights) @ np.sin(here).T
    return (1.0 + matrix) / old


def _between(fields: np.ndarray, old: tuple[int, int], new: tuple[int, int], walls: bool) -> np.ndarray:
    """Map rows and columns of (..., H, W, C); floats keep their kind."""
    if fields.shape[-3:-1] != old:
        raise DataError(f"expected fields on {old[0]} x {old[1]} points, got {fields.shape}; give those of this grid")
    if old == new:
        return fields
    if new[0] == new[1] and not (old[0] % new[0] or old[1] % new[1]):
        return block_means(fields, new[0])
    rows, columns = (cell_means(o, n, walls) for o, n in zip(old, new, strict=True))
    kind = fields.dtype if fields.dtype.kind == "f" else np.dtype(np.float64)
    result = np.empty((*fields.shape[:-3], *new, fields.shape[-1]), dtype=kind)
    for index in np.ndindex(fields.shape[:-3]):  # a frame at a time, in float64
        for component in range(fields.shape[-1]):
            result[index][..., component] = rows @ fields[index][..., component].astype(np.float64) @ columns.T
    return result
