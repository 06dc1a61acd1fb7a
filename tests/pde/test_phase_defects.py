import numpy as np
import pytest

from rdjepa.pde.grid import Grid
from rdjepa.pde.phase_defects import Defects, oscillation, random_pairs, remote_pair

GRID = Grid(64, 2.0, -1.0)


def wrapped(angle: np.ndarray) -> np.ndarray:
    return (angle + np.pi) % (2 * np.pi) - np.pi


def windings(phase: np.ndarray) -> np.ndarray:
    """Winding number around each square of four neighbors of the periodic grid, counterclockwise."""
    along_x = wrapped(np.roll(phase, -1, 1) - phase)
    along_y = wrapped(np.roll(phase, -1, 0) - phase)
    return np.rint((along_x + np.roll(along_y, -1, 1) - np.roll(along_x, -1, 0) - along_y) / (2 * np.pi)).astype(int)


def expected(defects: Defects) -> np.ndarray:
    wanted = np.zeros((GRID.size, GRID.size), dtype=int)
    for center, charge in zip(defects.centers, defects.charges, strict=True):
        column, row = np.floor((center - GRID.origin) / GRID.spacing).astype(int) % GRID.size
        wanted[row, column] += int(charge)
    return wanted


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pairs", [1, 3])
def test_phase_winds_once_around_each_vortex_and_nowhere_else(seed, pairs):
    """The squares that straddle the edges count too, so this also shows that the phase is periodic."""
    defects = random_pairs(GRID, np.random.default_rng(seed), pairs)
    assert defects.charges.sum() == 0
    assert np.array_equal(windings(defects.phase(GRID)), expected(defects))


@pytest.mark.parametrize("seed", range(3))
def test_a_remote_pair_is_neutral_and_half_a_period_apart(seed):
    defects = remote_pair(GRID, np.random.default_rng(seed))
    assert np.array_equal(windings(defects.phase(GRID)), expected(defects))
    assert sorted(defects.charges) == [-1, 1]
    assert np.allclose(defects.centers[1] - defects.centers[0], 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_phase_is_smooth_across_the_edges(seed):
    """Away from the vortices the wrapped step over an edge equals the mean of its neighbors to second order."""
    defects = random_pairs(GRID, np.random.default_rng(seed), 1)
    phase, far = defects.phase(GRID), defects.nearest(GRID) > 0.3
    for axis in (0, 1):
        bend = wrapped(np.roll(phase, -1, axis) - phase) - wrapped(phase - np.roll(phase, 1, axis))
        assert np.abs(np.where(far, bend, 0)).max() < 0.1


def test_the_amplitude_vanishes_at_every_vortex_and_is_one_far_away():
    x, y = GRID.coordinates()
    centers = np.array([[x[0, 10], y[10, 0]], [x[0, 42], y[40, 0]]])
    defects = Defects(centers, np.array([1.0, -1.0]))
    amplitude = defects.amplitude(GRID, 0.1)
    assert amplitude[10, 10] == amplitude[40, 42] == 0
    assert np.allclose(amplitude[defects.nearest(GRID) > 0.6], 1, atol=1e-4)
    assert ((amplitude >= 0) & (amplitude <= 1)).all()


def test_an_oscillation_has_the_given_amplitude_and_phase():
    phase = np.linspace(-3, 3, 20).reshape(4, 5)
    u, v = oscillation(phase, 0.7)
    assert np.allclose(np.hypot(u, v), 0.7)
    assert np.allclose(np.arctan2(v, u), phase)
