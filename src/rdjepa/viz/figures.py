"""Figures: pretraining curves, forecasts beside references, and their animation."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rdjepa.io.atomic import write_bytes
from rdjepa.viz import panels
from rdjepa.viz.style import FIELD_COLORS, Figure, write

BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#666666"  # safe for color-blind readers
SHOWN_HORIZONS = (1, 3, 5)
SHOWN_ERRORS = 0.995  # share of the errors that have colors of their own; the largest few would darken all others
ACROSS, TILE = 14, 64  # trajectories in a row of a mosaic; pixels per side of one, larger fields are sampled


def curves(metrics: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Draw loss, latent skill, spread, rank, gates and gradients of a pretraining run into a PNG file.

    A panel is left out where the run has none of its quantities, as of an objective without targets.

    Args:
        metrics: lines of the run's metrics.jsonl.
        path: PNG file.
    """
    quantities = _quantities(metrics)
    what = next(iter(quantities))
    drawn = {title: [each for each in found if each.points(metrics)] for title, found in quantities.items()}
    shown = {title: found for title, found in drawn.items() if found}
    columns = min(3, max(1, len(shown)))
    rows = max(1, math.ceil(len(shown) / columns))
    figure = Figure(figsize=(11 / 3 * columns, 3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis, (title, found) in zip(axes.flat, shown.items(), strict=False):
        for each in found:
            points = each.points(metrics)
            look: dict[str, Any] = {"color": each.color, "label": each.label, "lw": each.width}
            axis.plot(*zip(*points, strict=True), marker="" if len(points) > 1 else ".", **look)
        axis.set(xlabel="step", ylabel=title)
        if any(each.label for each in found):
            axis.legend(frameon=False, fontsize=7)
        if title == what:
            axis.set_ylim(0, None)
        elif title == "latent skill":
            ends = [each.points(metrics)[-1][1] for each in found]
            axis.set_ylim(min(-0.2, 1.1 * min(ends)), 1)  # of worse ones before, the end alone counts
        elif title == "gradient norms":
            axis.set_yscale("log")
    for axis in axes.flat[len(shown) :]:
        axis.remove()
    return write(figure, path)


def _quantities(metrics: Sequence[Mapping[str, Any]]) -> dict[str, list["_Curve"]]:
    """Return title -> curves of each panel of a pretraining run, the losses first."""
    latent = any("latent_std" in m for m in metrics)  # without targets the encoder's latents are in their place
    of, what = ("latent", "loss") if latent else ("target", "latent loss")
    systems = sorted({name for m in metrics for name in m.get("queue", {}).get("systems", {})})
    modules = sorted({name for m in metrics for name in m.get("gradient_norms", {})})
    gates: Mapping[str, Any] = next((m["gates"] for m in metrics if m.get("gates")), {})
    colors = {"diffusion": BLUE, "reaction": ORANGE}
    return {
        what: [
            _Curve("loss", BLUE, "training", 0.8),
            *(_Curve(name, ORANGE, "held out") for name in ("latent_loss", "held_out_loss")),
            _Curve("mean_loss", GRAY, "mean target"),
            _Curve("persistence_loss", GREEN, "persistence"),
        ],
        "latent skill": [
            _Curve("skill_mean", GRAY, "against mean target"),
            _Curve("skill_persistence", GREEN, "against persistence"),
        ],
        f"{of}s across samples": [
            _Curve(f"{of}_std", BLUE, "standard deviation"),
            _Curve(f"{of}_cosine", ORANGE, "mean cosine"),
        ],
        f"RankMe of {of}s": [
            *(_Curve(f"queue/systems/{name}/{of}_rank", f"C{i}", name, 0.7) for i, name in enumerate(systems)),
            _Curve(f"{of}_rank", BLUE, "all, held out"),
        ],
        "state": [
            *(
                _Curve(f"gates/{name}/{i}", colors[name], "" if i else f"{name} gates", 0.7)
                for name, values in gates.items()
                for i in range(len(values))
            ),
            _Curve("averaging_distance", GRAY, "distance of the average"),
        ],
        "gradient norms": [
            *(_Curve(f"gradient_norms/{name}", f"C{i % 10}", "", 0.4) for i, name in enumerate(modules)),
            _Curve("gradient_norm", "black", "all", 0.8),
        ],
    }


class _Curve(NamedTuple):
    """A quantity of the metrics, as a path of keys, and how it is drawn."""

    key: str
    color: str
    label: str
    width: float = 1.5

    def points(self, metrics: Sequence[Mapping[str, Any]]) -> list[tuple[int, float]]:
        """Return step and value of the lines that have it."""
        return [(m["step"], value) for m in metrics if (value := _at(m, self.key)) is not None]


def _at(record: Any, path: str) -> Any:
    """Return the value under a path of keys and list positions such as "gates/reaction/0", or None."""
    for key in path.split("/"):
        if isinstance(record, list):
            record = record[int(key)]
        elif key in record:
            record = record[key]
        else:
            return None
    return record


def forecast(
    reference: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    path: Path,
    *,
    title: str,
) -> Path:
    """Draw the first component: reference, first forecast, absolute errors of all forecasts, at a few horizons.

    Args:
        reference: (N, H, W, C) true future frames.
        forecasts: forecaster -> (N, H, W, C).
        path: PNG file.
        title: of the figure.
    """
    shown = [h - 1 for h in SHOWN_HORIZONS]
    truth = reference[shown, ..., 0]
    errors = {name: np.abs(fields[shown, ..., 0] - truth) for name, fields in forecasts.items()}
    field, wrong = panels.field_scale(truth), panels.error_scale(*errors.values(), share=SHOWN_ERRORS)
    first = next(iter(forecasts))
    rows = [("reference", truth, field), (first, forecasts[first][shown, ..., 0], field)]
    rows += [(f"{name}\n|error|", error, wrong) for name, error in errors.items()]
    figure = Figure(figsize=(2.1 * len(shown) + 1.2, 2.05 * len(rows) + 0.4), layout="constrained")
    crisp = [(label, images, {**look, "interpolation": "nearest"}) for label, images, look in rows]
    panels.grid(figure, crisp, [f"h = {h}" for h in SHOWN_HORIZONS])
    figure.suptitle(title)
    return write(figure, path)


def learning(
    curves: Mapping[str, Mapping[int, float]], references: Mapping[str, float], path: Path, *, title: str
) -> Path:
    """Draw errors against the number of updates, and errors that need none as horizontal lines, into a PNG file.

    Args:
        curves: forecaster -> number of updates -> relative L2 error.
        references: forecaster -> its error.
        path: PNG file.
        title: of the figure.
    """
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    for name, found in curves.items():
        axes.plot(list(found), list(found.values()), marker="o", label=name)
    for name, value in references.items():
        axes.axhline(value, color="0.5", ls="--", label=name)
    ticks = sorted({updates for found in curves.values() for updates in found})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="updates", ylabel="relative L2 error", ylim=(0, None), title=title)
    axes.legend(frameon=False)
    return write(figure, path)


def contact_sheet(
    rows: Mapping[str, np.ndarray], path: Path, *, title: str, frames: Sequence[int] = (0, 13, 26, 39)
) -> Path:
    """Draw both components of several trajectories at a few frames, one row per trajectory.

    Each component of a row has its own color scale.

    Args:
        rows: label -> (T, H, W, 2) fields.
        path: PNG file.
        title: of the figure.
        frames: indices of the frames shown; an index beyond the shortest trajectory stands for its last frame.
    """
    last = min(map(len, rows.values())) - 1
    frames = sorted({min(frame, last) for frame in frames})
    figure = Figure(
        figsize=(1.15 * 2 * len(frames) + 1.0, 1.2 * len(rows) + 0.6),
        layout="constrained",
    )
    axes = figure.subplots(len(rows), 2 * len(frames), squeeze=False)
    for number, (line, (label, fields)) in enumerate(zip(axes, rows.items(), strict=True)):
        for column, axis in enumerate(line):
            component, frame = divmod(column, len(frames))
            shown = fields[..., component]
            axis.imshow(shown[frames[frame]], origin="lower", **panels.field_scale(shown))
            axis.set(xticks=[], yticks=[])
            if number == 0:
                axis.set_title(f"{'uv'[component]}, frame {frames[frame]}", fontsize=7)
        line[0].set_ylabel(label, fontsize=6, rotation=0, ha="right", va="center")
    figure.suptitle(title, fontsize=9)
    return write(figure, path)


def mosaic(groups: Mapping[str, np.ndarray], path: Path, *, title: str) -> Path:
    """Draw many trajectories as small tiles, a block per group; the frames of one stand side by side.

    Every trajectory has its own color scale.

    Args:
        groups: label -> (n, frames, H, W), of any n.
        path: PNG file.
        title: of the figure.
    """
    blocks = {label: _tiled(fields) for label, fields in groups.items()}
    heights = [block.shape[0] for block in blocks.values()]
    figure = Figure(figsize=(16, 16 * (sum(heights) + 40 * len(blocks)) / next(iter(blocks.values())).shape[1]))
    axes = figure.subplots(len(blocks), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axis, (label, block) in zip(axes, blocks.items(), strict=True):
        axis.imshow(block, cmap=FIELD_COLORS, vmin=0, vmax=1, interpolation="nearest")
        axis.set_title(f"{label} ({len(groups[label])})", fontsize=8, loc="left", pad=2)
        axis.axis("off")
    figure.suptitle(title, y=0.995)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.005, top=0.975, hspace=0.08)
    return write(figure, path)


def _tiled(fields: np.ndarray) -> np.ndarray:
    """Return (n, frames, H, W) as one picture between 0 and 1, NaN between the tiles."""
    step = max(1, fields.shape[-1] // TILE)
    small = fields[..., ::-step, ::step].astype(np.float64)  # images have their first row at the top
    low, high = (ends(small, axis=(1, 2, 3), keepdims=True) for ends in (np.min, np.max))
    small = (small - low) / np.maximum(high - low, 1e-12)
    tiles = np.pad(small, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    strips = [np.pad(np.hstack(list(tile)), ((0, 2), (0, 3)), constant_values=np.nan) for tile in tiles]
    strips += [np.full_like(strips[0], np.nan)] * (-len(strips) % ACROSS)
    return np.vstack([np.hstack(strips[row : row + ACROSS]) for row in range(0, len(strips), ACROSS)])


def animation(
    reference: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    path: Path,
    *,
    title: str,
    per_second: int = 6,
) -> Path:
    """Animate the first component of reference, forecasts and absolute errors as a GIF.

    Args:
        reference: (n, H, W, C) frames.
        forecasts: forecaster -> (n, H, W, C) forecasts of those frames.
        path: GIF file.
        title: of every frame.
        per_second: frames per second.
    """
    truth = reference[..., 0]
    errors = {name: np.abs(fields[..., 0] - truth) for name, fields in forecasts.items()}
    field, wrong = panels.field_scale(truth), panels.error_scale(*errors.values(), share=SHOWN_ERRORS)
    rows = [("reference", truth, field)]
    for name, fields in forecasts.items():
        rows += [(name, fields[..., 0], field), (f"{name} |error|", errors[name], wrong)]
    figure = Figure(figsize=(2.2 * len(rows), 2.7), layout="constrained")
    figure.suptitle(title, fontsize=9)
    return write_bytes(path, panels.movie(figure, rows, per_second))
