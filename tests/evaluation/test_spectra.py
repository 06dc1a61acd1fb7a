"""Energy by wavenumber: what goes in comes out, in the right ring."""

import numpy as np
import pytest

from rdjepa.evaluation.spectra import RadialSpectra, radial_energy

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(16, 16), (16, 24), (15, 9)])
def test_rings_add_up_to_the_mean_square(shape):
    fields = RNG.standard_normal((2, 3, *shape, 2)).astype(np.float32)
    energy = radial_energy(fields)
    assert energy.shape[:2] == (2, 3)
    np.testing.assert_allclose(energy.sum(axis=-1), np.square(fields).mean(axis=(-3, -2, -1)), rtol=1e-5)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 0), (0, 5), (-3, 4), (8, 0), (0, 8)])
def test_a_wave_lies_in_the_ring_of_its_wavenumber(row, column):
    y, x = np.mgrid[:16, :16] * 2 * np.pi / 16
    wave = np.cos(row * y + column * x)[..., None]
    energy = radial_energy(wave)
    assert energy.argmax() == round(np.hypot(row, column))
    np.testing.assert_allclose(energy.max(), np.square(wave).mean(), rtol=1e-9)


@pytest.mark.parametrize(("shape", "spacing"), [((16, 32), (1.0, 1.0)), ((16, 16), (1.0, 2.0)), ((32, 8), (0.5, 4.0))])
@pytest.mark.parametrize(("row", "column"), [(1, 0), (0, 2), (-3, 3)])
def test_waves_of_one_length_lie_in_one_ring_whatever_the_shape_of_the_domain(shape, spacing, row, column):
    """Domains are twice as wide as tall, or turned: one period over the rows is as long as two over the columns."""
    y, x = np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in shape), indexing="ij")
    wave = np.cos(row * y + column * x)[..., None]
    for energy in (radial_energy(wave, spacing), radial_energy(wave.swapaxes(0, 1), spacing[::-1])):
        assert energy.argmax() == round(np.hypot(2 * row, column))
        np.testing.assert_allclose(energy.sum(), np.square(wave).mean(), rtol=1e-9)


def test_white_noise_fills_rings_by_their_size():
    energy = radial_energy(RNG.standard_normal((200, 32, 32, 1))).mean(axis=0)
    waves = np.fft.fftfreq(32, 1 / 32)
    sizes = np.bincount(np.rint(np.hypot(waves, waves[:, None])).astype(int).ravel())
    np.testing.assert_allclose(energy * 32**2 / sizes, 1, atol=0.3)


def test_accumulated_means_are_those_of_all_windows_at_once():
    prediction, reference = RNG.standard_normal((2, 6, 5, 16, 16, 2)).astype(np.float32)
    mean, scale = np.array([[1, -2], [3, 0.5]], np.float32)
    spectra = RadialSpectra(mean, scale)
    for part in (slice(0, 2), slice(2, 6)):
        spectra.add("id", prediction[part], reference[part])
    spectra.add("ic-ood", prediction[:1], reference[:1])
    rows = spectra.rows()
    error = radial_energy((prediction - reference) / scale).mean(axis=0)
    true = radial_energy((reference - mean) / scale).mean(axis=0)
    mine = {(row.horizon, row.wavenumber): row for row in rows if row.regime == "id"}
    assert len(mine) == error.size and len(rows) == 2 * error.size
    for (h, k), row in mine.items():
        assert (row.error, row.reference) == pytest.approx((error[h - 1, k], true[h - 1, k]), rel=1e-5)
