"""Discrete Laplacians and their ghost cells: finite differences of order 2 and 4, and the exact Fourier symbol.

The two stencils work on fields with a border of ghost cells, and return spacing^2 times the Laplacian at one cell. They
are plain functions that the integrators compile and inline.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Laplacian = Literal[2, 4, "spectral"]

# Unsigned indices rule out negative wrap-around, without which the compiler does not vectorize the loops.
ONE = np.uint64(1)
TWO = np.uint64(2)


def five_point(field, i, j):  # type: ignore[no-untyped-def]
    """Return spacing^2 times the Laplacian by central differences of order 2; needs one ghost cell per side."""
    return field[i - ONE, j] + field[i + ONE, j] + field[i, j - ONE] + field[i, j + ONE] - 4.0 * field[i, j]


def nine_point(field, i, j):  # type: ignore[no-untyped-def]
    """Return spacing^2 times the Laplacian by central differences of order 4; needs two ghost cells per side.

    The weights are (-1, 16, -30, 16, -1) / 12 along each axis.
    """
    near = field[i - ONE, j] + field[i + ONE, j] + field[i, j - ONE] + field[i, j + ONE]
    far = field[i - TWO, j] + field[i + TWO, j] + field[i, j - TWO] + field[i, j + TWO]
    return (4.0 / 3.0) * near - (1.0 / 12.0) * far - 5.0 * field[i, j]


@dataclass(frozen=True)
class Stencil:
    """A finite-difference Laplacian.

    Attributes:
        halo: number of ghost cells that it reads beyond the domain on each side.
        largest: magnitude of its largest eigenvalue, that of the checkerboard mode, in units of 1/spacing^2; explicit
            Euler needs dt <= 2 spacing^2 / (largest D).
        apply: (padded field, row, column) -> spacing^2 times the Laplacian.
    """

    halo: int
    largest: float
    apply: Callable


STENCILS: dict[Laplacian, Stencil] = {2: Stencil(1, 8.0, five_point), 4: Stencil(2, 32.0 / 3.0, nine_point)}


def fill_periodic(field, halo):  # type: ignore[no-untyped-def]
    """Fill the ghost cells of a padded field from the opposite side of the domain, in place."""
    rows = field.shape[0] - 2 * halo
    columns = field.shape[1] - 2 * halo
    for i in range(halo):
        for j in range(halo, columns + halo):
            field[i, j] = field[i + rows, j]
            field[rows + halo + i, j] = field[halo + i, j]
    # Over the ghost rows too, which fills the corners; the two stencils do not read them, a wider one may.
    for i in range(rows + 2 * halo):
        for j in range(halo):
            field[i, j] = field[i, j + columns]
            field[i, columns + halo + j] = field[i, halo + j]


def fill_walls(field, factor):  # type: ignore[no-untyped-def]
    """Fill one layer of ghost cells with `factor` times the interior cell next to each, in place; corners stay."""
    rows = field.shape[0] - 1
    columns = field.shape[1] - 1
    for i in range(1, rows):
        field[i, 0] = factor * field[i, 1]
        field[i, columns] = factor * field[i, columns - 1]
    for j in range(1, columns):
        field[0, j] = factor * field[1, j]
        field[rows, j] = factor * field[rows - 1, j]


def squared_wavenumbers(size: int, length: float) -> np.ndarray:
    """Return |k|^2 for the half spectrum of a real field, (H, W // 2 + 1): minus the symbol of the Laplacian."""
    ky = 2 * np.pi * np.fft.fftfreq(size, length / size)
    kx = 2 * np.pi * np.fft.rfftfreq(size, length / size)
    return ky[:, None] ** 2 + kx**2
