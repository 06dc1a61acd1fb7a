"""All images of a row have one scale of colors, whatever the fields are."""

from typing import Any

import numpy as np
import pytest

from rdjepa.viz import figures, inline

FIELDS = np.random.default_rng(0).standard_normal((5, 8, 8, 2))
STILL = np.full_like(FIELDS, 3.0)


def scales(figure: Any, columns: int) -> list[tuple[float, float]]:
    """The scale of each row, after a check that it is that of all its images."""
    figure.draw_without_rendering()
    limits = [axis.images[0].get_clim() for axis in figure.axes if axis.images]
    rows = [set(limits[first : first + columns]) for first in range(0, len(limits), columns)]
    assert all(len(row) == 1 for row in rows), rows
    return [row.pop() for row in rows]


def test_fields_that_are_the_same_everywhere_have_one_color_in_all_frames(drawn, tmp_path):
    field, error = (3.0, 6.0), (0.0, 1.0)
    assert scales(inline.forecast(STILL, STILL), 5) == [field, field, error]
    assert scales(inline.forecast(None, -STILL), 5) == [(-3.0, 0.0)]
    figures.forecast(STILL, {"a": STILL}, tmp_path / "f.png", title="t")
    assert scales(drawn[0], 3) == [field, field, error]


def test_values_that_are_not_finite_have_no_part_in_a_scale(drawn, tmp_path):
    made = FIELDS + 1
    made[0, 0, 0] = np.nan
    made[2, 0, 0] = np.inf
    u = FIELDS[..., 0]
    field, error = (u.min(), u.max()), (0.0, pytest.approx(1.0))
    assert scales(inline.forecast(FIELDS, made), 5) == [field, field, error]
    figures.forecast(FIELDS, {"a": made}, tmp_path / "f.png", title="t")
    assert scales(drawn[0], 3)[2] == error
    times = np.arange(5.0)
    assert scales(inline.frames(made, times), 5)[0] == (u.min() + 1, u.max() + 1)
    assert scales(inline.frames(made * np.nan, times), 5) == [(0.0, 1.0)] * 2
