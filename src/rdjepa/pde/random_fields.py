"""Random periodic fields, each (H, W)."""

import numpy as np

from rdjepa.pde.grid import Grid


def smooth_noise(grid: Grid, rng: np.random.Generator, cutoff: float) -> np.ndarray:
    """Draw a Gaussian field, (H, W), with zero mean, unit variance and the power spectrum exp(-(k / cutoff)^2).

    `k` and `cutoff` count periods per domain length.
    """
    ky = np.fft.fftfreq(grid.size, 1 / grid.size)
    kx = np.fft.rfftfreq(grid.size, 1 / grid.size)
    amplitude = np.exp(-0.5 * (ky[:, None] ** 2 + kx**2) / cutoff**2)
    amplitude[0, 0] = 0
    field = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((grid.size, grid.size))) * amplitude, s=(grid.size,) * 2)
    return field / field.std()


def white_noise(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    """Draw an independent standard normal value at each point, (H, W)."""
    return rng.standard_normal((grid.size, grid.size))


def random_wavevector(rng: np.random.Generator, largest: float) -> np.ndarray:
    """Draw (kx, ky), periods per domain length, uniformly from the nonzero integer vectors with |k| <= `largest`."""
    modes = np.arange(-int(largest), int(largest) + 1)
    vectors = np.stack(np.meshgrid(modes, modes), axis=-1).reshape(-1, 2)
    norms = np.hypot(vectors[:, 0], vectors[:, 1])
    return rng.choice(vectors[(norms > 0) & (norms <= largest)])


def plane_phase(grid: Grid, wavevector: np.ndarray) -> np.ndarray:
    """Return the phase 2 pi k . x / length, (H, W), of a plane wave with `wavevector` (kx, ky) periods per length."""
    x, y = grid.coordinates()
    return 2 * np.pi * (wavevector[0] * x + wavevector[1] * y) / grid.length


def sinusoid(grid: Grid, rng: np.random.Generator, largest: float) -> np.ndarray:
    """Draw a sine of unit amplitude, (H, W), with random phase and wave vector, |k| <= `largest` periods."""
    return np.sin(plane_phase(grid, random_wavevector(rng, largest)) + rng.uniform(0, 2 * np.pi))
