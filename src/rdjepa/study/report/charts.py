"""Charts of errors by horizon, number of support trajectories, system and wavenumber."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm

from rdjepa.study.report.labels import label, look, registered
from rdjepa.viz.style import logarithmic

HORIZONS = ("1", "2", "3", "4", "5")
WITHIN = 0.97  # share of a figure that its legend may be wide, or it is cut at the edges
Known = dict[tuple, dict[str, Any]]  # what `summary.over_runs` returned, by coordinates


def by_horizon(axes: Any, known: Known, system: str, k: int, forecasters: Sequence[str]) -> None:
    """Plot mean relative L² error and deviation at every horizon, a line per forecaster; logarithmic."""
    places = {name: [(system, k, name, "relative_l2", h, "all") for h in HORIZONS] for name in forecasters}
    _lines(axes, known, places, [int(h) for h in HORIZONS])
    axes.set_xticks([int(h) for h in HORIZONS])
    axes.set_xlim(int(HORIZONS[0]) - 0.2, int(HORIZONS[-1]) + 0.2)
    logarithmic(axes.yaxis)


def by_budget(axes: Any, known: Known, system: str, budgets: Sequence[int], forecasters: Sequence[str]) -> None:
    """Plot relative L² error at the longest horizon against K, a line per forecaster; both axes logarithmic."""
    places = {name: [(system, k, name, "relative_l2", HORIZONS[-1], "all") for k in budgets] for name in forecasters}
    _lines(axes, known, places, budgets)
    for axis in (axes.xaxis, axes.yaxis):
        logarithmic(axis)
    axes.set_xticks(budgets, [str(k) for k in budgets])
    axes.set_xlim(budgets[0] / 1.2, budgets[-1] * 1.2)


def reduction_bars(
    axes: Any, known: Known, systems: Sequence[str], k: int, subject: str, against: Sequence[str], metric: str
) -> None:
    """Plot paired reductions (%) of a forecaster's error against others', a group of bars per system."""
    width = 0.8 / len(against)
    for number, name in enumerate(against):
        results = [known.get((system, k, f"{subject}/{name}", metric, "mean", "all")) for system in systems]
        means, deviations = ([100 * r[key] if r else math.nan for r in results] for key in ("mean", "sd"))
        positions = np.arange(len(systems)) + (number - (len(against) - 1) / 2) * width
        axes.bar(positions, means, width * 0.92, color=look(name)["color"], label=label("forecaster", name))
        axes.errorbar(positions, means, deviations, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
    if any((system, k, f"{subject}/{name}", metric, "mean", "all") in known for system in systems for name in against):
        axes.axhline(0, color="black", lw=0.6)
    else:
        missing(axes)
        axes.set(xlim=(-0.5, len(systems) - 0.5), yticks=[])
    axes.set_xticks(range(len(systems)), [label("system", system) for system in systems])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel(f"reduction of\n{label('metric', metric)} error (%)")


def dots(
    axes: Any, known: Known, systems: Sequence[str], k: int, forecasters: Sequence[str], metric: str, horizon: str
) -> None:
    """Plot errors of all forecasters as points, a row per system; the horizontal axis is logarithmic."""
    offsets = np.linspace(-0.3, 0.3, len(forecasters)) if len(forecasters) > 1 else [0.0]
    for name, offset in zip(forecasters, offsets, strict=True):
        results = [known.get((system, k, name, metric, horizon, "all")) for system in systems]
        shown = [(row + offset, r["mean"], r["sd"]) for row, r in enumerate(results) if r]
        if shown:
            rows, means, deviations = (np.array(column, dtype=float) for column in zip(*shown, strict=True))
            points = look(name) | {"ls": "none"}
            axes.errorbar(
                means, rows, xerr=_below(means, deviations), label=label("forecaster", name), elinewidth=0.8, **points
            )
    axes.set_yticks(range(len(systems)), [label("system", system) for system in systems])
    axes.set_ylim(len(systems) - 0.5, -0.5)
    for row in range(len(systems) - 1):
        axes.axhline(row + 0.5, color="0.85", lw=0.5)
    axes.tick_params(axis="y", length=0)
    logarithmic(axes.xaxis)


def heat(axes: Any, table: np.ndarray, rows: Sequence[str], columns: Sequence[str], text: str, *, signed: bool) -> None:
    """Draw a table (rows, columns) as colors with its numbers; signed ones around a white zero, blue where positive."""
    if signed:
        largest = max(float(np.nanmax(np.abs(table))), 1e-9) if np.isfinite(table).any() else 1.0
        colors: dict[str, Any] = {"cmap": "RdBu", "norm": TwoSlopeNorm(0, -largest, largest)}
    else:
        colors = {"cmap": "cividis_r"}
    image = axes.imshow(table, aspect="auto", **colors)
    for (row, column), value in np.ndenumerate(table):
        if math.isfinite(value):
            red, green, blue, _ = image.cmap(image.norm(value))
            # luma of ITU-R BT.601: black text on light colors, white on dark ones
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            axes.text(
                column, row, format(value, text), ha="center", va="center", fontsize=7, color="w" if dark else "k"
            )
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def spectrum(axes: Any, spectra: pd.DataFrame, forecasters: Sequence[str]) -> None:
    """Plot energy of the reference and of errors by radial wavenumber, mean over runs, a line per forecaster.

    Args:
        axes: to draw on; both axes become logarithmic, that of wavenumbers linear below 1, where 0 is the mean.
        spectra: lines of one system, K and horizon.
        forecasters: which ones, in order.
    """
    means = spectra.groupby(["forecaster", "wavenumber"], observed=True)[["error", "reference"]].mean()
    found = [name for name in forecasters if name in means.index]
    if not found:
        missing(axes)
        return
    reference = means.loc[found[0], "reference"]
    axes.plot(reference.index, reference, color="black", lw=1.6, label="Reference")
    for name in found:
        error = means.loc[name, "error"]
        axes.plot(error.index, error, label=label("forecaster", name), **look(name) | {"marker": ""})
    largest = float(means.max(axis=None))
    axes.set_yscale("log")
    # the energy of a smooth reference falls by many more decades, which would flatten the lines of the errors
    axes.set_ylim(1e-8 * largest, 3 * largest)
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    powers = (10.0**power * digit for power in range(9) for digit in (1, 2, 5))
    ticks = [0, *(tick for tick in powers if tick <= reference.index.max())]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def missing(axes: Any, computed: bool = False) -> None:
    """Write into a panel why it is empty: not computed, or computed but without the fields that it would show."""
    text = "fields not kept" if computed else "not computed"
    axes.text(0.5, 0.5, text, ha="center", va="center", color="0.5", transform=axes.transAxes)


def legend(figure: Any, axes: Any, **place: Any) -> None:
    """Add one legend to a figure, with every forecaster that any of its axes shows, in the order of tables.

    It has as many columns, up to five, as fit into the width of the figure.
    """
    found: dict[str, Any] = {}
    for each in np.ravel(axes):
        handles, names = each.get_legend_handles_labels()
        found |= dict(zip(names, handles, strict=True))
    order = ["Reference", *(label("forecaster", name) for name in registered("forecaster"))]
    names = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    for columns in range(min(len(names), 5), 0, -1):
        drawn = figure.legend([found[name] for name in names], names, ncols=columns, **place)
        if columns == 1 or drawn.get_window_extent().width <= WITHIN * figure.bbox.width:
            return
        drawn.remove()


def _lines(axes: Any, known: Known, places: dict[str, list[tuple]], x: Sequence[float]) -> None:
    for name, line in places.items():
        results = [(at, known[place]) for at, place in zip(x, line, strict=True) if place in known]
        if results:
            means, deviations = (np.array([r[key] for _, r in results], dtype=float) for key in ("mean", "sd"))
            bars = {"elinewidth": 0.8, "capsize": 1.5, "yerr": _below(means, deviations)}
            axes.errorbar([at for at, _ in results], means, label=label("forecaster", name), **bars, **look(name))
    if not axes.lines:
        missing(axes)


def _below(means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return lengths (2, n) of error bars that stay above zero, so that a logarithmic axis can show them."""
    known = np.nan_to_num(deviations)
    return np.stack([np.minimum(known, 0.9 * means), known])
