import numpy as np
import pytest

from rdjepa.pde.grid import Grid
from rdjepa.pde.laplacian import squared_wavenumbers
from rdjepa.pde.perturbations import applied, rings_or_ovals, smooth
from rdjepa.pde.random_fields import plane_phase, random_wavevector, sinusoid, smooth_noise, white_noise

GRID = Grid(64, 2.0, -1.0)


@pytest.mark.parametrize("cutoff", [2.0, 4.0, 8.0])
def test_smooth_noise_has_zero_mean_unit_variance_and_no_seam(cutoff):
    field = smooth_noise(GRID, np.random.default_rng(0), cutoff)
    assert field.mean() == pytest.approx(0, abs=1e-12)
    assert field.var() == pytest.approx(1)
    for axis in (0, 1):
        jumps = np.abs(np.diff(field, axis=axis, append=field.take([0], axis)))
        assert jumps.take(-1, axis).max() <= 1.5 * jumps.max(axis=axis).mean() + jumps.std() * 3


def test_smooth_noise_has_the_stated_spectrum():
    """Mean power over many draws, relative to that of the lowest modes, follows exp(-(k / cutoff)^2)."""
    cutoff, rng = 5.0, np.random.default_rng(1)
    power = np.mean([np.abs(np.fft.rfft2(smooth_noise(GRID, rng, cutoff))) ** 2 for _ in range(60)], axis=0)
    k = np.sqrt(squared_wavenumbers(64, 1.0)) / (2 * np.pi)
    shell = [power[(k > low) & (k <= low + 1)].mean() for low in (1, 4, 7)]
    wanted = [np.exp(-((k[(k > low) & (k <= low + 1)] / cutoff) ** 2)).mean() for low in (1, 4, 7)]
    assert np.allclose(np.array(shell[1:]) / shell[0], np.array(wanted[1:]) / wanted[0], rtol=0.2)


def test_smooth_noise_needs_no_fine_grid():
    """Every mode above three cutoffs together holds less than a thousandth of the variance."""
    power = np.abs(np.fft.rfft2(smooth_noise(GRID, np.random.default_rng(2), 4))) ** 2
    k = np.sqrt(squared_wavenumbers(64, 1.0)) / (2 * np.pi)
    assert power[k > 12].sum() < 1e-3 * power.sum()


def test_white_noise_is_standard_normal_and_uncorrelated():
    field = white_noise(GRID, np.random.default_rng(3))
    assert field.mean() == pytest.approx(0, abs=0.05)
    assert field.std() == pytest.approx(1, abs=0.05)
    assert abs((field * np.roll(field, 1, 0)).mean()) < 0.05


def test_wave_vectors_are_whole_nonzero_and_bounded():
    rng = np.random.default_rng(4)
    vectors = {tuple(int(k) for k in random_wavevector(rng, 2)) for _ in range(400)}
    assert vectors == {(i, j) for i in range(-2, 3) for j in range(-2, 3) if 0 < i * i + j * j <= 4}


def test_a_sinusoid_is_one_periodic_fourier_mode():
    field = sinusoid(GRID, np.random.default_rng(5), 3)
    squared = squared_wavenumbers(64, 2.0)
    laplacian = np.fft.irfft2(-squared * np.fft.rfft2(field), s=field.shape)
    eigenvalue = (field * laplacian).sum() / (field**2).sum()
    assert np.allclose(laplacian, eigenvalue * field, atol=1e-9)
    assert np.abs(field).max() <= 1
    assert field.var() == pytest.approx(0.5)


@pytest.mark.parametrize("family", [smooth, rings_or_ovals])
def test_perturbed_equilibria_stay_positive_and_near(family):
    rng = np.random.default_rng(6)
    for _ in range(20):
        state = applied((0.9, 2.4), family(GRID, rng), family(GRID, rng))
        relative = state / np.array([0.9, 2.4])[:, None, None]
        assert relative.min() >= 0.05
        assert 0.005 < np.abs(relative - 1).mean() < 1


def test_a_perturbation_is_relative_and_has_a_floor():
    state = applied((2.0, 3.0), np.array([[0.1, -5.0]]), np.array([[0.0, -0.5]]))
    assert np.allclose(state, [[[2.2, 0.1]], [[3.0, 1.5]]])


def test_a_plane_wave_has_its_periods_along_x_and_y():
    phase = plane_phase(GRID, np.array([2, -1]))
    assert np.allclose(np.diff(phase, axis=1), 2 * 2 * np.pi / 64)
    assert np.allclose(np.diff(phase, axis=0), -2 * np.pi / 64)
