"""The figures of studies: the paper's Figures 2 to 5, their counterparts for walls and scratch, and generic ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rdjepa.errors import StudyError
from rdjepa.evaluation.metrics import DEFAULT_METRICS
from rdjepa.study import registry
from rdjepa.study.registry import CONTROL, PAPER
from rdjepa.study.report import ablation, charts, field_panels
from rdjepa.study.report.labels import label
from rdjepa.study.report.material import Material
from rdjepa.viz import style


@dataclass(frozen=True)
class Figure:
    """A figure of a study.

    Attributes:
        name: stem of its files.
        title: heading in the report.
        caption: sentences below the figure.
        draw: function that returns the matplotlib figure.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Material], Any]


def draw(
    found: Material, out: Path, study: str, kinds: Sequence[str] = ("pdf", "png")
) -> list[tuple[Figure, list[Path]]]:
    """Draw every figure of a study; each with its files, a PDF and a PNG unless others are given.

    Raises:
        StudyError: the study names a figure that does not exist.
    """
    names = registry.get(study).figures
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise StudyError(
            f"expected figures among {', '.join(FIGURES)}, got {unknown[0]!r} of the study {study}; name one of them"
        )
    chosen = [FIGURES[name] for name in names] + ([] if found.spectra.empty else [_SPECTRA])
    with style.print_style():
        return [(figure, style.save(figure.draw(found), out, figure.name, kinds)) for figure in chosen]


def source_fields(found: Material) -> Any:
    """Draw Figure 2: FitzHugh-Nagumo in full, four systems with two other forecasters, and the errors of all."""
    k = found.budgets[0]
    figure: Any = style.Figure(figsize=(style.WIDTH, 7.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.25])
    blocks = top.subfigures(1, 2)
    style.letter(top, "a")
    shown = "fitzhugh-nagumo", k, PAPER[0]
    for component, block in enumerate(blocks):
        field_panels.component_block(block, found.find(*shown), component, found.has(*shown))
    left, right = bottom.subfigures(1, 2, width_ratios=[1.15, 1])
    style.letter(left, "b")
    others = [system for system in found.systems if system != "fitzhugh-nagumo"]
    field_panels.comparison_grid(left, found.find, found.has, others, k, PAPER)
    style.letter(right, "c")
    axes = right.subplots()
    charts.dots(axes, found.known, [*found.systems, "all"], k, PAPER, "relative_l2", "5")
    axes.set_xlabel(f"relative L² error, K = {k}, h = 5")
    charts.legend(right, axes, loc="outside lower center")
    return figure


def source_scaling(found: Material) -> Any:
    """Draw Figure 3: error against the horizon, against K, and both together as colors."""
    figure: Any = style.Figure(figsize=(style.WIDTH, 7.4))
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1, 1.5, 0.85])
    style.letter(top, "a")
    panels = top.subplots(1, len(found.budgets), sharex=True, sharey=True, squeeze=False)[0]
    for axes, k in zip(panels, found.budgets, strict=True):
        charts.by_horizon(axes, found.known, "all", k, PAPER)
        axes.set(title=f"K = {k}", xlabel="horizon h")
    panels[0].set_ylabel("relative L² error")
    charts.legend(figure, panels, loc="outside lower center")
    style.letter(middle, "b")
    shown = [*found.systems, "all"]
    grid = middle.subplots(-(-len(shown) // 3), 3, sharex=True, sharey=True, squeeze=False)
    for axes, system in zip(grid.flat, shown, strict=False):
        charts.by_budget(axes, found.known, system, found.budgets, PAPER)
        axes.set_title(label("system", system))
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("error at h = 5")
    for axes in grid[-1]:
        axes.set_xlabel("trajectories K")
    style.letter(bottom, "c")
    left, right = bottom.subplots(1, 2)
    for axes, forecaster, title in (
        (left, "rd-jepa", "relative L² error of RD-JEPA, times 100"),
        (right, "rd-jepa/fno", "reduction against FNO (%)"),
    ):
        table = np.array([[_mean(found, k, forecaster, h) for h in charts.HORIZONS] for k in found.budgets])
        rows, columns = [f"K = {k}" for k in found.budgets], [f"h = {h}" for h in charts.HORIZONS]
        charts.heat(axes, 100 * table, rows, columns, ".1f", signed="/" in forecaster)
        axes.set_title(title)
    return figure


def transfer_fields(found: Material, forecasters: Sequence[str] = PAPER[:2]) -> Any:
    """Draw Figure 4: forecasts after adaptation to the fewest trajectories, and transects through them."""
    k = found.budgets[0]
    figure: Any = style.Figure(figsize=(style.WIDTH, 4.0))
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.25, 1])
    style.letter(top, "a")
    style.letter(bottom, "b")
    panels = bottom.subplots(1, len(found.systems), squeeze=False)[0]
    strips = top.subfigures(1, len(found.systems), squeeze=False)[0]
    for strip, axes, system in zip(strips, panels, found.systems, strict=True):
        examples = {name: found.find(system, k, name) for name in forecasters}
        computed = [name for name in forecasters if found.has(system, k, name)]
        row = field_panels.horizon_strip(strip, examples, computed, label("system", system))
        field_panels.transect(axes, examples, computed, row)
        axes.set_title(f"{label('system', system)}, h = 5")
    panels[0].set_ylabel("u")
    handles, names = max((axes.get_legend_handles_labels() for axes in panels), key=lambda pair: len(pair[1]))
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


def transfer_errors(found: Material, forecasters: Sequence[str] = PAPER) -> Any:
    """Draw Figure 5: error against the horizon for every system and K, and paired reductions at the smallest K."""
    figure: Any = style.Figure(figsize=(style.WIDTH, 7.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=[2.6, 1])
    style.letter(top, "a")
    _horizons(top, found, forecasters)
    subject, *others = forecasters
    for axes, metric, name in zip(bottom.subplots(1, 2), DEFAULT_METRICS, "bc", strict=True):
        charts.reduction_bars(axes, found.known, found.systems, found.budgets[0], subject, others, metric)
        style.letter(axes, name)
        axes.set_title(f"K = {found.budgets[0]}")
    charts.legend(bottom, bottom.get_axes(), loc="outside lower center")
    return figure


def errors_by_horizon(found: Material) -> Any:
    """Plot errors of every forecaster against the horizon: a column per system, a row per K."""
    size = (max(style.WIDTH / 2, style.WIDTH / 3 * len(found.systems)), 1.2 + 1.9 * len(found.budgets))
    figure: Any = style.Figure(figsize=size)
    _horizons(figure, found, found.forecasters)
    return figure


def all_forecasters(found: Material) -> Any:
    """Plot errors of every forecaster, averaged over horizons: a column per K, a row per metric."""
    height = 0.9 + 2 * 0.42 * len(found.systems) + 0.12 * len(found.forecasters)
    figure: Any = style.Figure(figsize=(style.WIDTH, height))
    grid = figure.subplots(2, len(found.budgets), sharey=True, sharex="row", squeeze=False)
    for line, metric in zip(grid, DEFAULT_METRICS, strict=True):
        for axes, k in zip(line, found.budgets, strict=True):
            charts.dots(axes, found.known, found.systems, k, found.forecasters, metric, "mean")
            axes.set(title=f"K = {k}", xlabel=f"{label('metric', metric)} error")
    charts.legend(figure, grid, loc="outside lower center")
    return figure


def spectra(found: Material) -> Any:
    """Plot energies of reference and errors by wavenumber: a column per system, rows for first and last horizon."""
    horizons = sorted(found.spectra["horizon"].unique())
    chosen, k = [horizons[0], horizons[-1]], found.budgets[0]
    figure: Any = style.Figure(figsize=(style.WIDTH, 4.2))
    lines = found.spectra[found.spectra["k"] == k]

    def plot(axes: Any, system: str, h: int) -> None:
        part = lines[(lines["system"].astype(str) == system) & (lines["horizon"] == h)]
        charts.spectrum(axes, part, found.few)

    _grid(
        figure,
        found.systems,
        [(f"h = {h}\nenergy of errors", h) for h in chosen],
        plot,
        "periods per side",
        f", K = {k}",
    )
    return figure


def _horizons(figure: Any, found: Material, forecasters: Sequence[str]) -> None:
    """Plot errors against the horizon: a column per system, a row per K."""

    def plot(axes: Any, system: str, k: int) -> None:
        charts.by_horizon(axes, found.known, system, k, forecasters)

    rows = [(f"K = {k}\nrelative L² error", k) for k in found.budgets]
    _grid(figure, found.systems, rows, plot, "horizon h")


def _grid(
    figure: Any,
    systems: Sequence[str],
    rows: Sequence[tuple[str, int]],
    plot: Callable[[Any, str, int], None],
    below: str,
    beside: str = "",
) -> None:
    """Fill a figure with panels on common axes, a column per system and a row per number, and their legend below.

    Args:
        figure: figure or subfigure.
        systems: of the columns.
        rows: label and number of each.
        plot: draws the panel of a system and a number.
        below: label of the x axes.
        beside: what follows the name of a system in the title of its column.
    """
    grid = figure.subplots(len(rows), len(systems), sharex=True, sharey=True, squeeze=False)
    for line, (name, number) in zip(grid, rows, strict=True):
        for axes, system in zip(line, systems, strict=True):
            plot(axes, system, number)
        line[0].set_ylabel(name)
    for axes, system in zip(grid[0], systems, strict=True):
        axes.set_title(f"{label('system', system)}{beside}")
    for axes in grid[-1]:
        axes.set_xlabel(below)
    charts.legend(figure, grid, loc="outside lower center")


def _mean(found: Material, k: int, forecaster: str, h: str) -> float:
    """Return a mean over systems, NaN where it is missing."""
    return found.known.get(("all", k, forecaster, "relative_l2", h, "all"), {"mean": float("nan")})["mean"]


_FIELDS = (
    "a, u of one test trajectory after adaptation to the fewest trajectories, at h = 1, 3 and 5; one scale per system. "
    "b, u at h = 5 along the dashed line, the row in which the reference varies most."
)
_ERRORS = (
    "a, relative L² error against the horizon; mean and sample deviation over support selections. b and c, reduction "
    "of the error of RD-JEPA against others at the smallest K, paired by selection, averaged over h = 1..5."
)
_SPECTRA = Figure(
    "spectra",
    "Errors by wavenumber",
    "Energy of the reference and of the errors by radial wavenumber, 0 for the mean of the fields, which are "
    "standardized; where an error is above the reference, nothing of that scale is forecast. Smallest K, first and "
    "last horizon, mean over support selections.",
    spectra,
)
FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "figure-2",
            "Figure 2. Forecasts on source systems",
            "a, FitzHugh–Nagumo, one test trajectory at the smallest K; each picture of errors has its own scale. b, u "
            "at h = 5, one scale per row. c, relative L² error at h = 5; mean and deviation over support selections.",
            source_fields,
        ),
        Figure(
            "figure-3",
            "Figure 3. Errors against budget and horizon",
            "a, mean of the five systems against the horizon. b, error at h = 5 against K. c, both together, and the "
            "reduction against FNO, paired by selection. Mean and sample deviation over support selections.",
            source_scaling,
        ),
        Figure("figure-4", "Figure 4. Forecasts of held-out systems", _FIELDS, transfer_fields),
        Figure("figure-5", "Figure 5. Errors on held-out systems", _ERRORS, transfer_errors),
        Figure("boundary-fields", "Forecasts between walls", _FIELDS, transfer_fields),
        Figure("boundary-errors", "Errors between walls", _ERRORS, transfer_errors),
        Figure(
            "scratch-fields", "Forecasts beside the control", _FIELDS, partial(transfer_fields, forecasters=CONTROL)
        ),
        Figure("scratch-errors", "Errors beside the control", _ERRORS, partial(transfer_errors, forecasters=CONTROL)),
        Figure(
            "errors-by-horizon",
            "Errors by horizon",
            "Relative L² error against the horizon; mean and sample deviation over support selections.",
            errors_by_horizon,
        ),
        Figure(
            "all-forecasters",
            "Every forecaster",
            "Mean over h = 1..5, and its deviation over selections.",
            all_forecasters,
        ),
        Figure(
            "reductions",
            "Reduction of the error by every change",
            "Reduction of the relative L² error against the study's control, mean over h = 1..5, of every support "
            "selection by itself, with 95 % bootstrap intervals over its test trajectories.",
            ablation.reductions,
        ),
        Figure(
            "equations",
            "Reduction of the error against the number of equations",
            "Reduction of the relative L² error against the study's control, mean over h = 1..5, against the number of "
            "source equations of the pretraining, of every support selection by itself, with 95 % bootstrap intervals "
            "over its test trajectories; the last point has random equations beside all sources.",
            ablation.equations,
        ),
    )
}
