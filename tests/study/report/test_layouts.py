from dataclasses import replace

import pytest

from rdjepa.study import registry
from rdjepa.study.report import summary
from rdjepa.study.report.layouts import axis, further_tables, paper_tables
from rdjepa.study.report.published import published_table
from rdjepa.study.report.summary import DIMENSIONS

HELD_OUT = ("lambda-omega", "barkley", "oregonator")


def test_a_paper_table_has_exactly_the_places_of_the_published_one():
    for study in registry.names():
        for layout in paper_tables(registry.get(study)):
            places = [place for line in layout.places() for place in line]
            assert layout.published is not None
            lines = published_table(*layout.published)[DIMENSIONS]
            assert sorted(map(str, places)) == sorted(str(tuple(line)) for line in lines.to_numpy().tolist())
            assert len(set(places)) == len(places)


def test_table_1_is_in_the_order_of_the_paper():
    table = paper_tables(registry.get("heldout"))[0]
    assert table.rows["system"] == HELD_OUT
    assert table.rows["forecaster"] == ("rd-jepa", "fno", "lno", "revit", "riesz-no", "cnext-unet")
    assert table.columns == {"metric": ("relative_l2", "gradient_l1"), "k": (1, 5, 10)}
    assert table.places()[7][4] == ("barkley", 5, "fno", "gradient_l1", "mean", "all")


def test_source_tables_are_in_the_order_of_the_paper():
    tables = paper_tables(registry.get("source"))
    assert [table.title for table in tables] == [f"Table S{number}" for number in range(6, 13)]
    assert [(table.fixed["metric"], table.fixed["k"]) for table in tables[:6]] == [
        (metric, k) for metric in ("relative_l2", "gradient_l1") for k in (5, 10, 20)
    ]
    for table in tables[:6]:  # the captions name what the table holds
        assert f"K = {table.fixed['k']};" in table.caption
        assert ("Relative" in table.caption) == (table.fixed["metric"] == "relative_l2")
        assert table.columns == {"horizon": ("1", "2", "3", "4", "5", "mean")}
    assert tables[-1].columns["regime"] == ("id", "coeff-ood", "ic-ood")


def test_the_scratch_control_stands_in_two_studies():
    assert paper_tables(registry.get("heldout"))[-1] == paper_tables(registry.get("scratch"))[0]
    assert paper_tables(registry.get("boundary"))[0].rows["system"] == (
        "barkley-neumann",
        "barkley-robin",
        "barkley-dirichlet",
    )


def test_tables_beyond_the_paper_follow_the_rows(heldout):
    rows = heldout[0][heldout[0]["forecaster"].isin(["persistence", "fno", "rd-jepa"])]
    values = summary.run_values(summary.prepare(rows))
    tables = {table.name: table for table in further_tables(registry.get("heldout"), values)}
    assert list(tables) == ["all-forecasters", "other-metrics", "skill-persistence"]
    assert tables["all-forecasters"].rows["forecaster"] == ("rd-jepa", "fno", "persistence")
    assert tables["skill-persistence"].rows["forecaster"] == ("rd-jepa/persistence", "fno/persistence")
    assert tables["other-metrics"].columns["metric"] == ("mse", "vrmse")


def test_axes_come_from_the_rows_and_from_what_is_published(heldout):
    rows = heldout[0]
    values = summary.run_values(summary.prepare(rows[(rows["system"] == "oregonator") & (rows["k"] > 1)]))
    assert axis(registry.get("heldout"), values, "k") == (1, 5, 10)
    assert axis(registry.get("heldout"), values, "system") == HELD_OUT
    mine = registry.Study("mine", "Mine", ("oregonator", "barkley"))
    assert axis(mine, values, "k") == (5, 10) and axis(mine, values, "system") == ("oregonator",)
    assert axis(replace(mine, published=registry.get("heldout").published), values, "k") == (1, 5, 10)
    unknown = values.assign(system="heat")
    assert axis(mine, unknown, "system") == ("heat",) and paper_tables(mine) == []


def test_an_unknown_study_is_refused():
    with pytest.raises(ValueError, match="expected a study among heldout"):
        registry.get("transfer")
