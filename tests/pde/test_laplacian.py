import numpy as np
import pytest

from rdjepa.pde.grid import Grid
from rdjepa.pde.laplacian import STENCILS, Laplacian, fill_periodic, squared_wavenumbers

LENGTH = 2 * np.pi


def padded(field: np.ndarray, halo: int) -> np.ndarray:
    out = np.full(tuple(n + 2 * halo for n in field.shape), np.nan)
    out[halo:-halo, halo:-halo] = field
    fill_periodic(out, halo)
    return out


def laplacian(field: np.ndarray, order: Laplacian, spacing: float) -> np.ndarray:
    """Apply a stencil to every cell of a periodic field."""
    stencil = STENCILS[order]
    rows, columns = (np.arange(stencil.halo, n + stencil.halo, dtype=np.uint64) for n in field.shape)
    return stencil.apply(padded(field, stencil.halo), rows[:, None], columns) / spacing**2


def smooth(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth periodic function that is no finite Fourier sum, and its Laplacian."""
    x, y = Grid(size, LENGTH).coordinates()
    f = np.exp(np.sin(x) + np.cos(y))
    return f, f * (np.cos(x) ** 2 - np.sin(x) + np.sin(y) ** 2 - np.cos(y))


@pytest.mark.parametrize("halo", [1, 2])
def test_ghost_cells_are_the_opposite_side(halo):
    field = np.random.default_rng(0).normal(size=(5, 8))
    assert np.array_equal(padded(field, halo), np.pad(field, halo, mode="wrap"))


@pytest.mark.parametrize("order", [2, 4])
def test_measured_order_of_the_stencils(order):
    errors = []
    for size in (32, 64, 128):
        f, exact = smooth(size)
        errors.append(np.abs(laplacian(f, order, LENGTH / size) - exact).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.05)


@pytest.mark.parametrize("order", [2, 4])
def test_fourier_modes_are_eigenvectors_with_the_known_symbol(order):
    size, mode = 24, (5, 3)
    i, j = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    field = np.cos(2 * np.pi * (mode[0] * i + mode[1] * j) / size)
    angle = 2 * np.pi * np.array(mode) / size
    symbols = {2: 2 * np.cos(angle) - 2, 4: (-30 + 32 * np.cos(angle) - 2 * np.cos(2 * angle)) / 12}
    assert np.allclose(laplacian(field, order, 1.0), symbols[order].sum() * field, atol=1e-12)


@pytest.mark.parametrize("order", [2, 4])
def test_the_checkerboard_has_the_largest_eigenvalue(order):
    i, j = np.indices((6, 6))
    board = (-1.0) ** (i + j)
    assert np.allclose(laplacian(board, order, 1.0), -STENCILS[order].largest * board)


def test_the_fourier_symbol_is_exact_for_resolved_functions():
    f, exact = smooth(32)
    spectral = np.fft.irfft2(-squared_wavenumbers(32, LENGTH) * np.fft.rfft2(f), s=f.shape)
    assert np.abs(spectral - exact).max() < 1e-10


def test_the_fourier_symbol_scales_with_the_domain():
    assert np.allclose(squared_wavenumbers(16, 3.0), squared_wavenumbers(16, 1.0) / 9)
    assert squared_wavenumbers(16, LENGTH)[-2, 3] == pytest.approx(4 + 9)
