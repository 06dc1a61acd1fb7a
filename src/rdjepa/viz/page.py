"""A page for the browser that plays trajectories and their forecasts; one file that needs no network (Bokeh)."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from rdjepa.checks import require_packages
from rdjepa.io.atomic import write_bytes
from rdjepa.viz import panels

CURVES = ("energy", "wrong", "l2", "still")  # of a clip with a forecast
MARK = b"<!-- written by rdjepa -->"  # ends the file
PLAY = """
if (button.active) {
  window.rdjepa_playing = setInterval(() => {
    if (time.value < time.end) { time.value += 1; return }
    if (part.value < data.windows[Number(which.value)]) part.value += 1
    else part.value = 1
    time.value = 1
  }, 300)
} else clearInterval(window.rdjepa_playing)
"""


@dataclass(frozen=True)
class Clip:
    """A few frames of a trajectory, and the forecast of the last of them where there is one.

    Attributes:
        trajectory: its label.
        frames: (F,) numbers of the frames.
        reference: (F, H, W, C).
        forecast: (N, H, W, C) of the last N frames, or None.
        energy, wrong: (N, bins) energy of reference and error by radial wavenumber, beside a forecast.
        l2, still: (N,) relative L2 errors of forecast and persistence, beside a forecast.
    """

    trajectory: str
    frames: np.ndarray
    reference: np.ndarray
    forecast: np.ndarray | None = None
    energy: np.ndarray | None = None
    wrong: np.ndarray | None = None
    l2: np.ndarray | None = None
    still: np.ndarray | None = None


def page(
    clips: Sequence[Clip],
    path: str | Path,
    *,
    title: str,
    facts: str,
    losses: Sequence[float] = (),
    names: Sequence[str] = (),
    spacing: tuple[float, float] = panels.SQUARE,
) -> Path:
    """Write the page.

    Args:
        clips: all of the same shape, those of a trajectory one after the other.
        path: HTML file.
        title: of the page.
        facts: a few sentences above the figures.
        losses: training loss of every update; no curve where there are none.
        names: of the components; u, v, w unless there is one for each.
        spacing: distance between neighboring rows, and between neighboring columns.

    Raises:
        ArgumentError: the package Bokeh is missing.
        OutputError: the file cannot be written.
    """
    require_packages("of pages", "view", "bokeh")
    from bokeh.document import Document
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.models import Div
    from bokeh.resources import INLINE

    player, draw = _player(clips, names, spacing)
    parts = [Div(text=f"<h2>{escape(title)}</h2><p>{escape(facts)}</p>"), player]
    if losses:
        parts.append(_curve(losses))
    document = Document()
    document.add_root(column(*parts))
    document.js_on_event("document_ready", draw)  # the first frame is drawn by the same code as every other
    return write_bytes(path, file_html(document, INLINE, title=title).encode() + MARK)


def is_page(path: Path) -> bool:
    """Return whether `page` wrote a file."""
    with path.open("rb") as file:
        file.seek(-min(len(MARK), path.stat().st_size), 2)
        return file.read() == MARK


def _player(clips: Sequence[Clip], names: Sequence[str], spacing: tuple[float, float]) -> tuple[Any, Any]:
    """Return widgets and figures that show one frame of one clip at a time, and the script that draws it."""
    from bokeh.layouts import column, row
    from bokeh.models import CustomJS, Div, Select, Slider, Toggle

    data = encoded(clips)
    called = panels.component_names(names, clips[0].reference.shape[-1])
    labels = list(dict.fromkeys(clip.trajectory for clip in clips))
    widgets: dict[str, Any] = {
        "which": Select(title="trajectory", value="0", options=[(str(i), each) for i, each in enumerate(labels)]),
        "component": Select(title="component", value="0", options=[(str(i), each) for i, each in enumerate(called)]),
        "part": Slider(title="window", start=1, end=max(data["windows"][0], 1.5), step=1, value=1),
        "time": Slider(title="frame of the window", start=1, end=data["F"], step=1, value=1),
        "row": Slider(title="row of the profile", start=1, end=data["rows"], step=1, value=data["rows"] // 2),
    }
    says = Div(text="")
    figures, models = _figures(clips[0], data, spacing)
    draw = CustomJS(
        args={**widgets, **models, "data": data, "says": says},
        code=files("rdjepa.viz").joinpath("page.js").read_text(),
    )
    for widget in widgets.values():
        widget.js_on_change("value", draw)
    button = Toggle(label="play", active=False)
    button.js_on_change("active", CustomJS(args={**widgets, "data": data, "button": button}, code=PLAY))
    lines = [row(*line) for line in figures]
    top = (row(widgets["which"], widgets["component"], button), row(widgets["part"], widgets["time"]), says)
    return column(*top, *lines, widgets["row"]), draw


def _figures(first: Clip, data: dict[str, Any], spacing: tuple[float, float]) -> tuple[list[list[Any]], dict[str, Any]]:
    """Return the figures line by line, and by name what the script changes in them."""
    from bokeh.models import ColorBar, ColumnDataSource, LinearColorMapper
    from bokeh.plotting import figure

    rows, columns, shown = data["rows"], data["columns"], first.reference[0, ..., 0].astype(np.float32)
    low, high = float(data["low"][0]), float(data["high"][0])
    # frames of figures are square: room beside the field gives its cells their shape
    side = max(rows * spacing[0], columns * spacing[1])
    room = {"x_range": (0, side / spacing[1]), "y_range": (0, side / spacing[0])}
    colors = LinearColorMapper(palette="Viridis256", low=low, high=high if high > low else low + 1)
    errors = LinearColorMapper(palette="Magma256", low=0.0, high=float(data["largest"][0]) or 1.0)

    def image(title: str, field: np.ndarray, mapper: Any) -> tuple[Any, Any]:
        source = ColumnDataSource({"image": [field]})
        plot = figure(title=title, width=330, height=300, toolbar_location=None, **room)
        plot.image("image", x=0, y=0, dw=columns, dh=rows, source=source, color_mapper=mapper)
        plot.add_layout(ColorBar(color_mapper=mapper, width=8), "right")
        return plot, source

    def lines(title: str, x: np.ndarray, names: Sequence[str], **settings: Any) -> tuple[Any, Any]:
        source = ColumnDataSource({"x": x, **{name: np.full(len(x), np.nan) for name in names}})
        plot = figure(title=title, width=330, height=260, toolbar_location=None, **settings)
        for name, color in zip(names, ("#0072B2", "#D55E00"), strict=False):
            plot.line("x", name, source=source, color=color, legend_label=name, line_width=2)
        plot.legend.label_text_font_size = "8pt"
        plot.legend.background_fill_alpha = 0.5
        return plot, source

    images, curves = [], []
    models: dict[str, Any] = {"colors": colors, "errors": errors}
    plot, models["reference"] = image("reference", shown, colors)
    images.append(plot)
    for name, mapper in (("forecast", colors), ("error", errors)):
        models[name] = None
        if first.forecast is not None:
            plot, models[name] = image(name, np.zeros_like(shown), mapper)
            images.append(plot)
    names = ["reference"] + ["forecast"] * (first.forecast is not None)
    plot, models["profile"] = lines("profile along the row", np.arange(columns) + 0.5, names)
    curves.append(plot)
    models |= {"spectrum": None, "horizon": None}
    if first.l2 is not None:
        plot, models["spectrum"] = lines(
            "energy by wavenumber", np.arange(data["bins"]), ["reference", "error"], y_axis_type="log"
        )
        curves.append(plot)
        plot, models["horizon"] = lines(
            "relative L2 error by horizon", np.arange(1, len(first.l2) + 1), ["forecast", "persistence"]
        )
        curves.append(plot)
    return [images, curves], models


def encoded(clips: Sequence[Clip]) -> dict[str, Any]:
    """Return what page.js takes: fields and errors as bytes with their ranges, so that small errors stay visible.

    A field is low + (high - low) byte / 255, an error largest (byte / 127.5 - 1), by clip and component.
    """
    reference = np.stack([clip.reference for clip in clips]).astype(np.float64)
    count, frames, rows, columns, components = reference.shape
    low, high = reference.min(axis=(1, 2, 3)), reference.max(axis=(1, 2, 3))
    span = np.where(high > low, high - low, 1.0)
    labels = [clip.trajectory for clip in clips]
    data: dict[str, Any] = {
        "clips": count,
        "F": frames,
        "given": frames,
        "rows": rows,
        "columns": columns,
        "C": components,
        "frame": np.stack([clip.frames for clip in clips]).astype(np.int32).ravel(),
        "first": [labels.index(each) for each in dict.fromkeys(labels)],
        "windows": [labels.count(each) for each in dict.fromkeys(labels)],
        "low": low.astype(np.float32).ravel(),
        "high": high.astype(np.float32).ravel(),
        "largest": np.zeros(count * components, np.float32),
        "reference": np.rint((reference - _each(low)) / _each(span) * 255).astype(np.uint8).ravel(),
    }
    if clips[0].forecast is None:
        return data
    forecast = np.stack([np.asarray(clip.forecast) for clip in clips]).astype(np.float64)
    wrong = forecast - reference[:, -forecast.shape[1] :]
    largest = np.abs(wrong).max(axis=(1, 2, 3))
    scale = np.where(largest > 0, largest, 1.0)
    curves = {name: _stacked([np.asarray(getattr(clip, name)) for clip in clips]) for name in CURVES}
    return data | {
        "given": frames - forecast.shape[1],
        "bins": curves["energy"].shape[-1],
        "largest": largest.astype(np.float32).ravel(),
        "error": np.rint((wrong / _each(scale) + 1) * 127.5).astype(np.uint8).ravel(),
        **{name: values.astype(np.float32).ravel() for name, values in curves.items()},
    }


def _stacked(curves: Sequence[np.ndarray]) -> np.ndarray:
    """Stack curves (N, ...) of clips; spectra (N, bins) of other cell shapes are of other lengths, and end in NaN."""
    longest = max(curve.shape[-1] for curve in curves)
    return np.stack([
        np.pad(curve.astype(np.float64), [(0, 0)] * (curve.ndim - 1) + [(0, longest - curve.shape[-1])],
               constant_values=np.nan)
        for curve in curves
    ])  # fmt: skip


def _each(values: np.ndarray) -> np.ndarray:
    """Let values (clips, C) meet fields (clips, F, H, W, C)."""
    return values[:, None, None, None, :]


def _curve(losses: Sequence[float], points: int = 1000) -> Any:
    """Return a figure of the training loss, at most that many points of it."""
    from bokeh.plotting import figure

    kept = np.unique(np.linspace(0, len(losses) - 1, min(points, len(losses))).astype(int))
    plot = figure(
        title="training loss of the adaptation", width=660, height=220, y_axis_type="log", toolbar_location=None
    )
    draw = plot.line if len(kept) > 1 else plot.scatter
    draw(kept + 1, np.asarray(losses)[kept], color="#0072B2")
    plot.xaxis.axis_label = "update"
    return plot
