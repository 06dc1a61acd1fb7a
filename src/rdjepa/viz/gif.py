"""Movies: the frames of a figure as an animated GIF."""

import io
from collections.abc import Callable

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

DPI = 70  # pixels per inch


def gif(figure: Figure, draw: Callable[[int], None], count: int, per_second: int) -> bytes:
    """Return the GIF of a figure's frames, which plays without end.

    Args:
        figure: it is laid out once, for the first frame.
        draw: changes the figure into the frame of a number.
        count: frames.
        per_second: frames per second.
    """
    figure.set_dpi(DPI)
    canvas = FigureCanvasAgg(figure)
    pictures = []
    for number in range(count):
        draw(number)
        canvas.draw()
        figure.set_layout_engine("none")
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"))
    stream = io.BytesIO()
    pictures[0].save(
        stream, format="GIF", save_all=True, append_images=pictures[1:], duration=round(1000 / per_second), loop=0
    )
    return stream.getvalue()
