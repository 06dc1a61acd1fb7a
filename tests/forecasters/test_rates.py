import numpy as np
import pytest

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.persistence import persistence
from rdjepa.forecasters.rates import TERMS, Rates, laplacian

GRAY_SCOTT = ({"1": 0.04, "u": -0.04, "u v^2": -1.0, "lap u": 0.16}, {"v": -0.1, "u v^2": 1.0, "lap v": 0.08})


def weights_of(equations):
    return np.array([[equation.get(term, 0.0) for equation in equations] for term in TERMS])


def exact(truth, frames=20, inner=20, size=24, interval=1.0, seed=0, walls=False):
    """Integrate given rates by fourth-order Runge-Kutta from smooth random fields, with a known number of steps."""
    rng = np.random.default_rng(seed)
    waves = np.fft.fftfreq(size)[:, None] ** 2 + np.fft.fftfreq(size)[None, :] ** 2
    noise = np.fft.ifft2(np.fft.fft2(rng.standard_normal((2, size, size))) * np.exp(-300 * waves)).real
    state = np.moveaxis(noise / noise.std(axis=(1, 2), keepdims=True), 0, -1) * (0.15, 0.08) + (0.5, 0.25)
    step, found = interval / inner, [state]
    for _ in range(frames - 1):
        for _ in range(inner):
            a = truth.rates(state)
            b = truth.rates(state + step / 2 * a)
            c = truth.rates(state + step / 2 * b)
            d = truth.rates(state + step * c)
            state = state + step / 6 * (a + 2 * b + 2 * c + d)
        found.append(state)
    return np.stack(found)


@pytest.fixture(scope="module", params=[False, True], ids=["periodic", "walls"])
def gray_scott(request):
    unbounded = np.full(2, np.inf)
    truth = Rates(weights_of(GRAY_SCOTT), -unbounded, unbounded, request.param)
    return truth, [exact(truth, seed=seed) for seed in (0, 1)]


def test_the_coefficients_of_gray_scott_are_recovered_from_its_frames(gray_scott):
    truth, support = gray_scott
    found = Rates.fit(support, truth.walls)
    assert np.array_equal(found.weights != 0, truth.weights != 0)
    np.testing.assert_allclose(found.weights, truth.weights, rtol=0.01)


def test_simpsons_rule_makes_the_coefficients_exact_to_fourth_order():
    unbounded = np.full(2, np.inf)
    truth = Rates(weights_of(GRAY_SCOTT), -unbounded, unbounded)

    def worst(interval):
        fitted = Rates.fit([exact(truth, 9, interval=interval, inner=10)]).weights / interval
        return np.abs(fitted - truth.weights * (fitted != 0)).max()

    truth_per_frame = worst(0.25), worst(0.5)
    assert truth_per_frame[1] / truth_per_frame[0] > 8


def test_the_forecast_integrates_what_was_fitted(gray_scott):
    truth, support = gray_scott
    fields = support[0][:9]
    found = Rates.fit(support, truth.walls).forecast(fields[None, :4])[0]
    change = np.abs(fields[4:] - fields[3]).max()
    assert found.shape == (HORIZONS, *fields.shape[1:]) and found.dtype == np.float32
    assert np.abs(found - fields[4:]).max() < 0.02 * change


def test_states_stay_in_range_and_stiff_rates_repeat_the_newest_frame():
    fields = np.random.default_rng(0).uniform(size=(3, 4, 8, 8, 2))
    explosive = weights_of(({"1": 1.0, "u": 100.0}, {"v^3": 50.0}))
    found = Rates(explosive, np.full(2, -0.5), np.full(2, 1.5)).forecast(fields)
    assert found.min() >= -0.5 and found.max() <= 1.5
    stiff = Rates(weights_of(({"lap u": 1e5}, {"lap v": 1e5})), np.full(2, -0.5), np.full(2, 1.5))
    np.testing.assert_array_equal(stiff.forecast(fields), persistence(fields).astype(np.float32))


def test_the_laplacian_has_the_eigenvalue_of_its_stencil_and_no_flux_through_walls():
    x = 2 * np.pi * np.arange(16) / 16
    wave = np.cos(3 * x)[:, None] * np.cos(2 * x)[None]
    np.testing.assert_allclose(
        laplacian(wave), (2 * np.cos(6 * np.pi / 16) + 2 * np.cos(4 * np.pi / 16) - 4) * wave, atol=1e-12
    )
    assert (
        abs(laplacian(np.random.default_rng(0).standard_normal((3, 8, 9)), walls=True).sum(axis=(-2, -1))).max() < 1e-12
    )


def test_units_change_the_coefficients_and_not_the_forecast():
    unbounded = np.full(2, np.inf)
    fields = exact(Rates(weights_of(GRAY_SCOTT), -unbounded, unbounded), 12)
    scale = np.array([100.0, 0.01])
    own, other = Rates.fit([fields]), Rates.fit([fields * scale])
    np.testing.assert_allclose(
        other.forecast(fields[None, :4] * scale) / scale, own.forecast(fields[None, :4]), rtol=2e-3
    )


def test_rates_that_never_change_are_zero():
    fields = np.repeat(np.random.default_rng(0).standard_normal((1, 8, 8, 2)), 5, axis=0)
    found = Rates.fit([fields])
    assert not found.weights.any() and str(found) == "du/dt = 0\ndv/dt = 0"
    np.testing.assert_allclose(found.forecast(fields[None, :4])[0], np.repeat(fields[:1], 5, axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    "support", [[], [np.zeros((2, 8, 8, 2))], [np.zeros((5, 8, 8, 3))]], ids=["none", "short", "three"]
)
def test_unfit_supports_are_refused(support):
    with pytest.raises(ArgumentError, match="at least 3 frames"):
        Rates.fit(support)
