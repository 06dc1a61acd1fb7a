import numpy as np
import pytest

from rdjepa.evaluation.ridge import PENALTIES, fit_cross_validated, r_squared


def data(n=60, p=20, q=3, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p), rng.standard_normal((p, q))
    return x, x @ w + 3 + noise * rng.standard_normal((n, q))


def test_ridge_solves_its_normal_equations():
    x, y = data(q=1, noise=30.0)
    ridge = fit_cross_validated(x, y, np.arange(len(x)))
    z, centered = (x - x.mean(0)) / x.std(0), y - y.mean(0)
    assert PENALTIES[0] < ridge.penalty.item() < PENALTIES[-1]
    wanted = np.linalg.solve(z.T @ z + ridge.penalty * len(x) * np.eye(20), z.T @ centered)
    assert np.allclose(ridge.weights, wanted)
    assert np.allclose(ridge.predict(x), z @ wanted + y.mean(0))


def test_linear_targets_are_found_and_noise_calls_for_a_larger_penalty():
    x, y = data(noise=0.0)
    groups = np.repeat(np.arange(20), 3)
    exact = fit_cross_validated(x, y, groups)
    assert r_squared(exact.predict(x), y).min() > 0.999
    noisy = fit_cross_validated(x, np.random.default_rng(1).standard_normal((60, 3)), groups)
    assert (exact.penalty == PENALTIES[0]).all()
    assert (noisy.penalty > PENALTIES[0]).all()


def test_every_target_has_its_own_penalty():
    x, y = data()
    y[:, 1] = np.random.default_rng(1).standard_normal(60)
    groups = np.repeat(np.arange(20), 3)
    together = fit_cross_validated(x, y, groups)
    assert together.penalty[1] > together.penalty[0]
    alone = [fit_cross_validated(x, y[:, [i]], groups).predict(x)[:, 0] for i in range(3)]
    assert np.allclose(together.predict(x), np.stack(alone, axis=1))


def test_more_features_than_rows_are_no_obstacle():
    x, y = data(n=30, p=80, noise=0.1)
    assert np.isfinite(fit_cross_validated(x, y, np.arange(30)).weights).all()


def test_groups_are_left_out_whole():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(15), 8)
    own = np.eye(15)[groups] + 1e-3 * rng.standard_normal((120, 15))  # features that name the group and nothing else
    ridge = fit_cross_validated(own, rng.standard_normal((15, 1))[groups], groups)
    assert ridge.penalty.item() > 1.0  # within groups alone the smallest penalty would have won
    with pytest.raises(ValueError, match="two groups"):
        fit_cross_validated(own, own, np.zeros(120))


def test_r_squared_is_one_for_the_truth_and_zero_for_the_mean():
    y = np.random.default_rng(0).standard_normal((10, 2))
    assert np.allclose(r_squared(y, y), 1)
    assert np.allclose(r_squared(np.broadcast_to(y.mean(0), y.shape), y), 0)
