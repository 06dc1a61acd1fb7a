"""Pictures and movies that notebooks show by themselves, without pyplot and whatever the backend is."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rdjepa.io.atomic import write_bytes
from rdjepa.viz import panels

SHOWN = 5  # frames of a trajectory in its picture
SIZE = 1.6  # inches of a frame


class Drawing(Figure):
    """A figure that is not registered with pyplot, and that a notebook shows as PNG."""

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


def frames(
    fields: np.ndarray,
    times: np.ndarray,
    size: float = SIZE,
    names: Sequence[str] = (),
    spacing: tuple[float, float] = panels.SQUARE,
) -> Drawing:
    """Draw a few frames of a trajectory, evenly chosen, a row for each component with its own scale of colors.

    Args:
        fields: (T, H, W, C).
        times: (T,).
        size: inches of a frame.
        names: of the components; u, v, w unless there is one for each.
        spacing: distance between neighboring rows, and between neighboring columns.
    """
    chosen = np.unique(np.linspace(0, len(fields) - 1, SHOWN).astype(int))
    components = fields.shape[-1]
    called, labels = panels.component_names(names, components), time_labels(times)
    figure = Drawing(figsize=(size * len(chosen), size * components + 0.2), dpi=80, layout="constrained")
    axes = figure.subplots(components, len(chosen), squeeze=False)
    for component, line in enumerate(axes):
        shown = fields[..., component]
        scale = panels.field_scale(shown)
        for axis, number in zip(line, chosen, strict=True):
            axis.imshow(shown[number], origin="lower", aspect=spacing[0] / spacing[1], **scale)
            axis.set(xticks=[], yticks=[])
            if component == 0:
                axis.set_title(f"t = {labels[number]}", fontsize=7)
        line[0].set_ylabel(called[component])
    return figure


def time_labels(times: np.ndarray) -> list[str]:
    """Return times (T,) as text of four digits, or of as many more as tell a tenth of their mean interval."""
    largest, interval = np.abs(times).max(), np.ptp(times) / max(len(times) - 1, 1)
    digits = max(4, math.ceil(math.log10(largest / interval)) + 2) if interval else 4
    return [f"{time:.{digits}g}" for time in times]


def forecast(
    reference: np.ndarray | None,
    made: np.ndarray,
    component: int = 0,
    spacing: tuple[float, float] = panels.SQUARE,
) -> Drawing:
    """Draw a forecast (N, H, W, C), and above it the reference, below it the absolute error, where there is one.

    Args:
        reference: (N, H, W, C), or None.
        made: (N, H, W, C).
        component: shown.
        spacing: distance between neighboring rows, and between neighboring columns.
    """
    truth = None if reference is None else reference[..., component]
    shown = made[..., component]
    scale = panels.field_scale(shown if truth is None else truth)
    rows: list[panels.Row] = [("forecast", shown, scale)]
    if truth is not None:
        error = np.abs(shown - truth)
        rows = [("reference", truth, scale), *rows, ("|error|", error, panels.error_scale(error))]
    return _grid(rows, spacing)


def look(
    reference: np.ndarray,
    made: np.ndarray,
    half: np.ndarray,
    future: np.ndarray,
    level: float,
    spacing: tuple[float, float] = panels.SQUARE,
    name: str = "",
) -> Drawing:
    """Draw a forecast beside what came, with its error and the half width of its interval, and one of what is to come.

    Args:
        reference: (N, H, W), the frames that came.
        made: (N, H, W), their forecast.
        half: (N, H, W), half the width of its interval.
        future: (N, H, W), the forecast of frames that are not known.
        level: of the interval.
        spacing: distance between neighboring rows, and between neighboring columns.
        name: of the component that they are of.
    """
    truth, error = reference, np.abs(made - reference)
    field, wrong = panels.field_scale(truth), panels.error_scale(error, half)
    rows = [
        ("last frames", truth, field),
        ("their forecast", made, field),
        ("|error|", error, wrong),
        (f"half width, {100 * level:g}%", half, wrong),
        ("beyond the end", future, field),
    ]
    figure = _grid(rows, spacing)
    if name:
        figure.suptitle(name, fontsize=9)
    return figure


def _grid(rows: Sequence[panels.Row], spacing: tuple[float, float]) -> Drawing:
    """Draw rows of images (N, H, W), a column for each horizon."""
    horizons = range(1, len(rows[0][1]) + 1)
    figure = Drawing(figsize=(SIZE * len(horizons) + 0.8, SIZE * len(rows) + 0.2), dpi=80, layout="constrained")
    shaped = [(label, images, {**scale, "aspect": spacing[0] / spacing[1]}) for label, images, scale in rows]
    panels.grid(figure, shaped, [f"h = {h}" for h in horizons], fontsize=8)
    return figure


def curve(losses: Sequence[float]) -> Drawing:
    """Draw the training loss of every update."""
    figure = Drawing(figsize=(3.2, 1.6), dpi=80, layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(1, len(losses) + 1), losses, lw=0.8, marker="" if len(losses) > 1 else ".")
    axes.set(xlabel="update", ylabel="loss", yscale="log")
    return figure


def movie(shown: Mapping[str, np.ndarray], spacing: tuple[float, float] = panels.SQUARE) -> Movie:
    """Animate fields side by side, all with the scale of colors of the first.

    Args:
        shown: label -> (T, H, W).
        spacing: distance between neighboring rows, and between neighboring columns.
    """
    first = next(iter(shown.values()))
    look = {**panels.field_scale(first), "aspect": spacing[0] / spacing[1]}
    figure = Drawing(figsize=(2.4 * len(shown), 2.6), layout="constrained")
    return Movie(panels.movie(figure, [(label, fields, look) for label, fields in shown.items()]))


def card(title: str, facts: Mapping[str, str], figure: Drawing | None) -> str:
    """Return HTML with a title, a table of facts, and a picture inline."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    picture = "" if figure is None else base64.b64encode(figure._repr_png_()).decode()
    image = f'<img src="data:image/png;base64,{picture}">' if picture else ""
    return f"<div><b>{escape(title)}</b><table>{rows}</table>{image}</div>"
