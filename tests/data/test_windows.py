import numpy as np
import pytest

from rdjepa.data.windows import FORECASTING, PRETRAINING, WindowSpec
from rdjepa.errors import DataError

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


def test_nine_frames_are_one_forecasting_window() -> None:
    assert list(FORECASTING.starts(9)) == [0]
    with pytest.raises(DataError, match="expected at least 9 frames, got 8"):
        FORECASTING.starts(8)


@pytest.mark.parametrize("start", [-1, 32])
def test_a_window_that_is_not_whole_is_refused(start: int) -> None:
    with pytest.raises(DataError, match="expected a start from 0 to 31"):
        FORECASTING.cut(FIELDS, start)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(DataError, match="at least 1"):
        WindowSpec(max_offset=0)
