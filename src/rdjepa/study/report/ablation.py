"""The figures of an ablation: reductions of the error by change, and errors against the number of equations."""

from itertools import cycle, pairwise
from typing import Any

import numpy as np

from rdjepa.forecasters.registry import SPARE_COLORS, SPARE_MARKERS
from rdjepa.study import changes
from rdjepa.study.report import charts
from rdjepa.study.report.labels import label, ordered
from rdjepa.study.report.material import Material
from rdjepa.systems import SOURCES
from rdjepa.viz import style
from rdjepa.viz.figures import BLUE, GREEN, ORANGE

SELECTED = ("o", "s", "D")  # markers of support selections
WITH_FAMILY = len(SOURCES) + 1  # place of the point with random equations


def reductions(found: Material) -> Any:
    """Plot the reduction of the error by every change with its interval: a point per K and support selection.

    Every system has a column. Changes need not have the same selections, so means over them would not be comparable.

    Args:
        found: the results.
    """
    table = found.reductions
    names = [] if table.empty else ordered("forecaster", table["forecaster"])
    series = [] if table.empty else sorted(set(zip(table["k"], table["support_seed"], strict=True)))
    budgets, selections = (sorted(set(each)) for each in zip(*series, strict=True)) if series else ([], [])
    figure: Any = style.Figure(figsize=(style.WIDTH, 1.4 + 0.2 * max(len(names), 4)))
    grid = figure.subplots(1, len(found.systems), sharey=True, squeeze=False)[0]
    offsets = np.linspace(-0.24, 0.24, len(series)) if len(series) > 1 else [0.0]
    colors = dict(zip(budgets, cycle((BLUE, ORANGE, GREEN, *SPARE_COLORS)), strict=False))
    markers = dict(zip(selections, cycle(SELECTED), strict=False))
    for axes, system in zip(grid, found.systems, strict=True):
        for (k, selection), offset in zip(series, offsets, strict=True):
            part = table[(table["system"] == system) & (table["k"] == k) & (table["support_seed"] == selection)]
            if len(part):
                rows = np.array([names.index(name) for name in part["forecaster"]]) + offset
                middle, low, high = (100 * part[name].to_numpy(float) for name in ("reduction", "low", "high"))
                axes.errorbar(
                    middle, rows, xerr=np.nan_to_num(np.stack([middle - low, high - middle])), ms=2.5, elinewidth=1.0,
                    color=colors[k], marker=markers[selection], linestyle="none",
                    markerfacecolor=colors[k] if selection == selections[0] else "white",
                    label=f"K = {k}" + f", selection {selection}" * (len(selections) > 1),
                )  # fmt: skip
        if not axes.lines:
            charts.missing(axes)
        axes.axvline(0, color="black", lw=0.6)
        axes.set_title(label("system", system), fontsize=7)
        axes.set_xlabel("reduction (%)")
        axes.locator_params(axis="x", nbins=4)
    grid[0].set_yticks(range(len(names)), [label("forecaster", name) for name in names], fontsize=5.5)
    grid[0].set_ylim(max(len(names), 1) - 0.5, -0.5)
    for row, (first, second) in enumerate(pairwise(names)):
        if changes.group(first) != changes.group(second):
            for axes in grid:
                axes.axhline(row + 0.5, color="0.85", lw=0.5)
    charts.legend(figure, grid, loc="outside lower center")
    return figure


def equations(found: Material) -> Any:
    """Plot the error against the number of source equations: a panel per K, a line per system.

    Args:
        found: the results.
    """
    figure: Any = style.Figure(figsize=(style.WIDTH, 2.8))
    panels = figure.subplots(1, len(found.budgets), sharey=True, squeeze=False)[0]
    for axes, k in zip(panels, found.budgets, strict=True):
        for system, color, marker in zip(found.systems, SPARE_COLORS, SPARE_MARKERS, strict=False):
            line = [
                (number, result["mean"], result["sd"])
                for name, number in _points(system).items()
                if (result := found.known.get((system, k, name, "relative_l2", "mean", "all")))
            ]
            if line:
                numbers, means, deviations = (np.array(column, dtype=float) for column in zip(*line, strict=True))
                axes.errorbar(
                    numbers, means, np.nan_to_num(deviations), color=color, marker=marker, elinewidth=0.8, capsize=1.5,
                    label=label("system", system),
                )  # fmt: skip
        if not axes.lines:
            charts.missing(axes)
        axes.set(title=f"K = {k}", xlabel="source equations")
    for axes in panels:
        axes.set_xticks(range(WITH_FAMILY + 1), [*map(str, range(WITH_FAMILY)), "all and\nrandom"])
    panels[0].set_ylabel("relative L² error")
    charts.legend(figure, panels, loc="outside lower center")
    return figure


def _points(system: str) -> dict[str, int]:
    """Return what is plotted for a system: name -> number of source equations, from the control with none."""
    of_group = [name for name in changes.names() if changes.group(name) == "equations"]
    counted = [name for name in of_group if (changes.get(name).sources or 0) > 0]
    found = {name: len(changes.get(name).equations(system)) for name in counted if changes.get(name).applies(system)}
    every = {
        changes.REFERENCE: len(changes.get(changes.REFERENCE).equations(system)),
        "sources-and-family": WITH_FAMILY,
    }
    return {"scratch": 0} | dict(sorted(found.items(), key=lambda pair: pair[1])) | every
