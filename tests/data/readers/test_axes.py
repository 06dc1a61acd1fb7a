import itertools

import numpy as np
import pytest

from rdjepa.data.readers import Reading, axes
from rdjepa.errors import ArgumentError, DataError


@pytest.mark.parametrize("text", ["t y x c", "tyxc", "T,Y,X,C", " t  y x,c "])
def test_an_order_is_letters_however_they_are_separated(text):
    assert axes.parse(text) == "tyxc" == Reading(axes=text).axes


@pytest.mark.parametrize("text", ["", "t y c", "t y x x", "t y x z", "y x", "t t y x", "1 1"])
def test_an_order_that_is_none_is_refused(text):
    with pytest.raises(ArgumentError, match="one letter for each axis"):
        Reading(axes=text)


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((30, 64, 64, 2), "tyxc"),
        ((5, 30, 64, 64, 2), "btyxc"),
        ((64, 64, 64, 2), "tyxc"),
        ((4, 64, 64, 2), "tyxc"),
        ((30, 2, 64, 64), "tcyx"),
        ((5, 30, 2, 64, 64), "btcyx"),
        ((2, 30, 64, 64), "ctyx"),
        ((30, 64, 64, 1), "tyxc"),
        ((30, 64, 64, 3), "tyxc"),
        ((30, 3, 64, 64), "tcyx"),
        ((30, 64, 64), "tyx"),
        ((64, 64, 30), "yxt"),
        ((5, 30, 64, 64), "btyx"),
        ((5, 64, 64, 30), "byxt"),
        ((24, 64, 64, 6), "tyxc"),
        ((24, 64, 64, 100), "byxt"),
    ],
)
def test_an_order_is_guessed_from_the_lengths(shape, order):
    assert axes.guess(shape, "here") == order


@pytest.mark.parametrize("shape", [(10,), (30, 64, 1, 1), (6, 5, 30, 64, 64), (2, 3, 5, 30, 64, 64)])
def test_shapes_without_a_likely_order_are_refused(shape):
    with pytest.raises(DataError, match="say the order of its axes"):
        axes.guess(shape, "here")


@pytest.mark.parametrize("shape", [(64, 64), (64, 48), (64, 64, 1), (64, 64, 2), (64, 64, 3), (48, 64, 4)])
def test_a_single_frame_is_said_to_be_one(shape):
    refused = r"expected at least 9 frames, got shape \(.*\) in here, which looks like that of a single one; "
    for separate in (False, True):
        with pytest.raises(DataError, match=refused):
            axes.guess(shape, "here", separate)
    with pytest.raises(DataError, match=refused):
        axes.named(("lat", "lon", "channel")[: len(shape)], shape, "here")


def test_an_array_of_many_components_or_of_frames_at_the_end_is_asked_about():
    with pytest.raises(DataError, match="24 frames of 12 components or of 24 trajectories of 12 frames; say which"):
        axes.guess((24, 64, 64, 12), "here")
    assert axes.guess((24, 64, 64, 12), "here", separate=True) == "byxt"


def test_one_component_by_itself_has_no_axis_of_components():
    assert axes.guess((2, 30, 64, 64), "here", separate=True) == "btyx"
    with pytest.raises(DataError, match=r"one component each, got shape \(30, 64, 64, 2\) in here; .* stack them"):
        axes.guess((30, 64, 64, 2), "here", separate=True)


def test_dimensions_are_known_by_name_and_single_points_are_dropped():
    assert axes.named(("time", "lev", "Latitude", "lon"), (9, 1, 4, 4), "here") == "t1yx"
    for names in itertools.permutations(("sample", "time", "y", "x", "channel")):
        assert axes.named(names, (3, 9, 4, 4, 2), "here") == "".join(
            {"sample": "b", "time": "t", "channel": "c"}.get(name, name) for name in names
        )
    for names in (("time", "lev", "y", "x"), ("time", "frame", "y", "x"), ("time", "y", "channel")):
        with pytest.raises(DataError, match="say their order"):
            axes.named(names, (9, 4, 4, 4)[: len(names)], "here")


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval": 0.0},
        {"interval": float("nan")},
        {"length": -1.0},
        {"components": ()},
        {"components": (0, 1, 2)},
        {"components": (1, 1)},
        {"components": (0, "0")},
        {"components": 0},
        {"components": "vel"},
        {"interval": "a"},
        {"interval": True},
        {"length": [1.0]},
        {"length": float("inf")},
        {"axes": 3},
        {"field": 3},
        {"stride": 1.5},
        {"spacing": 1.0},
        {"spacing": (1.0,)},
        {"spacing": (0.0, 1.0)},
        {"spacing": "1,2"},
    ],
)
def test_values_that_no_source_has_are_refused(wrong):
    with pytest.raises(ArgumentError, match=r"expected .*, got .*; "):
        Reading(**wrong)


def test_components_are_chosen_by_name_or_position():
    assert Reading(components=("w", "u")).choose(3, ("u", "v", "w"), "here") == (2, 0)
    assert Reading(components=(0, "2")).choose(3, (), "here") == (0, 2)
    for several in (range(2), np.array([0, 1]), [0, 1]):
        assert Reading(components=several).components == (0, 1)  # type: ignore[arg-type]
    assert Reading().choose(3, (), "here") is None
    with pytest.raises(ArgumentError, match="expected components among u, v"):
        Reading(components=("q",)).choose(2, ("u", "v"), "here")


@pytest.mark.parametrize("components", [("u", 0), (1, "v"), ("0", "00")])
def test_the_same_component_in_two_ways_is_refused(components):
    with pytest.raises(ArgumentError, match=r"two different components, got .* both of which are [uv] of here; choose"):
        Reading(components=components).choose(2, ("u", "v"), "here")
