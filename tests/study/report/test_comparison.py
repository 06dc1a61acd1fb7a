import numpy as np
import pandas as pd
import pytest

from rdjepa.errors import ArgumentError
from rdjepa.study.report.comparison import against_all, comparison_sheet, paired


def rows(errors):
    """forecaster -> (supports, trajectories) errors at two horizons, of one system at K = 1."""
    found = []
    for forecaster, table in errors.items():
        for (support, trajectory), value in np.ndenumerate(np.asarray(table, dtype=float)):
            for horizon, share in ((1, 0.5), (2, 1.5)):
                found.append(("barkley", 1, 777 + support, forecaster, "id", "mse", horizon, trajectory, share * value))
    names = ["system", "k", "support_seed", "forecaster", "regime", "metric", "horizon", "trajectory", "value"]
    frame = pd.DataFrame(found, columns=names)
    return frame.assign(run=frame["forecaster"] + frame["support_seed"].astype(str))


def test_differences_are_of_matched_forecasts():
    model, other = [[1.0, 2.0, 3.0], [2.0, 2.0, 9.0]], [[2.0, 1.0, 4.0], [4.0, 4.0, 10.0]]
    found = paired(rows({"a": model, "b": other}), "a", "b", "mse").iloc[0]
    assert found["difference"] == pytest.approx(np.mean(np.subtract(model, other)))
    assert found["won"] == pytest.approx(5 / 6)
    assert (found["supports"], found["trajectories"]) == (2, 3)
    assert found["low"] < found["difference"] < found["high"]
    assert set(found["runs"].split()) == {"a777", "a778", "b777", "b778"}


def test_a_constant_difference_has_no_interval():
    model = np.random.default_rng(0).uniform(1, 2, (3, 20))
    found = paired(rows({"a": model, "b": model + 0.25}), "a", "b", "mse").iloc[0]
    assert (found["low"], found["high"], found["won"]) == pytest.approx((-0.25, -0.25, 1.0))
    swapped = paired(rows({"a": model, "b": model + 0.25}), "b", "a", "mse").iloc[0]
    assert (swapped["difference"], swapped["won"]) == pytest.approx((0.25, 0.0))


def test_the_interval_over_trajectories_is_that_of_the_standard_error():
    differences = np.random.default_rng(1).normal(0, 1, (1, 400))
    found = paired(rows({"a": 5 + differences, "b": np.full((1, 400), 5.0)}), "a", "b", "mse", resamples=4000).iloc[0]
    expected = 2 * 1.96 * differences.std(ddof=1) / 20
    assert found["high"] - found["low"] == pytest.approx(expected, rel=0.06)


def test_supports_that_disagree_widen_the_interval():
    agree, disagree = np.zeros((3, 50)), np.repeat([[-1.0], [0.0], [1.0]], 50, axis=1)
    narrow, wide = (
        paired(rows({"a": 5 + each, "b": np.full((3, 50), 5.0)}), "a", "b", "mse") for each in (agree, disagree)
    )
    assert narrow.iloc[0]["high"] == 0.0
    # one in 27 draws takes the same support three times
    assert wide[["low", "high"]].iloc[0].tolist() == pytest.approx([-1.0, 1.0])


def test_the_same_seed_draws_the_same_interval():
    table = rows({"a": np.random.default_rng(2).uniform(size=(3, 9)), "b": np.full((3, 9), 0.4)})
    pd.testing.assert_frame_equal(paired(table, "a", "b", "mse", seed=5), paired(table, "a", "b", "mse", seed=5))
    other = paired(table, "a", "b", "mse", seed=6)
    assert other["low"].iloc[0] != paired(table, "a", "b", "mse", seed=5)["low"].iloc[0]


def test_an_interval_is_the_same_whatever_stands_beside_it():
    random = np.random.default_rng(2)
    one, two = (rows({"a": random.uniform(size=(3, 9)), "b": np.full((3, 9), 0.4)}) for _ in range(2))
    last = one.assign(k=5)  # behind others in the table, whichever order these have
    found = paired(pd.concat([two, last.astype({"k": "int16"}), one.assign(system="brusselator")]), "a", "b", "mse")
    place = (found["system"] == "barkley") & (found["k"] == 5)
    pd.testing.assert_frame_equal(found[place].reset_index(drop=True), paired(last, "a", "b", "mse"))
    assert len(set(found["low"])) == len(found) == 3  # each has draws of its own


def test_without_a_common_selection_there_is_no_comparison():
    table = rows({"a": [[1.0]], "b": [[2.0]]})
    apart = table.assign(support_seed=np.where(table["forecaster"] == "a", 777, 778))
    assert paired(apart, "a", "b", "mse").empty
    assert paired(table, "a", "c", "mse").empty
    assert against_all(table[table["forecaster"] == "a"], "a", ("mse",)).empty


def test_runs_without_a_counterpart_are_not_behind_a_comparison():
    table = rows({"a": [[1.0, 2.0], [3.0, 4.0]], "b": [[2.0, 2.0], [3.0, 3.0]]})
    found = paired(table[table["run"] != "b778"], "a", "b", "mse").iloc[0]
    assert found["supports"] == 1 and set(found["runs"].split()) == {"a777", "b777"}


def test_a_single_forecast_has_no_interval_and_is_not_marked():
    found = against_all(rows({"a": [[1.0]], "b": [[2.0]]}), "a", ("mse",))
    assert found[["low", "high"]].isna().all(axis=None)
    text = comparison_sheet(found, "mse", "caption").rows[0][1][0]
    assert (text.text, text.bold) == ("−100.00 [—]", False)


def test_the_sheet_marks_what_lies_below_zero():
    found = against_all(rows({"a": [[1.0, 1.1]], "b": [[2.0, 2.3]], "c": [[1.0, 1.2]]}), "a", ("mse",))
    sheet = comparison_sheet(found, "mse", "caption")
    marked = {labels[1]: texts[0].bold for labels, texts in sheet.rows}
    assert marked == {"b": True, "c": False}  # the interval of c reaches zero
    assert sheet.rows[0][1][0].text == "−110.00 [−120.00, −100.00]" and sheet.rows[0][1][1].text == "100%"


def test_the_sheet_says_where_fewer_selections_were_compared():
    errors = {"a": [[1.0, 1.1], [1.0, 1.2]], "b": [[2.0, 2.3], [2.0, 2.1]], "c": [[1.0, 1.2]]}
    sheet = comparison_sheet(against_all(rows(errors), "a", ("mse",)), "mse", "caption")
    texts = {labels[1]: texts[0].text for labels, texts in sheet.rows}
    assert texts["c"].endswith("] (1)") and texts["b"].count("[") == 1


def test_every_selection_has_its_own_difference():
    found = paired(rows({"a": [[1.0, 2.0], [3.0, 3.0]], "b": [[2.0, 2.0], [2.0, 3.5]]}), "a", "b", "mse").iloc[0]
    assert [float(each) for each in found["by_support"].split()] == [-0.5, 0.25]
    assert np.mean([-0.5, 0.25]) == found["difference"]


def test_what_does_not_belong_together_is_not_averaged():
    table = rows({"a": [[1.0, 2.0], [3.0, 4.0]], "b": [[2.0, 2.0], [3.0, 3.0]]})
    again = table[table["run"] == "a777"].assign(run="another", value=9.0)
    with pytest.raises(ArgumentError, match=r"one run of each cell, got 2 of .*'barkley', .*777.*'a'"):
        paired(pd.concat([table, again]), "a", "b", "mse")
    shorter = table[(table["support_seed"] == 777) | (table["trajectory"] == 0)]
    with pytest.raises(ArgumentError, match="same test trajectories for every support selection of barkley"):
        paired(shorter, "a", "b", "mse")


def test_equal_errors_are_not_won():
    found = paired(rows({"a": [[1.0, 2.0]], "b": [[1.0, 3.0]]}), "a", "b", "mse").iloc[0]
    assert found["won"] == 0.5
