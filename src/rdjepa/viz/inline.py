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
from rdjepa.viz.gif import gif
from rdjepa.viz.style import ERROR_COLORS, FIELD_COLORS

SHOWN = 5  # frames of a trajectory in its picture


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


def frames(fields: np.ndarray, times: np.ndarray, size: float = 1.6) -> Drawing:
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


def forecast(reference: np.ndarray | None, made: np.ndarray, component: int = 0, size: float = 1.6) -> Drawing:
    """Draw a forecast (N, H, W, C), and above it the reference, below it the absolute error, where there is one."""
    truth = None if reference is None else reference[..., component]
    shown = made[..., component]
    like = shown if truth is None else truth
    scale = {"cmap": FIELD_COLORS, "vmin": float(like.min()), "vmax": float(like.max())}
    rows: list[tuple[str, np.ndarray, dict[str, Any]]] = [("forecast", shown, scale)]
    if truth is not None:
        error = np.abs(shown - truth)
        rows = [("reference", truth, scale), *rows, ("|error|", error, {"cmap": ERROR_COLORS, "vmin": 0.0})]
        rows[2][2]["vmax"] = float(error.max()) or 1.0
    return _panels(rows, size)


def look(
    reference: np.ndarray, made: np.ndarray, half: np.ndarray, future: np.ndarray, level: float, size: float = 1.6
) -> Drawing:
    """Draw a forecast beside what came, with its error and the half width of its interval, and one of what is to come.

    Args:
        reference: (N, H, W), the frames that came.
        made: (N, H, W), their forecast.
        half: (N, H, W), half the width of its interval.
        future: (N, H, W), the forecast of frames that are not known.
        level: of the interval.
        size: inches of a frame.
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
    return _panels(rows, size)


def _panels(rows: Sequence[tuple[str, np.ndarray, dict[str, Any]]], size: float) -> Drawing:
    """Draw rows of images (N, H, W), a column for each horizon, each row with its label and scale of colors."""
    count = len(rows[0][1])
    figure = Drawing(figsize=(size * count + 0.8, size * len(rows) + 0.2), dpi=80, layout="constrained")
    axes = figure.subplots(len(rows), count, squeeze=False)
    for number, (line, (label, images, style)) in enumerate(zip(axes, rows, strict=True)):
        for h, (axis, image) in enumerate(zip(line, images, strict=True), start=1):
            shade = axis.imshow(image, origin="lower", **style)
            axis.set(xticks=[], yticks=[])
            if number == 0:
                axis.set_title(f"h = {h}", fontsize=8)
        line[0].set_ylabel(label)
        figure.colorbar(shade, ax=list(line), shrink=0.85, pad=0.02)
    return figure


def curve(losses: Sequence[float]) -> Drawing:
    """Draw the training loss of every update."""
    figure = Drawing(figsize=(3.2, 1.6), dpi=80, layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(1, len(losses) + 1), losses, lw=0.8)
    axes.set(xlabel="update", ylabel="loss", yscale="log")
    return figure


def movie(panels: Mapping[str, np.ndarray], per_second: int = 6) -> Movie:
    """Animate fields (T, H, W) side by side, all with the scale of colors of the first."""
    first = next(iter(panels.values()))
    style = {"cmap": FIELD_COLORS, "vmin": float(first.min()), "vmax": float(first.max())}
    figure = Drawing(figsize=(2.4 * len(panels), 2.6), layout="constrained")
    images = []
    for axis, (label, fields) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        axis.set(xticks=[], yticks=[])
        axis.set_title(label, fontsize=8)
        images.append(axis.imshow(fields[0], origin="lower", **style))

    def draw(number: int) -> None:
        for image, fields in zip(images, panels.values(), strict=True):
            image.set_data(fields[number])

    return Movie(gif(figure, draw, len(first), per_second))


def card(title: str, facts: Mapping[str, str], figure: Drawing | None) -> str:
    """Return HTML with a title, a table of facts, and a picture inline."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    picture = "" if figure is None else base64.b64encode(figure._repr_png_()).decode()
    image = f'<img src="data:image/png;base64,{picture}">' if picture else ""
    return f"<div><b>{escape(title)}</b><table>{rows}</table>{image}</div>"
