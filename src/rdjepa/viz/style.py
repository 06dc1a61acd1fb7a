"""Style of figures for print: width, font sizes, logarithmic axes, panel letters."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure as Figure  # registered nowhere, so it is freed like any other object
from matplotlib.ticker import FuncFormatter, LogLocator

from rdjepa.io.atomic import replacing

WIDTH = 180 / 25.4  # inches across two columns
FIELD_COLORS, ERROR_COLORS = "viridis", "magma"
_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,
    "savefig.facecolor": "white",
}


def print_style() -> AbstractContextManager[None]:
    """Return a context in which figures are drawn and saved in the style of print."""
    return rc_context(_SETTINGS)


def logarithmic(axis: Any) -> None:
    """Make an axis (`axes.xaxis` or `axes.yaxis`) logarithmic, with plain numbers at 1, 2 and 5 of every decade.

    Where the axis spans less than a factor of 4, every multiple of a power of ten has a number, below a factor of 10
    also 3 and 7, and above a factor of 100 the powers alone.
    """
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))  # by default a short axis of many decades has none
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if _power(value) or not _wide(axis) else ""))
    axis.set_minor_locator(LogLocator(subs=range(1, 10)))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if _between(value, axis) else ""))


def _between(value: float, axis: Any) -> bool:
    """Return whether a multiple of a power of ten has a number beside 1, 2 and 5."""
    low, high = sorted(axis.get_view_interval())
    return high < 4 * low or (high < 10 * low and f"{value:e}"[0] in "37")


def _wide(axis: Any) -> bool:
    low, high = sorted(axis.get_view_interval())
    return high > 100 * low


def _power(value: float) -> bool:
    return math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)


def letter(panel: Any, text: str) -> None:
    """Write the letter of a panel (axes or subfigure), bold, at its upper left."""
    if hasattr(panel, "get_xlim"):
        panel.set_title(text, loc="left", fontweight="bold", fontsize=9)
    else:
        panel.text(0.005, 0.995, text, ha="left", va="top", fontweight="bold", fontsize=9)


def save(figure: Any, out: Path, name: str, kinds: Sequence[str] = ("pdf", "png")) -> list[Path]:
    """Write a figure as vector PDF and as PNG of 200 dots per inch, or one of them, and return the paths."""
    settings: dict[str, Any] = {"pdf": {"dpi": "figure", "metadata": {"CreationDate": None}}, "png": {"dpi": 200}}
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # keep the layout of the line above, so that both files have the same
    return [write(figure, out / f"{name}.{kind}", format=kind, **settings[kind]) for kind in kinds]


def write(figure: Any, path: str | Path, dpi: int | str = 150, format: str = "png", **settings: Any) -> Path:
    """Write a figure atomically, as PNG unless another format is given, and return its path."""
    with replacing(path) as part:
        figure.savefig(part, dpi=dpi, format=format, **settings)
    return Path(path)
