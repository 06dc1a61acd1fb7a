import numpy as np
import pytest

from rdjepa.data.borders import PERIODIC, UNKNOWN, WALLS, borders
from rdjepa.data.simulate import simulate

X = np.arange(64) / 64
T = np.arange(10)[:, None, None]


def fields(*components):
    return np.stack(np.broadcast_arrays(*components), axis=-1)


def test_waves_that_fit_into_the_domain_wrap_and_excerpts_do_not():
    whole = np.sin(2 * np.pi * (X[:, None] + 2 * X) + T / 3)
    part = np.sin(2 * np.pi * (X[:, None] + 2.4 * X) + T / 3)
    assert borders(fields(whole, whole)) == (PERIODIC, PERIODIC)
    assert borders(fields(part, part)) == (PERIODIC, WALLS)
    assert borders(fields(part).swapaxes(1, 2)) == (WALLS, PERIODIC)


def test_what_tells_nothing_is_unknown():
    noise = np.random.default_rng(0).normal(size=(10, 64, 64, 2))
    spot = fields(np.exp(-((X[:, None] - 0.5) ** 2 + (X - 0.5) ** 2) / 0.005) * (1 + T))
    for unclear in (noise, spot, np.ones((10, 64, 64, 2)), noise[:, :2, :2]):
        assert borders(unclear) == (UNKNOWN, UNKNOWN)


def test_an_axis_along_which_nothing_changes_is_unknown_and_the_other_is_not():
    rows = fields(np.sin(4 * np.pi * X[:, None] + T / 3) + 0 * X)
    for noise in (0, 1e-9 * np.random.default_rng(0).normal(size=rows.shape)):
        assert borders(rows + noise) == (PERIODIC, UNKNOWN)
        assert borders((rows + noise).swapaxes(1, 2)) == (UNKNOWN, PERIODIC)


def test_shifting_periodic_fields_changes_nothing():
    whole = fields(np.sin(2 * np.pi * (X[:, None] + 2 * X) + T / 3))
    assert borders(np.roll(whole, (17, 5), axis=(1, 2))) == borders(whole)


@pytest.mark.parametrize(
    ("name", "never"),
    [("lambda-omega", WALLS), ("gray-scott", WALLS), ("barkley", WALLS), ("barkley-neumann", PERIODIC)],
)
def test_simulated_systems_are_never_taken_for_the_opposite(name, never):
    found = borders(simulate(name, split="validation").coarsened(64).fields)
    assert never not in found and set(found) != {UNKNOWN}
