import pytest

from rdjepa.evaluation.aggregate import horizon_average, per_horizon
from rdjepa.evaluation.evaluate import Row

# two horizons, three trajectories in two regimes
ROWS = [
    Row("relative_l2", 1, "id", 0, 0.1),
    Row("relative_l2", 1, "id", 1, 0.2),
    Row("relative_l2", 1, "ic-ood", 0, 0.6),
    Row("relative_l2", 2, "id", 0, 0.2),
    Row("relative_l2", 2, "id", 1, 0.6),
    Row("relative_l2", 2, "ic-ood", 0, 1.0),
    Row("mse", 1, "id", 0, 99.0),
]


def test_trajectories_weigh_equally_at_each_horizon() -> None:
    assert per_horizon(ROWS, "relative_l2") == pytest.approx({1: 0.3, 2: 0.6})
    assert per_horizon(ROWS, "relative_l2", "id") == pytest.approx({1: 0.15, 2: 0.4})
    assert per_horizon(ROWS, "relative_l2", "ic-ood") == pytest.approx({1: 0.6, 2: 1.0})


def test_horizons_weigh_equally() -> None:
    assert horizon_average(ROWS, "relative_l2") == pytest.approx(0.45)
    assert horizon_average(ROWS, "mse") == 99.0


def test_the_order_of_rows_changes_no_bit() -> None:
    assert per_horizon(reversed(ROWS), "relative_l2") == per_horizon(ROWS, "relative_l2")


def test_regimes_of_equal_size_average_to_the_whole() -> None:
    rows = [Row("mse", 1, regime, i, v) for regime, vs in (("a", (1, 2)), ("b", (5, 9))) for i, v in enumerate(vs)]
    parts = [per_horizon(rows, "mse", regime)[1] for regime in "ab"]
    assert sum(parts) / 2 == per_horizon(rows, "mse")[1]


def test_what_cannot_be_averaged_is_refused() -> None:
    with pytest.raises(ValueError, match="expected rows of metric 'vrmse', got none"):
        per_horizon(ROWS, "vrmse")
    with pytest.raises(ValueError, match="in regime 'coeff-ood', got none"):
        per_horizon(ROWS, "relative_l2", "coeff-ood")
    with pytest.raises(ValueError, match="expected one row per horizon and trajectory"):
        per_horizon([*ROWS, ROWS[0]], "relative_l2")
    with pytest.raises(ValueError, match="the same trajectories at every horizon"):
        per_horizon(ROWS[1:], "relative_l2")
