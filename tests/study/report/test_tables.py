import math
from dataclasses import replace

import pandas as pd
import pytest

from rdjepa.study import registry
from rdjepa.study.report import summary, tables
from rdjepa.study.report.layouts import further_tables, paper_tables
from rdjepa.study.report.sheet import MISSING

PLACE = ("barkley", 5, "rd-jepa", "relative_l2", "mean", "all")


@pytest.fixture(scope="module")
def values(heldout):
    return summary.run_values(summary.prepare(heldout[0]))


@pytest.fixture(scope="module")
def layouts():
    return {layout.title: layout for layout in paper_tables(registry.get("heldout"))}


def bold(sheet):
    return {
        (labels, column): text
        for labels, texts in sheet.rows
        for column, text in zip(sheet.columns, texts, strict=True)
    }


def test_the_lowest_of_every_setting_is_bold_and_no_other(values, layouts):
    layout = layouts["Table 1"]
    found = tables.results(values, layout)
    sheet = tables.sheet(layout, found, "caption")
    for system in ("Lambda–Omega", "Barkley", "Oregonator"):
        for column in sheet.columns:
            texts = {k[0][1]: t for k, t in bold(sheet).items() if k[0][0] == system and k[1] == column}
            means = {name: float(text.text.split()[0]) for name, text in texts.items()}
            assert [name for name, text in texts.items() if text.bold] == [min(means, key=means.__getitem__)]


def test_a_missing_cell_is_a_dash_and_stops_no_other(values, layouts):
    layout = layouts["Table 1"]
    absent = values[~((values["system"] == "barkley") & (values["forecaster"] == "lno") & (values["k"] == 5))]
    sheet = tables.sheet(layout, tables.results(absent, layout), "caption")
    texts = bold(sheet)
    assert texts[("Barkley", "LNO"), ("Relative L²", "K = 5")].text == MISSING
    assert sum(text.text == MISSING for text in texts.values()) == 2
    assert texts[("Barkley", "RD-JEPA"), ("Relative L²", "K = 5")].bold


def test_what_nothing_trains_needs_no_selection_of_its_own(values):
    layout = next(each for each in further_tables(registry.get("heldout"), values) if each.title == "All forecasters")
    fewer = values[~((values["forecaster"] == "persistence") & (values["support_seed"] != 777))]
    lowest = [
        {place for place, result in tables.results(each, layout).items() if result.lowest} for each in (values, fewer)
    ]
    assert lowest[0] == lowest[1] != set()


def test_what_is_fitted_to_a_support_needs_the_selections_of_the_others(values):
    """The linear forecast is not trained, and yet another one for another support."""
    layout = next(each for each in further_tables(registry.get("heldout"), values) if each.title == "All forecasters")
    linear = values[values["forecaster"] == "persistence"].assign(forecaster="linear")
    layout = replace(layout, rows=dict(layout.rows) | {"forecaster": (*layout.rows["forecaster"], "linear")})
    for fewer, marks in ((linear, True), (linear[linear["support_seed"] == 777], False)):
        found = tables.results(pd.concat([values, fewer]), layout)
        assert any(result.lowest for result in found.values()) == marks


def test_nothing_is_bold_where_the_selections_differ(values, layouts):
    layout = layouts["Table 1"]
    fewer = values[~((values["forecaster"] == "fno") & (values["support_seed"] == 779))]
    found = tables.results(fewer, layout)
    assert not any(result.lowest for result in found.values())
    sheet = tables.sheet(layout, found, "caption")
    assert bold(sheet)[("Barkley", "FNO"), ("Relative L²", "K = 1")].text.endswith(" [2]")
    assert tables.finding("T", found, {}, "rd-jepa") == "T: no setting is complete enough for a comparison."


def test_one_selection_has_no_deviation(values, layouts):
    layout = layouts["Table S13"]
    sheet = tables.sheet(layout, tables.results(values[values["support_seed"] == 777], layout), "caption")
    assert all(text.text.endswith(" [1]") and "±" not in text.text for _, texts in sheet.rows for text in texts)


def test_reductions_stand_beside_their_errors(values, layouts):
    found = tables.results(values, layouts["Table S13"])
    model, control, reduction = (
        found["oregonator", 1, name, "gradient_l1", "mean", "all"]
        for name in ("rd-jepa", "no-latent", "rd-jepa/no-latent")
    )
    assert set(reduction.runs.split()) == {*model.runs.split(), *control.runs.split()}
    assert reduction.mean < 1 and not reduction.lowest
    headings = {column[1] for column in tables.sheet(layouts["Table S13"], found, "").columns}
    assert headings == {"RD-JEPA", "No predictive latent", "Reduction (%)"}


def test_the_published_table_reads_as_printed(layouts):
    layout = layouts["Table 1"]
    texts = bold(tables.sheet(layout, tables.published_results(layout), ""))
    assert texts[("Lambda–Omega", "RD-JEPA"), ("Relative L²", "K = 1")].text == "12.24 ± 2.58"
    assert texts[("Lambda–Omega", "RieszNO"), ("Relative L²", "K = 10")].text == "8.47 ± 1.14"
    assert {key[0][1] for key, text in texts.items() if text.bold} == {"RD-JEPA"}


def test_a_run_of_the_papers_own_values_differs_by_nothing(layouts):
    layout = layouts["Table S13"]
    paper = tables.published_results(layout)
    whole = {place: replace(result, seeds="777 778 779") for place, result in paper.items()}
    apart = tables.differences(whole, paper, layout.selections)
    assert apart.keys() == paper.keys() and {result.mean for result in apart.values()} == {0.0}
    doubled = {place: replace(result, mean=2 * result.mean) for place, result in whole.items()}
    sheet = tables.sheet(layout, tables.differences(doubled, paper, layout.selections), "", signed=True)
    assert bold(sheet)[("Barkley", "5"), ("Relative L²", "RD-JEPA")].text == "+6.90"
    few = {place: replace(result, seeds="777 778") for place, result in doubled.items()}
    assert tables.differences(few, paper, layout.selections) == {}  # the paper's are means of three


def test_lines_lead_to_runs_and_compare_only_what_is_comparable(values, layouts):
    layout = layouts["Table 1"]
    found = tables.results(values, layout)
    for comparable in (True, False):
        lines = tables.lines(layout, found, comparable=comparable).set_index(summary.DIMENSIONS)
        assert len(lines) == 108
        line = lines.loc[PLACE]
        assert line["mean"] == pytest.approx(100 * found[PLACE].mean)
        assert (line["published_mean"], line["published_sd"]) == (6.9, 0.24)
        assert math.isnan(line["difference"]) != comparable
        chosen = values[(values["system"] == "barkley") & (values["k"] == 5) & (values["forecaster"] == "rd-jepa")]
        assert line["runs"].split() == chosen.sort_values("support_seed")["run"].unique().tolist()


def test_the_finding_counts_wins_and_names_who_is_elsewhere(layouts):
    layout = layouts["Table 1"]
    paper = tables.published_results(layout)
    assert (
        tables.finding("T", paper, paper, "rd-jepa") == "T: RD-JEPA is lowest in 18 of 18 settings (paper: 18 of 18)."
    )
    assert tables.finding("T", paper, {}, "revit") == "T: ReViT is lowest in 0 of 18 settings; elsewhere RD-JEPA in 18."
    alone = {place: each for place, each in paper.items() if place[2] in ("rd-jepa", "fno")}
    assert tables.finding("T", alone, paper, "rd-jepa").endswith(
        "(paper: 18 of 18, also against LNO, ReViT, RieszNO, CNextU-Net)."
    )
