import io

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from rdjepa.viz.gif import gif


def test_every_frame_is_drawn_at_its_time_and_the_movie_begins_again():
    figure = Figure(figsize=(2, 1), layout="constrained")
    axis = figure.subplots()
    shown = axis.imshow(np.zeros((4, 4)), vmin=0, vmax=2)
    content = gif(figure, lambda number: shown.set_data(np.full((4, 4), number)), count=3, per_second=5)
    with Image.open(io.BytesIO(content)) as movie:
        assert movie.size == (140, 70) and movie.info["loop"] == 0
        colors = []
        for number in range(3):
            movie.seek(number)
            assert movie.info["duration"] == 200
            colors.append(movie.convert("RGB").getpixel((70, 30)))
    assert len(set(colors)) == 3
