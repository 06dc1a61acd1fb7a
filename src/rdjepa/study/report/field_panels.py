"""Forecast fields beside their references: the qualitative figures of the paper (Figures 2 and 4)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from rdjepa.forecasters import registry
from rdjepa.study.registry import PAPER
from rdjepa.study.report.charts import missing
from rdjepa.study.report.labels import label, look
from rdjepa.viz.style import ERROR_COLORS, FIELD_COLORS

SHOWN_HORIZONS = (1, 3, 5)
COMPONENTS = ("u", "v")
Example = Mapping[str, np.ndarray]  # newest (H, W, C), reference and forecast (5, H, W, C), physical units
Find = Callable[[str, int, str], Example | None]  # system, K, forecaster
Has = Callable[[str, int, str], bool]  # the same: whether it has results


def component_block(panel: Any, example: Example | None, component: int, computed: bool) -> None:
    """Draw reference, forecast and absolute error of one component, a row per horizon; each error has its own scale."""
    if example is None:
        axes = panel.subplots()
        empty(axes)
        missing(axes, computed)
        return
    reference, forecast = (example[key][..., component] for key in ("reference", "forecast"))
    low, high = float(reference.min()), float(reference.max())
    axes = panel.subplots(len(SHOWN_HORIZONS), 3)
    for line, h in zip(axes, SHOWN_HORIZONS, strict=True):
        error = np.abs(forecast[h - 1] - reference[h - 1])
        for axis, image in zip(line[:2], (reference[h - 1], forecast[h - 1]), strict=True):
            field(axis, image, low, high)
        shade = field(line[2], error, 0.0, float(error.max()), ERROR_COLORS)
        bar = panel.colorbar(shade, ax=line[2], shrink=0.9, pad=0.02)
        bar.ax.tick_params(labelsize=6, length=1.5)
        bar.outline.set_linewidth(0.4)
        line[0].set_ylabel(f"h = {h}")
    for axis, title in zip(axes[0], ("Reference", label("forecaster", PAPER[0]), "|Error|"), strict=True):
        axis.set_title(f"{COMPONENTS[component]}, {title}" if title == "Reference" else title)


def comparison_grid(
    panel: Any, find: Find, has: Has, systems: Sequence[str], k: int, forecasters: Sequence[str]
) -> None:
    """Draw the first component at the longest horizon: reference and forecasters, a row per system with one scale."""
    axes = panel.subplots(len(systems), 1 + len(forecasters), squeeze=False)
    for line, system in zip(axes, systems, strict=True):
        examples = [find(system, k, name) for name in forecasters]
        known = next((example for example in examples if example is not None), None)
        for axis in line:
            empty(axis)
        line[0].set_ylabel(label("system", system), fontsize=7)
        if known is not None:
            truth = known["reference"][-1, ..., 0]
            low, high = float(truth.min()), float(truth.max())
            field(line[0], truth, low, high)
        for axis, name, example in zip(line[1:], forecasters, examples, strict=True):
            if example is not None:
                field(axis, example["forecast"][-1, ..., 0], low, high)
            else:
                missing(axis, has(system, k, name))
    for axis, title in zip(axes[0], ("Reference", *(registry.get(name).short for name in forecasters)), strict=True):
        axis.set_title(title, fontsize=7)


def horizon_strip(panel: Any, examples: Mapping[str, Example | None], computed: Collection[str], title: str) -> int:
    """Draw reference above RD-JEPA's forecast of the first component at h = 1, 3 and 5, with one scale.

    Args:
        panel: subfigure to draw on.
        examples: by forecaster; each has the same reference.
        computed: forecasters with results, so that their fields, where there are none, were not kept.
        title: above the panel.

    Returns:
        Index of the grid row along which the last reference varies most, marked by a dashed line, for `transect`.
    """
    axes = panel.subplots(2, len(SHOWN_HORIZONS))
    panel.suptitle(title, fontsize=8)
    for axis in axes.flat:
        empty(axis)
    axes[0, 0].set_ylabel("Reference")
    axes[1, 0].set_ylabel(label("forecaster", PAPER[0]))
    example = examples.get(PAPER[0])
    known = next((each for each in (example, *examples.values()) if each is not None), None)
    if example is None:
        missing(axes[1, 1], PAPER[0] in computed)
    if known is None:
        missing(axes[0, 1], bool(computed))
        return 0
    reference = known["reference"][..., 0]
    shown = [reference] if example is None else [reference, example["forecast"][..., 0]]
    row = int(reference[-1].var(axis=1).argmax())
    for column, h in enumerate(SHOWN_HORIZONS):
        for axis, fields in zip(axes[:, column], shown, strict=False):
            shade = field(axis, fields[h - 1], float(reference.min()), float(reference.max()))
        axes[1, column].set_xlabel(f"h = {h}")
    axes[0, -1].axhline(row, color="white", lw=2.0)
    axes[0, -1].axhline(row, color="black", lw=1.0, ls=(0, (3, 2)))
    bar = panel.colorbar(shade, ax=axes, orientation="horizontal", shrink=0.7, pad=0.02, aspect=30)
    bar.ax.tick_params(labelsize=6, length=1.5)
    bar.outline.set_linewidth(0.4)
    return row


def transect(axes: Any, examples: Mapping[str, Example | None], computed: Collection[str], row: int) -> None:
    """Plot the first component along one grid row at the longest horizon: reference in black, a line per forecaster.

    Arguments as for `horizon_strip`.
    """
    known = [example for example in examples.values() if example is not None]
    if known:
        truth = known[0]["reference"][-1, row, :, 0]
        x = (np.arange(len(truth)) + 0.5) / len(truth)
        axes.plot(x, truth, color="black", lw=1.4, label="Reference")
        for name, example in examples.items():
            if example is not None:
                line = look(name) | {"marker": ""}
                axes.plot(x, example["forecast"][-1, row, :, 0], label=label("forecaster", name), **line)
    else:
        missing(axes, bool(computed))
        axes.set_yticks([])
    axes.set(xlabel="x / L", xlim=(0, 1))


def field(axes: Any, image: np.ndarray, low: float, high: float, colors: str = FIELD_COLORS) -> Any:
    """Draw one field (H, W) as an image without ticks, at its own resolution also in a vector file."""
    empty(axes)
    return axes.imshow(image, origin="lower", cmap=colors, vmin=low, vmax=high, interpolation="nearest")


def empty(axes: Any) -> None:
    """Remove ticks and frame of axes that hold an image or nothing."""
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)
