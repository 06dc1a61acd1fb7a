import numpy as np
import pytest

import rdjepa
from rdjepa.data import pace, readers
from rdjepa.data.readers.loading import strided
from rdjepa.data.survey import inspect
from rdjepa.errors import ArgumentError, DataError, Note


def rotating(frames, step, size=8):
    """Both components turn by an angle `step` from frame to frame; every point has its own phase."""
    phase = 2 * np.pi * np.random.default_rng(0).uniform(size=(size, size))
    angle = step * np.arange(frames)[:, None, None] + phase
    return np.stack([np.cos(angle), np.sin(angle)], -1).astype(np.float32)


def test_the_suggested_stride_brings_the_change_to_that_of_pretraining():
    low, median, high = pace.of_sources()
    assert 0 < low < median < high
    slow = rotating(200, median / 4)
    suggested = inspect(slow).stride
    assert suggested == 4
    assert inspect(strided(slow, suggested)).change == pytest.approx(median, rel=0.05)
    assert inspect(rotating(40, median)).stride == inspect(rotating(40, 2.0)).stride == 1


def test_a_window_is_left_of_every_trajectory():
    for frames in range(9, 50):
        most = pace.stride(1e-6, frames)
        assert len(range(0, frames, most)) >= 9 > len(range(0, frames, most + 1))
    assert pace.stride(1e-6, 41) == 5 and pace.stride(1e-6, 9) == pace.stride(1e-6, 5) == pace.stride(0.0, 41) == 1


def test_inspection_says_the_suggestion_in_one_line():
    for fields, words in (
        (rotating(40, pace.of_sources().median / 3), "3 suggested"),
        (rotating(40, 3.0), "save more of them"),
        (rotating(40, pace.of_sources().median), "1; the frames change about as much"),
        (rotating(12, pace.of_sources().median / 10), "are too few to leave some out"),
    ):
        rows = dict(inspect(fields).rows())
        assert words in rows["frame stride"] and "\n" not in rows["frame stride"]


@pytest.mark.parametrize("frames", [18, 19, 20, 21])
def test_frames_are_counted_back_from_the_last(frames):
    fields, times = rotating(frames, 0.1), 0.5 * np.arange(frames)
    given = rdjepa.Trajectory(fields, times)
    with pytest.warns(Note, match="one of every 2 frames is taken"):
        (found,) = readers.load(given, reading=rdjepa.Reading(stride=2))
    np.testing.assert_array_equal(found.fields, fields[::-1][::2][::-1])
    np.testing.assert_array_equal(found.times, times[::-1][::2][::-1])
    (whole,) = readers.load(given, reading=rdjepa.Reading(stride=1))
    assert whole is given


def test_the_frame_before_of_a_single_component_is_at_the_stride():
    one = rotating(19, 0.1)[..., :1]
    (found,) = readers.load(one[None], reading=rdjepa.Reading(stride=2))
    np.testing.assert_array_equal(found.fields[1:, ..., 1], found.fields[:-1, ..., 0])


def test_files_are_strided_too(tmp_path):
    fields = rotating(21, 0.1)
    np.save(tmp_path / "a.npy", fields)
    (found,) = readers.load(tmp_path / "a.npy", reading=rdjepa.Reading(stride=2))
    np.testing.assert_array_equal(found.fields, fields[::2])
    np.testing.assert_array_equal(np.diff(found.times), np.full(10, 2.0))


def test_too_few_frames_for_a_stride_and_impossible_strides_are_refused():
    with pytest.raises(
        DataError, match="at least 17 frames on the first axis, one of every 2 of them to be taken, got 16"
    ):
        readers.load(rotating(16, 0.1), reading=rdjepa.Reading(stride=2))
    assert not inspect(rotating(16, 0.1), rdjepa.Reading(stride=2)).usable
    for bad in (0, -1, 1.5, "two"):
        with pytest.raises(ArgumentError, match="expected stride to be"):
            rdjepa.Reading(stride=bad)  # type: ignore[arg-type]
