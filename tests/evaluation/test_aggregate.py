import math

import pytest

from rdjepa.evaluation.aggregate import Summary, horizon_average, over_runs, paired_reduction, per_horizon, reductions
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


def test_spread_is_the_sample_deviation_over_runs() -> None:
    assert over_runs({777: 1.0, 778: 2.0, 779: 3.0}) == Summary(2.0, 1.0, 3)
    single = over_runs({777: 0.4})
    assert single.mean == 0.4 and math.isnan(single.sd) and single.runs == 1


def test_reductions_are_paired_before_they_are_averaged() -> None:
    model, baseline = {777: 0.1, 778: 0.3}, {778: 0.4, 777: 0.5}
    assert reductions(model, baseline) == pytest.approx({777: 80.0, 778: 25.0})
    summary = paired_reduction(model, baseline)
    assert summary.mean == pytest.approx(52.5)
    assert summary.sd == pytest.approx(55 / math.sqrt(2))
    assert summary.mean != pytest.approx(100 * (1 - 0.2 / 0.45))  # the ratio of the means is another number


def test_no_difference_is_no_reduction_and_twice_the_error_is_minus_a_hundred() -> None:
    runs = {777: 0.2, 778: 0.7, 779: 0.3}
    assert paired_reduction(runs, runs) == Summary(0.0, 0.0, 3)
    assert paired_reduction({run: 2 * value for run, value in runs.items()}, runs).mean == pytest.approx(-100)


def test_what_cannot_be_averaged_is_refused() -> None:
    with pytest.raises(ValueError, match="expected rows of metric 'vrmse', got none"):
        per_horizon(ROWS, "vrmse")
    with pytest.raises(ValueError, match="in regime 'coeff-ood', got none"):
        per_horizon(ROWS, "relative_l2", "coeff-ood")
    with pytest.raises(ValueError, match="expected one row per horizon and trajectory"):
        per_horizon([*ROWS, ROWS[0]], "relative_l2")
    with pytest.raises(ValueError, match="the same trajectories at every horizon"):
        per_horizon(ROWS[1:], "relative_l2")
    with pytest.raises(ValueError, match="at least one run"):
        over_runs({})
    with pytest.raises(ValueError, match="the same runs of model and baseline"):
        paired_reduction({777: 1.0}, {778: 1.0})
    with pytest.raises(ValueError, match="above zero"):
        paired_reduction({777: 1.0}, {777: 0.0})
