"""The figure of a learning curve over the number of support trajectories."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rdjepa.viz.style import Figure, logarithmic, print_style, write

Bar = tuple[float, float, float]  # mean, smallest and largest over draws


def learning_curve(
    fitted: Mapping[str, Mapping[int, Bar]],
    unfitted: Mapping[str, float],
    path: str | Path,
    *,
    styles: Mapping[str, Mapping[str, Any]],
    title: str,
    things: str = "trajectories",
) -> Path:
    """Draw errors against K with bars from the smallest to the largest draw; those without support as lines across.

    Args:
        fitted: forecaster -> K -> relative L2 error.
        unfitted: forecaster -> relative L2 error.
        path: PNG file.
        styles: forecaster -> color, marker and line style.
        title: of the figure.
        things: what K counts.
    """
    with print_style():
        figure = Figure(figsize=(6.2, 3.1), layout="constrained")
        axes = figure.subplots()
        every = sorted({k for found in fitted.values() for k in found})
        for place, (name, found) in enumerate(fitted.items()):
            shift = 1 + 0.02 * (place - (len(fitted) - 1) / 2)  # bars side by side
            means = [mean for mean, _, _ in found.values()]
            bars = [[mean - low for mean, low, _ in found.values()], [high - mean for mean, _, high in found.values()]]
            axes.errorbar([k * shift for k in found], means, bars, capsize=2, label=name, **styles.get(name, {}))
        for name, value in unfitted.items():
            style: dict[str, Any] = {key: each for key, each in styles.get(name, {}).items() if key != "marker"}
            axes.axhline(value, label=name, **style)
        axes.set_xscale("log")
        axes.set_xticks(every, [str(k) for k in every])
        axes.minorticks_off()
        axes.set(xlabel=f"K, {things} adapted to", ylabel="relative L2 error", title=title)
        values = [mean for found in fitted.values() for mean, _, _ in found.values()] + list(unfitted.values())
        if max(values) > 10 * min(values) > 0:
            logarithmic(axes.yaxis)
        else:
            axes.set_ylim(0, None)
        figure.legend(loc="outside right upper")
        return write(figure, path)
