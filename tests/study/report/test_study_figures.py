from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from rdjepa.forecasters import registry as forecasters
from rdjepa.study import changes, registry
from rdjepa.study.registry import PAPER
from rdjepa.study.report import charts, field_panels, labels, summary
from rdjepa.study.report.figures import FIGURES, source_scaling, spectra, transfer_errors, transfer_fields
from rdjepa.study.report.material import Material
from rdjepa.viz import style


@pytest.fixture(scope="module")
def material(made_study, made_example):
    """What the figures of a whole study are drawn from, made once."""

    @cache
    def of(study):
        rows, _, energies = made_study(study)
        rows = summary.prepare(rows)
        return Material.of(rows, energies, made_example, study)

    return of


def fewer(rows, study):
    """What the figures are drawn from where some rows are all that there is."""
    return Material.of(summary.prepare(rows), pd.DataFrame(), lambda run: None, study)


def texts(figure):
    return [text.get_text() for axes in figure.get_axes() for text in axes.texts]


@pytest.mark.parametrize("study", ["heldout", "source", "boundary", "scratch", "ablation"])
def test_every_figure_of_every_study_can_be_drawn(material, study):
    with style.print_style():
        for figure in (FIGURES[name] for name in registry.get(study).figures):
            drawn = figure.draw(material(study))
            assert any(axes.lines or axes.images for axes in drawn.get_axes()), figure.name
            assert "not computed" not in texts(drawn)


def test_figures_of_a_study_that_has_hardly_begun_say_what_is_missing(heldout):
    rows = heldout[0]
    few = rows[(rows["system"] == "barkley") & (rows["k"] == 1) & (rows["forecaster"] == "rd-jepa")]
    made = fewer(few, "heldout")
    for figure in (FIGURES[name] for name in registry.get("heldout").figures):
        assert figure.name == "all-forecasters" or "not computed" in texts(figure.draw(made))


@pytest.mark.parametrize("draw", [transfer_fields, transfer_errors, source_scaling])
def test_figures_of_one_system_and_one_budget_can_be_drawn(material, draw):
    made = material("heldout")
    one = replace(made, systems=made.systems[:1], budgets=made.budgets[:1])
    assert any(axes.lines or axes.images for axes in draw(one).get_axes())


def test_lines_are_the_means_and_their_deviations(material):
    made = material("heldout")
    figure = transfer_errors(made)
    axes = next(axes for axes in figure.get_axes() if axes.get_title() == "Barkley")  # first row, K = 1
    fno = axes.containers[2]
    expected = [made.known["barkley", 1, "fno", "relative_l2", h, "all"] for h in charts.HORIZONS]
    np.testing.assert_allclose(fno.lines[0].get_ydata(), [result["mean"] for result in expected])
    tops = [segment[1][1] for segment in fno.lines[2][0].get_segments()]
    np.testing.assert_allclose(tops, [result["mean"] + result["sd"] for result in expected])
    assert axes.get_yscale() == "log"


def test_the_heat_map_shows_means_over_systems_and_paired_reductions(source, material):
    rows = source[0]
    figure = source_scaling(material("source"))
    left, right = (axes.images[0].get_array() for axes in figure.get_axes() if axes.images)
    errors = rows[(rows["metric"] == "relative_l2") & (rows["forecaster"].isin(["rd-jepa", "fno"]))]
    runs = errors.groupby(["forecaster", "k", "horizon", "support_seed", "system"])["value"].mean()
    overall = runs.groupby(level=[0, 1, 2, 3]).mean()
    assert left[1, 3] == pytest.approx(100 * overall["rd-jepa", 10, 4].mean())
    assert right[1, 3] == pytest.approx(100 * (1 - overall["rd-jepa", 10, 4] / overall["fno", 10, 4]).mean())


def test_error_bars_of_a_logarithmic_axis_stay_above_zero():
    lengths = charts._below(np.array([1.0, 2.0]), np.array([5.0, np.nan]))
    assert (np.array([1.0, 2.0]) - lengths[0] > 0).all() and lengths[1].tolist() == [5.0, 0.0]


def test_spectra_show_energies_of_one_budget(heldout, material):
    energies = heldout[2]
    figure = spectra(material("heldout"))
    last = figure.get_axes()[-1]
    lines = {line.get_label(): line for line in last.lines}
    chosen = energies[(energies["system"] == "oregonator") & (energies["k"] == 1) & (energies["horizon"] == 5)]
    mean = chosen[chosen["forecaster"] == "lno"].groupby("wavenumber")["error"].mean()
    np.testing.assert_allclose(lines["LNO"].get_ydata(), mean)
    assert last.get_xscale() == "symlog" and last.get_xticks()[0] == 0  # the mean has a place
    np.testing.assert_allclose(lines["Reference"].get_ydata(), 1e3 * mean.index.to_numpy() ** -3.0)


def test_the_transect_runs_along_the_row_that_varies_most():
    calm = np.zeros((5, 8, 8, 2))
    calm[-1, 6, ::2, 0] = 1.0
    known = {"reference": calm, "forecast": calm + 1}
    for name, lost in (("rd-jepa", "fno"), ("fno", "rd-jepa")):
        figure = Figure()
        examples = {name: known, lost: None}
        assert field_panels.horizon_strip(figure.subfigures(), examples, [name], "t") == 6
        axes = figure.subplots()
        field_panels.transect(axes, examples, [name], 6)
        assert [np.asarray(line.get_ydata())[0] for line in axes.lines] == [1.0, 2.0]


@pytest.mark.parametrize("name", ["figure-4", "scratch-fields"])
def test_a_setting_without_fields_is_told_from_one_without_results(name, heldout):
    rows = heldout[0]
    found = texts(FIGURES[name].draw(fewer(rows[rows["system"].isin(["barkley", "oregonator"])], "heldout")))
    assert found.count("fields not kept") == 2 * found.count("not computed") > 0


def test_the_reference_is_shown_where_rd_jepa_has_no_fields(heldout, material, made_example):
    rows, made = heldout[0], material("heldout")
    ours = set(rows[rows["forecaster"] == "rd-jepa"]["run"])
    drawn = transfer_fields(replace(made, examples=lambda run: None if run in ours else made_example(run)))
    assert texts(drawn) == ["fields not kept"] * len(made.systems)
    assert sum(bool(axes.images) for axes in drawn.get_axes()) == 3 * len(made.systems)


def test_every_panel_of_the_sources_that_has_no_fields_says_why(source):
    made = fewer(source[0][source[0]["system"] != "fitzhugh-nagumo"], "source")
    found = texts(FIGURES["figure-2"].draw(made))
    assert found.count("not computed") == 2  # the components of FitzHugh-Nagumo
    assert found.count("fields not kept") == len(PAPER) * (len(made.systems) - 1)


def test_reductions_that_nothing_is_known_of_are_named():
    figure = Figure()
    charts.reduction_bars(figure.subplots(), {}, ["barkley"], 1, "rd-jepa", ["fno"], "relative_l2")
    assert texts(figure) == ["not computed"]


def test_points_of_one_budget_or_none_are_whole(source):
    rows = source[0]
    for axes in source_scaling(fewer(rows[rows["k"] == rows["k"].min()], "source")).get_axes():
        if not axes.images:
            low, high = axes.get_xlim()
            ticks = axes.get_xticks()
            assert low < ticks.min() < ticks.max() < high
            assert axes.get_xlabel() != "horizon h" or (low, high) == pytest.approx((0.8, 5.2))


def test_colors_of_forecasters_are_told_apart():
    """Distinct color or marker and line for every forecaster, and luminance apart for those of the paper's figures."""
    looks = [forecasters.line_style(name) for name in forecasters.names()]
    assert len({look["color"] for look in looks}) == len({look["marker"] for look in looks}) == len(looks)


def test_changes_of_the_ablation_are_told_apart():
    looks = [(look["color"], look["marker"]) for look in map(labels.look, changes.names())]
    assert len(set(looks)) == len(looks)


def test_files_are_vector_and_picture(tmp_path):
    with style.print_style():
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.plot([1, 2], [1, 5])
        style.logarithmic(axes.yaxis)
        pdf, png = style.save(figure, tmp_path, "f")
    assert pdf.read_bytes().startswith(b"%PDF") and b"CreationDate" not in pdf.read_bytes()
    with Image.open(png) as image:
        assert image.size == (400, 200)


@pytest.mark.parametrize(("letters", "columns"), [(2, 5), (25, 2), (60, 1)])
def test_a_legend_has_as_many_columns_as_fit_into_the_figure(letters, columns):
    with style.print_style():
        figure = style.Figure(figsize=(style.WIDTH, 2))
        axes = figure.subplots()
        for number in range(6):
            axes.plot([0, 1], label=f"{number}{letters * 'm'}")
        charts.legend(figure, axes, loc="outside lower center")
    (legend,) = figure.legends
    assert vars(legend)["_ncols"] == columns and len(legend.get_texts()) == 6
    assert legend.get_window_extent().width <= figure.bbox.width
