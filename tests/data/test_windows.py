import numpy as np
import pytest
import torch

from rdjepa.data.windows import FORECASTING, PRETRAINING, WindowSpec, largest_stride
from rdjepa.errors import DataError
from rdjepa.forecasters.base import CONTEXT, HORIZONS

# every value of a frame is the number of the frame
FIELDS = np.broadcast_to(np.arange(40.0, dtype=np.float32)[:, None, None, None], (40, 3, 4, 2))


def test_forty_frames_give_the_papers_numbers_of_windows() -> None:
    assert PRETRAINING.count(40) == 29
    assert FORECASTING.count(40) == 32


def test_horizon_one_is_the_frame_after_the_context_and_no_target_is_given() -> None:
    for spec in (FORECASTING, PRETRAINING):
        for start in spec.starts(40):
            context, targets = spec.cut(FIELDS, start)
            given, future = context[:, 0, 0, 0], targets[:, 0, 0, 0]
            assert given.tolist() == list(range(start, start + 4))
            assert future.tolist() == [given[-1] + h for h in range(1, spec.max_offset + 1)]


def test_the_windows_reach_both_ends() -> None:
    starts = FORECASTING.starts(40)
    assert FORECASTING.cut(FIELDS, starts[0]).context[0, 0, 0, 0] == 0
    assert FORECASTING.cut(FIELDS, starts[-1]).targets[-1, 0, 0, 0] == 39


def test_frames_before_windows_come_first_in_their_contexts() -> None:
    context, targets = FORECASTING.stack(FIELDS, [3, 31], before=3)
    assert context[:, :, 0, 0, 0].tolist() == [[*range(7)], [*range(28, 35)]]
    assert np.array_equal(targets, FORECASTING.stack(FIELDS, [3, 31]).targets)
    with pytest.raises(DataError, match="got 2"):
        FORECASTING.stack(FIELDS, [2], before=3)


def test_nine_frames_are_one_forecasting_window() -> None:
    assert list(FORECASTING.starts(9)) == [0]
    with pytest.raises(DataError, match="expected at least 9 frames, got 8"):
        FORECASTING.starts(8)


@pytest.mark.parametrize("start", [-1, 32])
def test_a_window_that_is_not_whole_is_refused(start: int) -> None:
    with pytest.raises(DataError, match="expected a start from 0 to 31"):
        FORECASTING.cut(FIELDS, start)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(DataError, match="stride of at least 1"):
        WindowSpec(4, 5, 0)
    with pytest.raises(DataError, match="at least 1"):
        WindowSpec(max_offset=0)


def test_windows_are_of_the_frames_that_forecasters_take_and_give() -> None:
    assert WindowSpec(CONTEXT, HORIZONS) == FORECASTING and PRETRAINING.context == CONTEXT


@pytest.mark.parametrize("convert", [np.array, torch.tensor], ids=["array", "tensor"])
def test_stacked_windows_are_the_cut_ones(convert) -> None:
    fields = convert(np.random.default_rng(0).normal(size=(14, 3, 4, 2)))
    for starts in (None, [5, 0, 5]):
        stacked = FORECASTING.stack(fields, starts)
        for number, start in enumerate(FORECASTING.starts(14) if starts is None else starts):
            for part, cut in zip(stacked, FORECASTING.cut(fields, start), strict=True):
                assert type(part) is type(fields) and (part[number] == cut).all()


def test_a_window_beyond_the_end_is_not_stacked() -> None:
    for start in (32, -1):
        with pytest.raises(DataError, match=f"expected a start from 0 to 31, got {start}"):
            FORECASTING.stack(FIELDS, [0, start])
    with pytest.raises(DataError, match="at least 9 frames"):
        FORECASTING.stack(FIELDS[:8])


def test_frames_are_counted_from_the_newest_given_one() -> None:
    for spec in (FORECASTING, PRETRAINING):
        context, targets = spec.cut(np.arange(40), 7)
        assert spec.given([7]).tolist() == [context.tolist()]
        assert [spec.at(7, h) for h in range(spec.max_offset + 1)] == [context[-1], *targets]
        assert spec.count(spec.frames(5)) == 5


@pytest.mark.parametrize("stride", [2, 3])
def test_windows_of_every_other_frame_are_those_of_a_recording_with_fewer_frames(stride: int) -> None:
    spec, usual = WindowSpec(4, 5, stride), FORECASTING
    assert spec.length == stride * 8 + 1 and spec.count(spec.frames(5)) == 5
    found = spec.stack(FIELDS)
    for start in spec.starts(40):
        context, targets = spec.cut(FIELDS, start)
        seen = usual.cut(FIELDS[start % stride :: stride], start // stride)
        assert (context == seen.context).all() and (targets == seen.targets).all()
        assert (found.context[start] == context).all() and (found.targets[start] == targets).all()
        assert [spec.at(start, h) for h in range(6)] == [context[-1, 0, 0, 0], *targets[:, 0, 0, 0]]
    assert targets[-1, 0, 0, 0] == 39
    with pytest.raises(DataError, match=f"window of 4 \\+ 5 frames, every {stride}"):
        spec.count(8 * stride)


def test_the_middle_window_and_evenly_spaced_ones() -> None:
    assert FORECASTING.middle(FIELDS).context[0, 0, 0, 0] == 16
    assert FORECASTING.middle(FIELDS[:9]).targets[-1, 0, 0, 0] == 8
    assert FORECASTING.spread(40, 4).tolist() == [0, 10, 20, 31]


def test_the_largest_stride_leaves_what_is_needed_and_no_larger_one_does():
    for frames in range(1, 40):
        for needed in range(2, 12):
            stride = largest_stride(frames, needed)
            assert len(range(0, frames, stride)) >= min(needed, frames)
            assert len(range(0, frames, stride + 1)) < needed
    assert largest_stride(5, 1) >= 1  # any leaves one
