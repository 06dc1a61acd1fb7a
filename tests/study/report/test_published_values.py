import pandas as pd
import pytest

from rdjepa.study import registry
from rdjepa.study.report.published import published, published_table
from rdjepa.study.report.summary import DIMENSIONS

ROUNDING = 0.5e-4  # of a printed value, times 100 with two decimals
COUNTS = {"1": 108, **{f"S{n}": 90 for n in range(6, 12)}, "S12": 54, "S13": 54, "S14": 36, "S15": 54}


def everything():
    return pd.concat([published(study) for study in registry.names() if registry.get(study).published])


def test_every_place_of_every_table_is_there_once():
    values = everything()
    assert values.groupby("table").size().to_dict() == COUNTS
    assert not values.duplicated(["table", *DIMENSIONS]).any()
    assert values[["mean", "sd"]].notna().all(axis=None) and (values["sd"] >= 0).all() and (values["mean"] > 0).all()


def test_the_printed_average_is_that_of_the_five_horizons():
    values = published("source")
    values = values[values["table"] != "S12"].set_index(["system", "k", "forecaster", "metric"])
    average = values.loc[values["horizon"] == "mean", "mean"]
    horizons = values[values["horizon"] != "mean"].groupby(level=[0, 1, 2, 3])["mean"].mean()
    assert (average - horizons).abs().max() < 2 * ROUNDING


def test_the_test_regimes_average_to_the_systems_average_but_for_one_contradiction_of_the_paper():
    regimes = published_table("source", "S12").groupby(["k", "forecaster", "metric"])["mean"].mean()
    values = published("source")
    systems = values[(values["table"] != "S12") & (values["horizon"] == "mean")]
    systems = systems.groupby(["k", "forecaster", "metric"])["mean"].mean()
    apart = (regimes - systems).abs()
    contradiction = [(10, "rd-jepa", "gradient_l1"), (10, "rd-jepa", "relative_l2")]
    assert len(apart) == 18
    assert apart.drop(contradiction).max() < 2 * ROUNDING
    assert apart[contradiction].tolist() == pytest.approx([0.00024, 0.00194], abs=2 * ROUNDING)


def test_a_result_that_stands_in_several_tables_is_the_same_there():
    values = everything()
    assert values.groupby(DIMENSIONS)[["mean", "sd"]].nunique().max(axis=None) == 1
    counts = values[values["forecaster"] == "rd-jepa"].groupby(DIMENSIONS)["table"].agg(set)
    assert counts.loc[("barkley", 5, "rd-jepa", "gradient_l1", "mean", "all")] == {"1", "S13", "S14"}


def test_the_reductions_that_the_paper_names():
    control = published_table("heldout", "S13").query("forecaster == 'rd-jepa/no-latent' and metric == 'relative_l2'")
    assert (round(100 * control["mean"].min()), round(100 * control["mean"].max())) == (45, 53)
    table = published_table("scratch", "S14").query("metric == 'relative_l2'")
    scratch = table.set_index(["forecaster", "system", "k"])
    ratios = 1 - scratch["mean"]["rd-jepa"] / scratch["mean"]["scratch"]
    assert (round(100 * ratios.min()), round(100 * ratios.max())) == (45, 56)


def test_paired_reductions_are_near_the_ratio_of_the_means():
    """A mean of ratios and a ratio of means differ, but by less than the spread of the ratios."""
    table = published_table("heldout", "S13").set_index(["metric", "system", "k", "forecaster"])["mean"].unstack()
    ratio = 1 - table["rd-jepa"] / table["no-latent"]
    assert (table["rd-jepa/no-latent"] - ratio).abs().max() < 0.02


def test_rd_jepa_is_lowest_wherever_the_paper_says_so():
    values = everything()
    errors = values[~values["forecaster"].str.contains("/")]
    setting = ["table", "system", "k", "metric", "horizon", "regime"]
    best = errors.sort_values("mean", kind="stable").groupby(setting)["forecaster"].first()
    assert set(best) == {"rd-jepa"}


def test_an_unknown_study_is_answered_with_the_known_ones():
    with pytest.raises(
        ValueError,
        match="decoder-source, decoder-boundary, rehearsal, augmented, anchored, ablation, got 'held-out'",
    ):
        published("held-out")
