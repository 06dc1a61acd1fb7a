"""Trajectories and forecasters show themselves, whatever the backend is, and speak xarray."""

import base64
import io
import re
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import rdjepa
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.data.fields import with_second
from rdjepa.data.readers import load
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, DataError, Note
from rdjepa.forecasters.linear import Linear
from rdjepa.viz import inline

LONG = np.random.default_rng(0).standard_normal((20, 16, 16, 2)).astype(np.float32)
FIELDS = LONG[:12]
MINE = Trajectory(FIELDS, np.arange(12) / 2, {"D<u>": 0.5}, Key("mine"), length=8.0, boundary="neumann")


def forecaster():
    model = Linear.fit([torch.from_numpy(FIELDS).movedim(-1, 1)])
    return Forecaster(model, rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0)), {"support": ["mine/<b>"]}, [2.0, 1.0])


def picture(html):
    """The one inline PNG of a page."""
    (content,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    return Image.open(io.BytesIO(base64.b64decode(content)))


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (MINE, ["12, t = 0 to 5.5", "16 x 16", "neumann", "D&lt;u&gt; = 0.5", "mine/pool/id/00000"]),
        (forecaster(), ["linear", "any", "mine/&lt;b&gt;", "2 to 1"]),
    ],
    ids=["trajectory", "forecaster"],
)
def test_facts_and_a_small_picture_are_shown(shown, words):
    html = shown._repr_html_()
    assert all(word in html for word in words) and len(html) < 200_000
    assert min(picture(html).size) > 80


def test_figures_are_pictures_and_movies_have_every_frame(tmp_path):
    made = forecaster()
    for figure in (MINE.plot(), made.plot(MINE), made.plot(FIELDS[:4]), made.plot(FIELDS, start=2, component=1)):
        assert Image.open(io.BytesIO(figure._repr_png_())).width > 300
    for movie, frames in ((MINE.animate(), 12), (made.animate(MINE), 9), (made.animate(FIELDS[:5]), 9)):
        with Image.open(movie.save(tmp_path / "m.gif")) as image:
            assert image.n_frames == frames  # type: ignore[attr-defined]
        assert movie._repr_html_().startswith('<img src="data:image/gif;base64,')
    with pytest.raises(DataError, match="four frames from start 9, got 12"):
        made.plot(MINE, start=9)
    with pytest.raises(DataError, match="at least 4 frames"):
        made.plot(FIELDS[:3])
    with pytest.raises(DataError, match="got a int; give one of these"):
        made.animate(5)
    with pytest.raises(DataError, match="one trajectory to show, got several"):
        made.plot(np.stack([FIELDS, -FIELDS]))
    made.record["measured"] = 2
    with pytest.raises(DataError, match=r"trajectories of 2 measured components, .* got 1"):
        made.animate(FIELDS[..., :1])
    for wrong, said in ((2, "a component from 0 to 1, got 2"), (-1, "of at least 0"), (True, "a whole number")):
        with pytest.raises(ArgumentError, match=said):
            made.animate(MINE, component=wrong)
        with pytest.raises(ArgumentError, match=said):
            MINE.animate(wrong)
    with pytest.raises(ArgumentError, match="start to be a whole number or None, got 'last'"):
        made.plot(MINE, start="last")


def test_components_have_their_names_and_cells_their_shape(monkeypatch):
    named = replace(MINE, names=("predator", "prey"), spacing=(1.0, 0.25))
    axes = named.plot().axes
    assert [axis.get_ylabel() for axis in axes[::5]] == ["predator", "prey"]
    assert [axis.get_ylabel() for axis in replace(MINE, names=("alone",)).plot().axes[::5]] == ["u", "v"]
    monkeypatch.setattr("rdjepa.viz.panels.gif", lambda figure, *_: figure)  # the figure, not its pictures
    movies = [named.animate(component=1), forecaster().animate(named)]
    assert movies[0].gif.axes[0].get_title().endswith("prey")
    drawn = [*axes, *forecaster().plot(named).axes, *(axis for movie in movies for axis in movie.gif.axes)]
    assert {axis.get_aspect() for axis in drawn if axis.images} == {4.0}
    assert {axis.get_aspect() for axis in MINE.plot().axes} == {1.0}
    frames = FIELDS[:5, ..., 0]
    look = inline.look(frames, frames, frames, frames, 0.9, spacing=(1.0, 2.0), name="u")
    assert look.get_suptitle() == "u"
    assert {axis.get_aspect() for axis in look.axes if axis.images} == {0.5}


def test_what_stands_beside_one_measured_component_is_not_shown_as_another(monkeypatch):
    mine = replace(MINE, fields=with_second(FIELDS[..., :1]), names=("density",))
    assert [axis.get_ylabel() for axis in mine.plot().axes[::5]] == ["density"]
    assert "density" in mine._repr_html_() and "u, v" in MINE._repr_html_()
    with pytest.raises(ArgumentError, match="a component from 0 to 0, got 1"):
        mine.animate(1)
    monkeypatch.setattr("rdjepa.viz.panels.gif", lambda figure, *_: figure)
    movie: Any = mine.animate()
    assert movie.gif.axes[0].get_title().endswith("density")


@pytest.mark.parametrize(
    ("first", "interval", "labels"),
    [
        (43800, 0.25, ["43800", "43800.5", "43801.25", "43802", "43802.75"]),
        (1.7e9, 60, ["1700000000", "1700000120", "1700000300", "1700000480", "1700000660"]),
        (0, 0.1, ["0", "0.2", "0.5", "0.8", "1.1"]),
        (0, 1 / 3, ["0", "0.6667", "1.667", "2.667", "3.667"]),
        (-5, 0, ["-5"] * 5),
    ],
)
def test_times_of_frames_are_told_apart(first, interval, labels):
    timed = replace(MINE, times=first + interval * np.arange(12))
    assert [axis.get_title() for axis in timed.plot().axes[:5]] == [f"t = {label}" for label in labels]
    assert f"t = {labels[0]} to {labels[-1]}<" in timed._repr_html_()


@pytest.mark.parametrize(("level", "shown"), [(0.9, "90%"), (0.975, "97.5%"), (0.995, "99.5%"), (0.29, "29%")])
def test_levels_are_not_rounded(level, shown):
    frames = FIELDS[:2, ..., 0]
    labels = [axis.get_ylabel() for axis in inline.look(frames, frames, frames, frames, level).axes]
    assert f"half width, {shown}" in labels


def test_the_last_window_with_a_reference_is_drawn_unless_another_is_chosen():
    made = forecaster()
    for given, start, first, known in ((12, None, 3, True), (7, None, 3, False), (12, 8, 8, False), (12, 0, 0, True)):
        context, future = made._example(FIELDS[:given], start, 0)
        assert np.array_equal(context, FIELDS[first : first + 4])
        assert (future is not None) == known and (
            future is None or np.array_equal(future, FIELDS[first + 4 : first + 9])
        )


def test_what_is_shown_is_read_as_evaluation_reads_it(monkeypatch):
    made, shown = forecaster(), []
    monkeypatch.setattr(inline, "forecast", lambda reference, *_: shown.append(reference))
    made.record |= {"stride": 2, "names": ["u", "v"]}
    with pytest.warns(Note, match="one of every 2 frames is taken, 10 of 20"):
        made.plot(Trajectory(LONG, np.arange(20.0), names=("v", "u")))
    assert np.array_equal(shown.pop(), LONG[1::2, ..., ::-1][-5:])
    one = Forecaster(made.model, made.normalizer, {"measured": 1})
    one.plot(FIELDS[..., :1])
    assert np.array_equal(shown.pop(), with_second(FIELDS[..., :1])[-5:])


def test_xarray_has_the_same_numbers_and_the_grid_of_the_domain(monkeypatch):
    pytest.importorskip("xarray")
    found = MINE.to_xarray()
    assert found.dims == ("time", "y", "x", "component")
    assert np.array_equal(found.values, FIELDS) and np.array_equal(found.time, MINE.times)
    assert np.allclose(found.x, (np.arange(16) + 0.5) / 2)  # cell centers between walls
    assert np.allclose(Trajectory(FIELDS, MINE.times, length=8.0).to_xarray().x, np.arange(16) / 2)
    alone = replace(MINE, fields=with_second(FIELDS[..., :1]), names=("density",))
    assert alone.to_xarray().sel(component="density").values.tolist() == FIELDS[..., 0].tolist()
    (again,) = load(alone.to_xarray())
    assert np.array_equal(again.fields, alone.fields) and again.names == ("density",)
    assert found.sel(component="v").attrs["key"] == "mine/pool/id/00000"
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ArgumentError, match=r"no xarray; install them with: pip install 'rdjepa\[formats\]'"):
        MINE.to_xarray()
