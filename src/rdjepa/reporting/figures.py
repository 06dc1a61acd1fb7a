"""Pictures: pretraining curves, forecasts beside references, and their animation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.animation import FuncAnimation, PillowWriter

from rdjepa.reporting.style import ERROR_COLOURS, FIELD_COLOURS

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"  # safe for colour-blind readers


def curves(metrics: Sequence[Mapping[str, float]], path: Path) -> Path:
    """Loss, latent skill, spread and rank of a pretraining run, from the lines of its metrics.jsonl."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    left.plot([m["step"] for m in metrics], [m["loss"] for m in metrics], color=BLUE, lw=0.8, label="training")
    measured = [m for m in metrics if "latent_loss" in m]
    steps = [m["step"] for m in measured]
    for key, colour, label in (
        ("latent_loss", ORANGE, "validation"),
        ("mean_loss", GREY, "mean target"),
        ("persistence_loss", GREEN, "persistence"),
    ):
        left.plot(steps, [m[key] for m in measured], color=colour, label=label)
    left.set(xlabel="step", ylabel="latent loss", ylim=(0, None))
    left.legend(frameon=False, fontsize=8)
    middle.plot(steps, [m["target_std"] for m in measured], color=BLUE, label="standard deviation")
    middle.plot(steps, [m["target_cosine"] for m in measured], color=ORANGE, label="mean cosine")
    middle.set(xlabel="step", ylabel="targets across samples", ylim=(0, 1.05))
    middle.legend(frameon=False, fontsize=8)
    right.plot(steps, [m["target_rank"] for m in measured], color=BLUE)
    right.set(xlabel="step", ylabel="RankMe of targets", ylim=(0, None))
    return _save(figure, path)


def forecast(
    reference: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    path: Path,
    *,
    title: str,
    horizons: Sequence[int] = (1, 3, 5),
    component: int = 0,
) -> Path:
    """Reference, forecasts and absolute errors side by side, a column per horizon.

    Args:
        reference: (N, H, W, C) true future frames.
        forecasts: contender -> (N, H, W, C).
        path: PNG file.
        title: of the figure.
        horizons: lead times shown, from 1.
        component: which field component.
    """
    shown = [h - 1 for h in horizons]
    truth = reference[shown, ..., component]
    errors = {name: np.abs(fields[shown, ..., component] - truth) for name, fields in forecasts.items()}
    low, high = float(truth.min()), float(truth.max())
    worst = max(float(np.quantile(error, 0.995)) for error in errors.values())
    rows: list[tuple[str, np.ndarray, dict[str, Any]]] = [
        ("reference", truth, {"cmap": FIELD_COLOURS, "vmin": low, "vmax": high})
    ]
    first = next(iter(forecasts))
    rows.append((first, forecasts[first][shown, ..., component], rows[0][2]))
    rows += [
        (f"{name}\n|error|", error, {"cmap": ERROR_COLOURS, "vmin": 0.0, "vmax": worst})
        for name, error in errors.items()
    ]
    figure, axes = plt.subplots(
        len(rows), len(shown), figsize=(2.1 * len(shown) + 1.2, 2.05 * len(rows) + 0.4), layout="constrained"
    )
    for number, (line, (label, images, style)) in enumerate(zip(axes, rows, strict=True)):
        for column, (axis, image) in enumerate(zip(line, images, strict=True)):
            shade = axis.imshow(image, origin="lower", interpolation="nearest", **style)
            axis.set(xticks=[], yticks=[])
            if number == 0:
                axis.set_title(f"h = {horizons[column]}")
        line[0].set_ylabel(label)
        figure.colorbar(shade, ax=list(line), shrink=0.85, pad=0.02)
    figure.suptitle(title)
    return _save(figure, path)


def contact_sheet(
    rows: Mapping[str, np.ndarray], path: Path, *, title: str, frames: Sequence[int] = (0, 13, 26, 39)
) -> Path:
    """Both components of several trajectories at a few frames, a row per trajectory, each row with its own scale.

    Args:
        rows: label -> (T, H, W, 2) fields.
        path: PNG file.
        title: of the figure.
        frames: frames shown; beyond the last one the last is shown.
    """
    figure, axes = plt.subplots(
        len(rows),
        2 * len(frames),
        figsize=(1.15 * 2 * len(frames) + 1.0, 1.2 * len(rows) + 0.6),
        layout="constrained",
        squeeze=False,
    )
    for number, (line, (label, fields)) in enumerate(zip(axes, rows.items(), strict=True)):
        for column, axis in enumerate(line):
            component, frame = divmod(column, len(frames))
            shown = fields[..., component]
            axis.imshow(
                shown[min(frames[frame], len(fields) - 1)],
                origin="lower",
                cmap=FIELD_COLOURS,
                vmin=float(shown.min()),
                vmax=float(shown.max()),
            )
            axis.set(xticks=[], yticks=[])
            if number == 0:
                axis.set_title(f"{'uv'[component]}, frame {frames[frame]}", fontsize=7)
        line[0].set_ylabel(label, fontsize=6, rotation=0, ha="right", va="center")
    figure.suptitle(title, fontsize=9)
    return _save(figure, path)


def animation(
    reference: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    path: Path,
    *,
    title: str,
    component: int = 0,
    per_second: int = 6,
) -> Path:
    """Reference, forecasts and errors as they follow each other in time, as a GIF.

    Args:
        reference: (n, H, W, C) frames.
        forecasts: contender -> (n, H, W, C) forecasts of those frames.
        path: GIF file.
        title: of every picture.
        component: which field component.
        per_second: frames a second.
    """
    truth = reference[..., component]
    panels = [("reference", truth, FIELD_COLOURS, float(truth.min()), float(truth.max()))]
    errors = {name: np.abs(fields[..., component] - truth) for name, fields in forecasts.items()}
    worst = max(float(np.quantile(error, 0.995)) for error in errors.values())
    for name, fields in forecasts.items():
        panels.append((name, fields[..., component], FIELD_COLOURS, panels[0][3], panels[0][4]))
        panels.append((f"{name} |error|", errors[name], ERROR_COLOURS, 0.0, worst))
    figure, axes = plt.subplots(1, len(panels), figsize=(2.2 * len(panels), 2.7), layout="constrained")
    images = []
    for axis, (label, frames, colours, low, high) in zip(axes, panels, strict=True):
        axis.set(xticks=[], yticks=[])
        axis.set_title(label, fontsize=8)
        images.append(axis.imshow(frames[0], origin="lower", cmap=colours, vmin=low, vmax=high))
    figure.suptitle(title, fontsize=9)

    def draw(number: int) -> list:
        for image, (_, frames, *_rest) in zip(images, panels, strict=True):
            image.set_data(frames[number])
        return images

    movie = FuncAnimation(figure, draw, frames=len(truth), blit=False)
    movie.save(path, writer=PillowWriter(fps=per_second), dpi=70)
    plt.close(figure)
    return path


def _save(figure: Any, path: Path) -> Path:
    """Write a figure and forget it."""
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
