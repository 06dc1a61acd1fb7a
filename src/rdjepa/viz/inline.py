"""Pictures and movies that notebooks show by themselves, without pyplot and whatever the backend is."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rdjepa.io.atomic import write_bytes
from rdjepa.viz import panels
from rdjepa.viz.style import ERROR_COLORS, FIELD_COLORS

SHOWN = 5  # frames of a trajectory in its picture
SIZE = 1.6  # inches of a frame


class Drawing(Figure):
    """A figure that is not registered with pyplot, and that a notebook shows as PNG."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=self.dpi)
        return stream.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write it as PNG, atomically, and return its path.

        Raises:
            OutputError: the file cannot be written.
        """
        return write_bytes(path, self._repr_png_())


@dataclass(frozen=True)
class Movie:
    """An animation as the bytes of a GIF; a notebook plays it."""

    gif: bytes

    def _repr_html_(self) -> str:
        return f'<img src="data:image/gif;base64,{base64.b64encode(self.gif).decode()}">'

    def save(self, path: str | Path) -> Path:
        """Write the GIF atomically and return its path.

        Raises:
            OutputError: the file cannot be written.
        """
        return write_bytes(path, self.gif)


def frames(fields: np.ndarray, times: np.ndarray, size: float = SIZE) -> Drawing:
    """Draw a few frames of a trajectory, evenly chosen, a row for each component with its own scale of colors.

    Args:
        fields: (T, H, W, C).
        times: (T,).
        size: inches of a frame.
    """
    chosen = np.unique(np.linspace(0, len(fields) - 1, SHOWN).astype(int))
    components = fields.shape[-1]
    figure = Drawing(figsize=(size * len(chosen), size * components + 0.2), dpi=80, layout="constrained")
    axes = figure.subplots(components, len(chosen), squeeze=False)
    for component, line in enumerate(axes):
        shown = fields[..., component]
        low, high = float(shown.min()), float(shown.max())
        for axis, number in zip(line, chosen, strict=True):
            axis.imshow(shown[number], origin="lower", cmap=FIELD_COLORS, vmin=low, vmax=high)
            axis.set(xticks=[], yticks=[])
            if component == 0:
                axis.set_title(f"t = {times[number]:.4g}", fontsize=7)
        line[0].set_ylabel("uvw"[component])
    return figure


def forecast(reference: np.ndarray | None, made: np.ndarray, component: int = 0) -> Drawing:
    """Draw a forecast (N, H, W, C), and above it the reference, below it the absolute error, where there is one."""
    truth = None if reference is None else reference[..., component]
    shown = made[..., component]
    like = shown if truth is None else truth
    scale = {"cmap": FIELD_COLORS, "vmin": float(like.min()), "vmax": float(like.max())}
    rows: list[panels.Row] = [("forecast", shown, scale)]
    if truth is not None:
        error = np.abs(shown - truth)
        rows = [("reference", truth, scale), *rows, ("|error|", error, {"cmap": ERROR_COLORS, "vmin": 0.0})]
        rows[2][2]["vmax"] = float(error.max()) or 1.0
    return _grid(rows)


def look(reference: np.ndarray, made: np.ndarray, half: np.ndarray, future: np.ndarray, level: float) -> Drawing:
    """Draw a forecast beside what came, with its error and the half width of its interval, and one of what is to come.

    Args:
        reference: (N, H, W), the frames that came.
        made: (N, H, W), their forecast.
        half: (N, H, W), half the width of its interval.
        future: (N, H, W), the forecast of frames that are not known.
        level: of the interval.
    """
    truth, error = reference, np.abs(made - reference)
    field = {"cmap": FIELD_COLORS, "vmin": float(truth.min()), "vmax": float(truth.max())}
    wrong = {"cmap": ERROR_COLORS, "vmin": 0.0, "vmax": float(max(error.max(), half.max())) or 1.0}
    rows = [
        ("last frames", truth, field),
        ("their forecast", made, field),
        ("|error|", error, wrong),
        (f"half width, {level:.0%}", half, wrong),
        ("beyond the end", future, field),
    ]
    return _grid(rows)


def _grid(rows: Sequence[panels.Row]) -> Drawing:
    """Draw rows of images (N, H, W), a column for each horizon."""
    horizons = range(1, len(rows[0][1]) + 1)
    figure = Drawing(figsize=(SIZE * len(horizons) + 0.8, SIZE * len(rows) + 0.2), dpi=80, layout="constrained")
    panels.grid(figure, rows, [f"h = {h}" for h in horizons], fontsize=8)
    return figure


def curve(losses: Sequence[float]) -> Drawing:
    """Draw the training loss of every update."""
    figure = Drawing(figsize=(3.2, 1.6), dpi=80, layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(1, len(losses) + 1), losses, lw=0.8)
    axes.set(xlabel="update", ylabel="loss", yscale="log")
    return figure


def movie(shown: Mapping[str, np.ndarray]) -> Movie:
    """Animate fields (T, H, W) side by side, all with the scale of colors of the first."""
    first = next(iter(shown.values()))
    look = {"cmap": FIELD_COLORS, "vmin": float(first.min()), "vmax": float(first.max())}
    figure = Drawing(figsize=(2.4 * len(shown), 2.6), layout="constrained")
    return Movie(panels.movie(figure, [(label, fields, look) for label, fields in shown.items()]))


def card(title: str, facts: Mapping[str, str], figure: Drawing | None) -> str:
    """Return HTML with a title, a table of facts, and a picture inline."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    picture = "" if figure is None else base64.b64encode(figure._repr_png_()).decode()
    image = f'<img src="data:image/png;base64,{picture}">' if picture else ""
    return f"<div><b>{escape(title)}</b><table>{rows}</table>{image}</div>"
