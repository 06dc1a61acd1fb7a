"""The figures of an ablation: reductions of the error by change, and the same against the number of equations."""

from itertools import cycle, pairwise
from typing import Any

import numpy as np
import pandas as pd

from rdjepa.forecasters.registry import SPARE_COLORS
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
    figure: Any = style.Figure(figsize=(style.WIDTH, 1.4 + 0.2 * max(len(names), 4)))
    grid = figure.subplots(1, len(found.systems), sharey=True, squeeze=False)[0]
    series = _series(table)
    offsets = np.linspace(-0.24, 0.24, len(series)) if len(series) > 1 else [0.0]
    for axes, system in zip(grid, found.systems, strict=True):
        for ((k, selection), looks), offset in zip(series.items(), offsets, strict=True):
            part = table[(table["system"] == system) & (table["k"] == k) & (table["support_seed"] == selection)]
            if len(part):
                rows = np.array([names.index(name) for name in part["forecaster"]]) + offset
                middle, around = _percent(part)
                axes.errorbar(middle, rows, xerr=around, linestyle="none", **looks)
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
    """Plot the reduction of the error against the number of source equations: a panel per system.

    There is a line per K and support selection, as in `reductions`. Random equations beside all sources stand apart.

    Args:
        found: the results.
    """
    table = found.reductions
    figure: Any = style.Figure(figsize=(style.WIDTH, 2.4))
    panels = figure.subplots(1, len(found.systems), squeeze=False)[0]
    series = _series(table)
    for axes, system in zip(panels, found.systems, strict=True):
        points = _points(system)
        for (k, selection), looks in series.items():
            part = table[(table["system"] == system) & (table["k"] == k) & (table["support_seed"] == selection)]
            part = part[part["forecaster"].isin(points)]
            part = part.assign(number=part["forecaster"].map(points)).sort_values("number")
            if len(part):
                numbers, (middle, around) = part["number"].to_numpy(), _percent(part)
                axes.errorbar(numbers, middle, yerr=around, linestyle="none", **looks)
                counted = numbers < WITH_FAMILY
                axes.plot([0, *numbers[counted]], [0, *middle[counted]], color=looks["color"], lw=0.8)
        if not axes.lines:
            charts.missing(axes)
        axes.axhline(0, color="black", lw=0.6)
        axes.set_title(label("system", system), fontsize=7)
        axes.set_xlabel("source equations")
        axes.set_xticks(range(WITH_FAMILY + 1), [*map(str, range(WITH_FAMILY)), "\n+ random"], fontsize=5.5)
    panels[0].set_ylabel("reduction (%)")
    charts.legend(figure, panels, loc="outside lower center")
    return figure


def _series(table: pd.DataFrame) -> dict[tuple[int, int], dict[str, Any]]:
    """Return how the points of every K and support selection of a table of reductions look."""
    series = [] if table.empty else sorted(set(zip(table["k"], table["support_seed"], strict=True)))
    budgets, selections = (sorted(set(each)) for each in zip(*series, strict=True)) if series else ([], [])
    colors = dict(zip(budgets, cycle((BLUE, ORANGE, GREEN, *SPARE_COLORS)), strict=False))
    markers = dict(zip(selections, cycle(SELECTED), strict=False))
    return {
        (k, selection): {
            "ms": 2.5,
            "elinewidth": 1.0,
            "color": colors[k],
            "marker": markers[selection],
            "markerfacecolor": colors[k] if selection == selections[0] else "white",
            "label": f"K = {k}" + f", selection {selection}" * (len(selections) > 1),
        }
        for k, selection in series
    }


def _percent(part: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return reductions in percent, and how far their intervals reach to both sides; 0 where there is none."""
    middle, low, high = (100 * part[name].to_numpy(float) for name in ("reduction", "low", "high"))
    return middle, np.nan_to_num(np.stack([middle - low, high - middle]))


def _points(system: str) -> dict[str, int]:
    """Return what is plotted for a system: name -> number of source equations."""
    of_group = [name for name in changes.names() if changes.group(name) == "equations"]
    counted = [name for name in of_group if (changes.get(name).sources or 0) > 0]
    found = {name: len(changes.get(name).equations(system)) for name in counted if changes.get(name).applies(system)}
    every = {
        changes.REFERENCE: len(changes.get(changes.REFERENCE).equations(system)),
        "sources-and-family": WITH_FAMILY,
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1])) | every
