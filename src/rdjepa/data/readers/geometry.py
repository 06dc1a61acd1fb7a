"""What a source says of its domain: the coordinates of cells, their sides, and borders that are not all of one kind."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from rdjepa.data.readers.reading import Reading
from rdjepa.data.soundness import is_even
from rdjepa.errors import DataError


def require_even(line: Any, axis: str, place: str) -> None:
    """Refuse coordinates of rows or columns whose distances differ; those that are no line of finite numbers tell none.

    Raises:
        DataError: they differ by more than rounding.
    """
    line = np.asarray(line)
    if line.ndim == 1 and line.dtype.kind in "fiu" and np.isfinite(line).all() and not is_even(line):
        steps = np.diff(line.astype(np.float64))
        raise DataError(
            f"expected equally spaced coordinates {axis}, got distances from {steps.min():g} to {steps.max():g} in "
            f"{place}; interpolate to an even grid, or if they are wrong drop them or give --spacing (spacing=)"
        )


def cell_sides(rows: Any, columns: Any, grid: tuple[int, int]) -> tuple[float, float] | None:
    """Return the distances between rows and between columns, by the coordinates of their cells; None without both."""
    sides = [domain_length(line, points) for line, points in zip((rows, columns), grid, strict=True)]
    height, width = (side and side / points for side, points in zip(sides, grid, strict=True))
    return (height, width) if height and width else None


def domain_length(line: Any, points: int) -> float | None:
    """Return the side length of a domain from the coordinates (n,) of its cells; None if these are unfit."""
    line = np.asarray(line)
    if line.shape != (points,) or points < 2 or line.dtype.kind not in "fiu" or not np.isfinite(line).all():
        return None
    return float(abs(float(line[-1]) - float(line[0])) * points / (points - 1)) or None


def mixed_sides(path: Path, periodic: Collection[bool], reading: Reading) -> tuple[str, ...]:
    """Return a sentence where only some sides are periodic, and the user does not say what all are."""
    if len(set(periodic)) < 2 or reading.boundary is not None:
        return ()
    return (
        f"only some sides of the domain are periodic in {path}, and all are taken for walls; --boundary periodic "
        "(boundary=) takes none for one",
    )
