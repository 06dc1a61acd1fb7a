"""The figures of a study: the paper's Figures 2 to 5, their counterparts for walls and scratch, and two beyond."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from rdjepa.study.report import charts, field_panels, summary
from rdjepa.study.report.labels import METRICS, label, ordered
from rdjepa.study.report.layouts import axis
from rdjepa.viz import style

TRIO = ("rd-jepa", "no-latent", "fno")
Examples = Callable[[str], Mapping[str, np.ndarray] | None]


@dataclass(frozen=True)
class Material:
    """What the figures of a study are drawn from.

    Attributes:
        systems: of the study, in the paper's order.
        budgets: values of K.
        forecasters: those with rows, in order.
        known: `summary.over_runs` of errors and reductions, by coordinates.
        spectra: binned energies; may be empty.
        examples: id of a run -> its fields, or None.
    """

    systems: tuple[str, ...]
    budgets: tuple[int, ...]
    forecasters: tuple[str, ...]
    known: charts.Known
    spectra: pd.DataFrame
    examples: Examples

    def find(self, system: str, k: int, forecaster: str) -> Mapping[str, np.ndarray] | None:
        """The example of the first support selection of a setting, if there is one."""
        result = self.known.get((system, k, forecaster, "relative_l2", "mean", "all"))
        return self.examples(result["runs"].split()[0]) if result else None


@dataclass(frozen=True)
class Figure:
    """A figure of a study.

    Attributes:
        name: of its files.
        title: as it is referred to.
        caption: what it shows.
        draw: makes the matplotlib figure.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Material], Any]


def material(values: pd.DataFrame, spectra: pd.DataFrame, examples: Examples, study: str) -> Material:
    """Put together what the figures of a study need.

    Args:
        values: as `summary.run_values` returns them.
        spectra: binned energies; may be empty.
        examples: id of a run -> newest, reference and forecast, or None.
        study: one of the paper's.
    """
    systems = tuple(name for name in axis(study, "system") if name != "all")
    forecasters = tuple(ordered("forecaster", values["forecaster"]))
    shown = values[values["regime"] == "all"]
    parts = [shown, summary.over_systems(shown, systems)]
    everything = pd.concat(parts, ignore_index=True)
    others = [name for name in forecasters if name != "rd-jepa"]
    parts = [everything, *(summary.reductions(everything, "rd-jepa", name) for name in others)]
    known = summary.over_runs(pd.concat(parts, ignore_index=True)).to_dict("index")
    return Material(systems, axis(study, "k"), forecasters, known, spectra, examples)


def draw(found: Material, out: Path, study: str) -> list[tuple[Figure, list[Path]]]:
    """Every figure of a study with its files, a PDF and a PNG."""
    chosen = (*FIGURES[study], *(() if found.spectra.empty else (_SPECTRA,)))
    with style.printed():
        return [(figure, style.save(figure.draw(found), out, figure.name)) for figure in chosen]


def source_fields(found: Material) -> Any:
    """Figure 2: FitzHugh-Nagumo in full, four systems beside two forecasters, and the errors behind them."""
    k = found.budgets[0]
    figure: Any = plt.figure(figsize=(style.WIDTH, 7.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.25])
    blocks = top.subfigures(1, 2)
    style.letter(top, "a")
    example = found.find("fitzhugh-nagumo", k, "rd-jepa")
    for component, block in enumerate(blocks):
        if example is not None:
            field_panels.component_block(block, example, component)
    left, right = bottom.subfigures(1, 2, width_ratios=[1.15, 1])
    style.letter(left, "b")
    others = [system for system in found.systems if system != "fitzhugh-nagumo"]
    field_panels.comparison_grid(left, found.find, others, k, TRIO)
    style.letter(right, "c")
    axes = right.subplots()
    charts.dots(axes, found.known, [*found.systems, "all"], k, TRIO, "relative_l2", "5")
    axes.set_xlabel(f"relative L² error, K = {k}, h = 5")
    charts.legend(right, axes, loc="outside lower center")
    return figure


def source_scaling(found: Material) -> Any:
    """Figure 3: error against the horizon, against K, and both together as colours."""
    figure: Any = plt.figure(figsize=(style.WIDTH, 7.4))
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1, 1.5, 0.85])
    style.letter(top, "a")
    panels = top.subplots(1, len(found.budgets), sharey=True)
    for axes, k in zip(panels, found.budgets, strict=True):
        charts.by_horizon(axes, found.known, "all", k, TRIO)
        axes.set(title=f"K = {k}", xlabel="horizon h")
    panels[0].set_ylabel("relative L² error")
    charts.legend(figure, panels, loc="outside lower center")
    style.letter(middle, "b")
    grid = middle.subplots(2, 3, sharex=True, sharey=True)
    for axes, system in zip(grid.flat, [*found.systems, "all"], strict=True):
        charts.by_budget(axes, found.known, system, found.budgets, TRIO)
        axes.set_title(label("system", system))
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


def transfer_fields(found: Material, forecasters: Sequence[str] = TRIO[:2]) -> Any:
    """Figure 4: forecasts after adaptation to the fewest trajectories, and transects through them."""
    k = found.budgets[0]
    figure: Any = plt.figure(figsize=(style.WIDTH, 4.0))
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.25, 1])
    style.letter(top, "a")
    style.letter(bottom, "b")
    panels = bottom.subplots(1, len(found.systems))
    for strip, axes, system in zip(top.subfigures(1, len(found.systems)), panels, found.systems, strict=True):
        row = field_panels.horizon_strip(strip, found.find(system, k, "rd-jepa"), label("system", system))
        field_panels.transect(axes, {name: found.find(system, k, name) for name in forecasters}, row)
        axes.set_title(f"{label('system', system)}, h = 5")
    panels[0].set_ylabel("u")
    handles, names = max((axes.get_legend_handles_labels() for axes in panels), key=lambda pair: len(pair[1]))
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


def transfer_errors(found: Material, forecasters: Sequence[str] = TRIO) -> Any:
    """Figure 5: error against the horizon for every system and K, and paired reductions at the fewest trajectories."""
    figure: Any = plt.figure(figsize=(style.WIDTH, 7.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=[2.6, 1])
    style.letter(top, "a")
    grid = top.subplots(len(found.budgets), len(found.systems), sharex=True, sharey=True)
    for line, k in zip(grid, found.budgets, strict=True):
        for axes, system in zip(line, found.systems, strict=True):
            charts.by_horizon(axes, found.known, system, k, forecasters)
        line[0].set_ylabel(f"K = {k}\nrelative L² error")
    for axes, system in zip(grid[0], found.systems, strict=True):
        axes.set_title(label("system", system))
    for axes in grid[-1]:
        axes.set_xlabel("horizon h")
    charts.legend(top, grid, loc="outside lower center")
    others = [name for name in forecasters if name != "rd-jepa"]
    for axes, metric, name in zip(bottom.subplots(1, 2), ("relative_l2", "gradient_l1"), "bc", strict=True):
        charts.reduction_bars(axes, found.known, found.systems, found.budgets[0], others, metric)
        style.letter(axes, name)
        axes.set_title(f"K = {found.budgets[0]}")
    charts.legend(bottom, bottom.get_axes(), loc="outside lower center")
    return figure


def all_forecasters(found: Material) -> Any:
    """Errors of every forecaster, averaged over horizons: a column per K, a row per metric."""
    metrics = ("relative_l2", "gradient_l1")
    height = 0.9 + 2 * 0.42 * len(found.systems) + 0.12 * len(found.forecasters)
    figure, grid = plt.subplots(2, len(found.budgets), figsize=(style.WIDTH, height), sharey=True, sharex="row")
    for line, metric in zip(grid, metrics, strict=True):
        for axes, k in zip(line, found.budgets, strict=True):
            charts.dots(axes, found.known, found.systems, k, found.forecasters, metric, "mean")
            axes.set(title=f"K = {k}", xlabel=f"{METRICS[metric]} error")
    charts.legend(figure, grid, loc="outside lower center")
    return figure


def spectra(found: Material) -> Any:
    """Energies of reference and errors by wavenumber: a column per system, first and last horizon."""
    horizons = sorted(found.spectra["horizon"].unique())
    chosen, k = [horizons[0], horizons[-1]], found.budgets[0]
    figure, grid = plt.subplots(
        2, len(found.systems), figsize=(style.WIDTH, 4.2), sharex=True, sharey=True, squeeze=False
    )
    lines = found.spectra[found.spectra["k"] == k]
    for row, h in zip(grid, chosen, strict=True):
        for axes, system in zip(row, found.systems, strict=True):
            part = lines[(lines["system"].astype(str) == system) & (lines["horizon"] == h)]
            charts.spectrum(axes, part, found.forecasters)
        row[0].set_ylabel(f"h = {h}\nenergy")
    for axes, system in zip(grid[0], found.systems, strict=True):
        axes.set_title(f"{label('system', system)}, K = {k}")
    for axes in grid[-1]:
        axes.set_xlabel("periods a side")
    charts.legend(figure, grid, loc="outside lower center")
    return figure


def _mean(found: Material, k: int, forecaster: str, h: str) -> float:
    """A mean over systems, NaN where it is not known."""
    return found.known.get(("all", k, forecaster, "relative_l2", h, "all"), {"mean": float("nan")})["mean"]


_FIELDS = (
    "a, u of one test trajectory after adaptation to the fewest trajectories, at h = 1, 3 and 5; one scale a system. "
    "b, u at h = 5 along the dashed line, the row in which the reference varies most."
)
_ERRORS = (
    "a, relative L² error against the horizon; mean and sample deviation over support selections. b and c, reduction "
    "of the error of RD-JEPA against others at the smallest K, paired by selection, averaged over h = 1..5."
)
_SCRATCH = ("rd-jepa", "scratch")
_ALL = Figure(
    "all-forecasters", "Every forecaster", "Mean over h = 1..5, and its deviation over selections.", all_forecasters
)
_SPECTRA = Figure(
    "spectra",
    "Errors by wavenumber",
    "Energy of the reference and of the errors by radial wavenumber, fields standardized; where an error is above the "
    "reference, nothing of that scale is forecast. Smallest K, first and last horizon, mean over support selections.",
    spectra,
)
FIGURES = {
    "source": (
        Figure(
            "figure-2",
            "Figure 2. Forecasts on source systems",
            "a, FitzHugh–Nagumo, one test trajectory at the smallest K; each picture of errors has its own scale. b, u "
            "at h = 5, one scale a row. c, relative L² error at h = 5; mean and deviation over support selections.",
            source_fields,
        ),
        Figure(
            "figure-3",
            "Figure 3. Errors against budget and horizon",
            "a, mean of the five systems against the horizon. b, error at h = 5 against K. c, both together, and the "
            "reduction against FNO, paired by selection. Mean and sample deviation over support selections.",
            source_scaling,
        ),
        _ALL,
    ),
    "heldout": (
        Figure("figure-4", "Figure 4. Forecasts of held-out systems", _FIELDS, transfer_fields),
        Figure("figure-5", "Figure 5. Errors on held-out systems", _ERRORS, transfer_errors),
        _ALL,
    ),
    "boundary": (
        Figure("boundary-fields", "Forecasts between walls", _FIELDS, transfer_fields),
        Figure("boundary-errors", "Errors between walls", _ERRORS, transfer_errors),
        _ALL,
    ),
    "scratch": (
        Figure(
            "scratch-fields", "Forecasts beside the control", _FIELDS, partial(transfer_fields, forecasters=_SCRATCH)
        ),
        Figure("scratch-errors", "Errors beside the control", _ERRORS, partial(transfer_errors, forecasters=_SCRATCH)),
    ),
}
