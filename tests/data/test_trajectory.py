import numpy as np
import pytest

from rdjepa.data.trajectory import Trajectory

FIELDS = np.random.default_rng(0).standard_normal((3, 32, 64, 2)).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "expected"), [((32, 64), (1.0, 2.0)), ((64, 32), (2.0, 1.0)), ((64, 64), (1.0, 1.0))]
)
def test_block_means_have_cells_of_the_shape_of_the_blocks(shape, expected):
    fields = np.resize(FIELDS, (3, *shape, 2))
    coarse = Trajectory(fields, np.arange(3.0)).coarsened(16)
    assert coarse.fields.shape == (3, 16, 16, 2) and coarse.spacing == expected
    y, x = (side // 16 for side in shape)
    assert np.allclose(coarse.fields[:, 1, 2], fields[:, y : 2 * y, 2 * x : 3 * x].mean((1, 2)), atol=1e-6)


def test_a_trajectory_is_shown_in_one_line():
    assert repr(Trajectory(FIELDS, np.arange(3.0))) == "Trajectory(without a key, fields (3, 32, 64, 2), times 0 to 2)"


def test_fields_that_are_not_finer_stay_as_they_are():
    trajectory = Trajectory(FIELDS, np.arange(3.0))
    assert trajectory.coarsened(64) is trajectory
