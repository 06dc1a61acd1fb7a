"""The Well's own loader reads our files. Needs the package the_well, which the test extra `peers` names."""

import numpy as np
import pytest

from rdjepa.data import store
from rdjepa.data.simulate import simulate

datasets = pytest.importorskip("the_well.data.datasets", reason="install the extra `peers`")


@pytest.mark.parametrize(("name", "kind"), [("schnakenberg", "PERIODIC"), ("barkley-robin", "WALL")])
def test_their_loader_gives_our_windows(tmp_path, name, kind):
    trajectories = [simulate(name, seed=i) for i in range(2)]
    for trajectory in trajectories:
        store.write(tmp_path, trajectory)
    stats = store.write_stats(tmp_path / name)
    windows = datasets.WellDataset(
        path=str(tmp_path / name / "data" / "train"), normalization_path=str(stats), n_steps_input=4, n_steps_output=5
    )
    assert len(windows) == 2 * 32
    assert windows.metadata.boundary_condition_types == [kind]
    assert set(windows.metadata.constant_scalar_names) == set(trajectories[0].coefficients)
    for number, start in ((0, 0), (31, 31), (32, 0)):
        sample, fields = windows[number], trajectories[number // 32].fields
        both = np.concatenate([sample["input_fields"].numpy(), sample["output_fields"].numpy()])
        np.testing.assert_array_equal(both.swapaxes(1, 2), fields[start : start + 9])  # they put x before y
