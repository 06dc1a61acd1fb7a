import numpy as np
import pytest

from rdjepa.pde.grid import Grid
from rdjepa.pde.shapes import blob, disk, oval, ring, square

GRID = Grid(32, 2.0, -1.0)


def test_coordinates_start_at_the_origin_and_leave_out_the_far_edge():
    x, y = GRID.coordinates()
    assert x[5, 0] == y[0, 5] == -1
    assert x[7, -1] == y[-1, 7] == pytest.approx(1 - GRID.spacing)


def test_distance_goes_the_shortest_way_around():
    distance = GRID.distance(np.array([-0.95, 0.9]))
    x, y = GRID.coordinates()
    images = [np.hypot(x + 0.95 + 2 * i, y - 0.9 + 2 * j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    assert np.allclose(distance, np.min(images, axis=0))


def test_random_points_lie_in_the_square():
    rng = np.random.default_rng(0)
    points = np.array([GRID.random_point(rng) for _ in range(200)])
    assert points.min() >= -1
    assert points.max() < 1
    assert np.abs(points.mean(axis=0)).max() < 0.15


@pytest.mark.parametrize(
    "shape",
    [
        lambda grid, center: blob(grid, center, 0.2),
        lambda grid, center: oval(grid, center, (0.1, 0.3), 0.7),
        lambda grid, center: ring(grid, center, 0.4, 0.1),
        lambda grid, center: square(grid, center, 0.3),
        lambda grid, center: disk(grid, center, 0.4, 0.1),
    ],
)
def test_shapes_are_masks_that_move_with_their_center_around_the_torus(shape):
    center, steps = np.array([0.01, 0.02]), (9, 13)
    mask = shape(GRID, center)
    moved = shape(GRID, center + GRID.spacing * np.array([steps[1], steps[0]]))
    assert mask.min() >= 0
    assert 0.9 < mask.max() <= 1
    assert np.allclose(np.roll(mask, steps, (0, 1)), moved, atol=0.02)
