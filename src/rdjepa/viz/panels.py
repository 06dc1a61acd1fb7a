"""Rows of images with their labels and scales of colors: still, a column for each title, or moving side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rdjepa.viz.gif import gif
from rdjepa.viz.style import ERROR_COLORS, FIELD_COLORS

Row = tuple[str, np.ndarray, dict[str, Any]]  # label, images (N, H, W), and how `imshow` draws them
SQUARE = (1.0, 1.0)  # distances between neighboring rows and columns of square cells


def component_names(names: Sequence[str], count: int) -> Sequence[str]:
    """Return the names of so many components: those given if there is one for each, else u, v, w."""
    return names if len(names) == count else "uvw"[:count]


def field_scale(shown: np.ndarray) -> dict[str, Any]:
    """Return how `imshow` draws all of some fields alike, from their smallest finite value to the largest."""
    values = shown[np.isfinite(shown)]
    return _scale(FIELD_COLORS, *((float(values.min()), float(values.max())) if values.size else (0.0, 0.0)))


def error_scale(*shown: np.ndarray, share: float = 1.0) -> dict[str, Any]:
    """Return how `imshow` draws absolute errors alike, from 0 to the largest finite value of all.

    Args:
        shown: the errors.
        share: of the values of each that is to have a color of its own; larger ones have the last color.
    """
    values = [each[np.isfinite(each)] for each in shown]
    return _scale(ERROR_COLORS, 0.0, max((float(np.quantile(each, share)) for each in values if each.size), default=0))


def _scale(colors: str, low: float, high: float) -> dict[str, Any]:
    """Return a scale of colors, a wider one for a single value: a bar of colors would widen that of its image alone."""
    return {"cmap": colors, "vmin": low, "vmax": high if high > low else low + max(1.0, abs(low))}


def grid(figure: Any, rows: Sequence[Row], titles: Sequence[str], **font: Any) -> None:
    """Draw rows of images, each with its label and scale of colors, below the titles of the columns."""
    axes = figure.subplots(len(rows), len(titles), squeeze=False)
    for line, (label, images, look) in zip(axes, rows, strict=True):
        for axis, image in zip(line, images, strict=True):
            shade = axis.imshow(image, origin="lower", **look)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(label)
        figure.colorbar(shade, ax=list(line), shrink=0.85, pad=0.02)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, **font)


def movie(figure: Any, rows: Sequence[Row], per_second: int = 6) -> bytes:
    """Return the GIF that plays the images of all rows side by side, each below its label."""
    pictures = []
    for axis, (label, images, look) in zip(figure.subplots(1, len(rows), squeeze=False)[0], rows, strict=True):
        axis.set(xticks=[], yticks=[])
        axis.set_title(label, fontsize=8)
        pictures.append(axis.imshow(images[0], origin="lower", **look))

    def draw(number: int) -> None:
        for picture, (_, images, _look) in zip(pictures, rows, strict=True):
            picture.set_data(images[number])

    return gif(figure, draw, len(rows[0][1]), per_second)
