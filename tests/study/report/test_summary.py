import numpy as np
import pandas as pd
import pytest

from rdjepa.evaluation import aggregate
from rdjepa.evaluation.evaluate import Row
from rdjepa.study.report import summary


def evaluated(rows, system, k, forecaster, seed):
    """One run's rows as the evaluation makes them."""
    conditions = (rows["system"] == system) & (rows["k"] == k) & (rows["forecaster"] == forecaster)
    chosen = rows[conditions & (rows["support_seed"] == seed)]
    return [Row(r.metric, r.horizon, r.regime, r.trajectory, r.value) for r in chosen.itertuples()]


def test_means_equal_those_of_the_evaluation(source):
    rows = source[0]
    values = summary.run_values(summary.prepare(rows))
    known = summary.over_runs(values)
    for system, k, forecaster in (("gray-scott", 5, "rd-jepa"), ("schnakenberg", 20, "fno")):
        runs = {seed: evaluated(rows, system, k, forecaster, seed) for seed in (777, 778, 779)}
        for regime, ours in ((None, "all"), ("ic-ood", "ic-ood")):
            third = aggregate.over_runs({s: aggregate.per_horizon(r, "mse", regime)[3] for s, r in runs.items()})
            mean = aggregate.over_runs({s: aggregate.horizon_average(r, "mse", regime) for s, r in runs.items()})
            for horizon, theirs in (("3", third), ("mean", mean)):
                result = known.loc[(system, k, forecaster, "mse", horizon, ours)]
                assert (result["mean"], result["sd"]) == pytest.approx((theirs.mean, theirs.sd), rel=1e-12)
                assert result["n"] == theirs.runs


def test_reductions_equal_those_of_the_evaluation(heldout):
    rows = heldout[0]
    values = summary.run_values(summary.prepare(rows))
    ours = summary.over_runs(summary.reductions(values, "rd-jepa", "no-latent"))
    runs = {
        name: {
            seed: aggregate.horizon_average(evaluated(rows, "barkley", 5, name, seed), "relative_l2")
            for seed in (777, 778, 779)
        }
        for name in ("rd-jepa", "no-latent")
    }
    theirs = aggregate.paired_reduction(runs["rd-jepa"], runs["no-latent"])
    result = ours.loc[("barkley", 5, "rd-jepa/no-latent", "relative_l2", "mean", "all")]
    assert (100 * result["mean"], 100 * result["sd"]) == pytest.approx((theirs.mean, theirs.sd))
    assert len(result["runs"].split()) == 6


def test_systems_weigh_equally_and_only_all_of_them_together(source):
    values = summary.run_values(summary.prepare(source[0]))
    systems = list(values["system"].unique())
    overall = summary.over_systems(values, systems)
    place = {"k": 5, "forecaster": "fno", "metric": "mse", "horizon": "2", "regime": "id", "support_seed": 778}

    def chosen(frame):
        return frame[np.logical_and.reduce([frame[name] == value for name, value in place.items()])]["value"]

    assert chosen(overall).tolist() == pytest.approx([chosen(values).mean()])
    assert summary.over_systems(values, [*systems, "barkley"]).empty


def test_a_single_selection_has_no_deviation(heldout):
    rows = heldout[0]
    known = summary.over_runs(summary.run_values(summary.prepare(rows[rows["support_seed"] == 778])))
    assert known["sd"].isna().all() and set(known["n"]) == {1} and set(known["seeds"]) == {"778"}


def test_compact_rows_give_the_same(heldout):
    rows = heldout[0]
    compact = rows.astype({name: "category" for name in ("system", "forecaster", "metric", "regime", "run", "profile")})
    compact = compact.astype({name: "int16" for name in ("k", "support_seed", "horizon", "trajectory")})
    one, other = (summary.over_runs(summary.run_values(summary.prepare(each))) for each in (rows, compact))
    pd.testing.assert_frame_equal(one, other, check_index_type=False)


def test_rows_that_do_not_belong_together_are_refused(heldout):
    rows = heldout[0]
    foreign = rows[rows["run"] == rows["run"].iloc[0]]
    with pytest.raises(ValueError, match="rows of finished cells, got none"):
        summary.prepare(rows[:0])
    with pytest.raises(ValueError, match="rows of one profile, got nano, small"):
        summary.prepare(pd.concat([rows, foreign.assign(profile="small")]))
    with pytest.raises(ValueError, match="one run of each cell, got 2"):
        summary.prepare(pd.concat([rows, foreign.assign(run="f" * 16)]))
    with pytest.raises(ValueError, match="got repeated ones"):
        summary.prepare(pd.concat([rows, foreign]))
    with pytest.raises(ValueError, match="finite errors, got one of run"):
        summary.prepare(rows.assign(value=rows["value"].where(rows.index != 5)))
    with pytest.raises(ValueError, match=r"same test trajectories .* lambda-omega"):
        summary.prepare(rows[~((rows["run"] == foreign["run"].iloc[0]) & (rows["trajectory"] == 1))])
