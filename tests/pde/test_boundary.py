"""Ghost cells and walls against solutions in closed form."""

import numpy as np
import pytest
from decaying import decay
from scipy.optimize import brentq

from rdjepa.pde.boundary import PERIODIC, Boundary
from rdjepa.pde.grid import Grid
from rdjepa.pde.integrators import integrator
from rdjepa.pde.laplacian import fill_walls

WALLS = (Boundary("neumann"), Boundary("robin", 0.7), Boundary("dirichlet"))
LENGTH = 3.0


def mode(boundary: Boundary, x: np.ndarray) -> tuple[np.ndarray, float]:
    """The slowest mode on [0, LENGTH] that meets the condition at both ends, and its wave number.

    Even about the middle for Robin and Dirichlet walls: cos(q (x - L/2)) with q tan(q L/2) = kappa, or q = pi / L.
    """
    if boundary.kind == "neumann":
        return np.cos(np.pi * x / LENGTH), np.pi / LENGTH
    q = np.pi / LENGTH
    if boundary.kind == "robin":
        q = brentq(lambda q: q * np.tan(q * LENGTH / 2) - boundary.kappa, 1e-9, np.pi / LENGTH - 1e-9)
    return np.cos(q * (x - LENGTH / 2)), q


@pytest.mark.parametrize("boundary", WALLS, ids=str)
def test_ghost_cells_meet_the_condition_to_second_order(boundary):
    """The residual of the condition at the wall, on a smooth function that fulfills it, falls as spacing^2."""
    residuals = []
    for size in (16, 32, 64):
        spacing = LENGTH / size
        inside, _ = mode(boundary, np.array([0.5 * spacing]))
        outside, _ = mode(boundary, np.array([-0.5 * spacing]))
        residuals.append(abs(boundary.ghost_factor(spacing) * inside[0] - outside[0]))
    if boundary.kind == "robin":
        assert residuals[0] > residuals[1] > residuals[2]
        assert np.log2(residuals[1] / residuals[2]) == pytest.approx(3, abs=0.1)  # of the ghost value: spacing^3
    else:
        assert max(residuals) < 1e-14  # the modes are exactly even or odd about the wall


@pytest.mark.parametrize("boundary", WALLS, ids=str)
def test_modes_decay_at_the_known_rate_with_second_order(boundary):
    advance = integrator("strang", 2, decay, boundary)
    errors = []
    for size in (16, 32, 64):
        x, y = Grid(size, LENGTH, walls=True).coordinates()
        (along, q), (across, _) = mode(boundary, x), mode(boundary, y)
        start, time, steps = along * across, 0.2, 20 * size**2 // 256
        end = advance(np.stack([start, start]), (0.0,), (0.5, 0.0), LENGTH, time / steps, steps)
        errors.append(np.abs(end[0] - start * np.exp(-2 * 0.5 * q**2 * time)).max())
        assert np.array_equal(end[1], start)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.25)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2, abs=0.15)


def test_no_flux_walls_keep_the_total_and_the_others_lose_some():
    state = np.random.default_rng(0).random((2, 24, 24))
    totals = [
        integrator("strang", 2, decay, wall)(state, (0.0,), (0.1, 0.1), LENGTH, 0.005, 40).sum(axis=(1, 2))
        for wall in WALLS
    ]
    before = state.sum(axis=(1, 2))
    np.testing.assert_allclose(totals[0], before, rtol=1e-12)
    assert (totals[1] < before).all() and (totals[2] < totals[1]).all()


def test_a_robin_wall_lies_between_no_flux_and_zero():
    spacing = 0.1
    assert Boundary("robin", 1e-12).ghost_factor(spacing) == pytest.approx(Boundary("neumann").ghost_factor(spacing))
    assert Boundary("robin", 1e12).ghost_factor(spacing) == pytest.approx(Boundary("dirichlet").ghost_factor(spacing))


def test_ghosts_are_multiples_of_their_neighbors():
    field = np.random.default_rng(1).random((7, 7))
    inner = field[1:-1, 1:-1].copy()
    fill_walls(field, 0.25)
    assert np.array_equal(field[1:-1, 1:-1], inner)
    for ghost, cell in (
        (field[0], field[1]),
        (field[-1], field[-2]),
        (field[:, 0], field[:, 1]),
        (field.T[-1], field.T[-2]),
    ):
        np.testing.assert_array_equal(ghost[1:-1], 0.25 * cell[1:-1])


def test_the_splitting_between_walls_is_of_second_order_in_time():
    def reaction(u, v, a):
        return -a * u * u, -v

    state = 1 + 0.5 * np.random.default_rng(2).random((2, 16, 16))
    advance = integrator("strang", 2, reaction, WALLS[1])
    ends = [advance(state, (1.5,), (0.2, 0.1), LENGTH, 0.32 / n, n) for n in (40, 80, 160)]
    coarse, fine = np.abs(ends[0] - ends[1]).max(), np.abs(ends[1] - ends[2]).max()
    assert np.log2(coarse / fine) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(
    "arguments", [("absorbing",), ("robin",), ("robin", -1.0), ("neumann", 0.1), ("robin", np.inf), ("robin", np.nan)]
)
def test_what_is_no_boundary_is_refused(arguments):
    known = arguments[0] in ("robin", "neumann")
    sentence = "expected a finite kappa above 0 with a robin wall" if known else "expected a boundary periodic, neumann"
    with pytest.raises(ValueError, match=sentence):
        Boundary(*arguments)


def test_walls_need_their_own_method_and_periodic_has_no_ghost_factor():
    with pytest.raises(ValueError, match="strang with Laplacian 2"):
        integrator("euler", 2, lambda u, v, a: (u, v), WALLS[0])
    with pytest.raises(ValueError, match="no ghost factor"):
        PERIODIC.ghost_factor(0.1)


def test_between_walls_points_are_cell_centers_and_distances_do_not_wrap():
    grid = Grid(4, 2.0, -1.0, walls=True)
    x, y = grid.coordinates()
    np.testing.assert_allclose(x[0], [-0.75, -0.25, 0.25, 0.75])
    np.testing.assert_array_equal(x, y.T)
    assert grid.distance(np.array([-0.75, -0.75]))[3, 3] == pytest.approx(1.5 * np.sqrt(2))
