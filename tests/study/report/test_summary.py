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
    values = (
        summary.run_values(summary.prepare(rows))
        .set_index(["system", "k", "forecaster", "support_seed", "metric", "regime", "horizon"])["value"]
        .sort_index()
    )
    for place in (("gray-scott", 5, "rd-jepa", 777), ("schnakenberg", 20, "fno", 779)):
        run = evaluated(rows, *place)
        for regime, name in ((None, "all"), ("ic-ood", "ic-ood")):
            theirs = {str(h): value for h, value in aggregate.per_horizon(run, "mse", regime).items()}
            theirs["mean"] = aggregate.horizon_average(run, "mse", regime)
            assert values.loc[(*place, "mse", name)].to_dict() == pytest.approx(theirs, rel=1e-12)


def test_spread_is_the_sample_deviation_over_runs(heldout):
    values = summary.run_values(summary.prepare(heldout[0]))
    place = ("barkley", 5, "rd-jepa", "relative_l2", "mean", "all")
    chosen = values[np.logical_and.reduce([values[n] == v for n, v in zip(summary.DIMENSIONS, place, strict=True)])]
    result = summary.over_runs(values).loc[place]
    assert (result["mean"], result["sd"], result["n"]) == pytest.approx(
        (np.mean(chosen["value"]), np.std(chosen["value"], ddof=1), 3), rel=1e-12
    )


def test_reductions_are_paired_before_they_are_averaged(heldout):
    values = summary.run_values(summary.prepare(heldout[0]))
    ours = summary.over_runs(summary.reductions(values, "rd-jepa", "no-latent"))
    model, control = (
        np.array(
            [
                aggregate.horizon_average(evaluated(heldout[0], "barkley", 5, name, seed), "relative_l2")
                for seed in (777, 778, 779)
            ]
        )
        for name in ("rd-jepa", "no-latent")
    )
    result = ours.loc[("barkley", 5, "rd-jepa/no-latent", "relative_l2", "mean", "all")]
    share = 1 - model / control
    assert (result["mean"], result["sd"]) == pytest.approx((share.mean(), share.std(ddof=1)))
    assert result["mean"] != pytest.approx(1 - model.mean() / control.mean(), rel=1e-9)  # a ratio of means is another
    assert len(result["runs"].split()) == 6
    nothing = summary.over_runs(summary.reductions(values, "no-latent", "no-latent"))
    assert (nothing["mean"] == 0).all() and (nothing["sd"] == 0).all()


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


def test_settings_whose_forecasters_have_other_selections_are_named(heldout):
    rows = heldout[0]
    assert summary.uneven(rows) == []
    untrained = rows["forecaster"] == "persistence"
    assert summary.uneven(rows[~untrained | (rows["support_seed"] == 777)]) == []
    lacking = (rows["system"] == "barkley") & (rows["k"] == 5) & (rows["support_seed"] == 778)
    assert summary.uneven(rows[~(lacking & (rows["forecaster"] == "fno"))]) == [("barkley", 5)]
    assert summary.uneven(rows[~lacking]) == []  # all have two
