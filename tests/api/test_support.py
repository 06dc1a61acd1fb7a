"""What is adapted to and calibrated on, as it is read and checked."""

import warnings

import numpy as np
import pytest

from rdjepa.api.support import read_support, rehearsed_fields
from rdjepa.errors import DataError


def fields(frames=30, seed=0, side=8):
    return np.random.default_rng(seed).standard_normal((frames, side, side, 2)).astype(np.float32)


def test_what_is_left_to_adapt_to_has_to_vary_and_to_move():
    late, still = fields(), fields()
    late[:18, ..., 1], still[:18] = 0, still[0]
    whole = r"in all frames that are left where a share of 0\.4 is held out; "
    with pytest.raises(DataError, match="got component 1 between 0 and 0 " + whole):
        read_support(late, None, hold_out=0.4)
    with pytest.raises(DataError, match="frames that change, got the same " + whole):
        read_support(still, None, hold_out=0.4)
    assert [len(each) for each in read_support(late[::-1], None, hold_out=0.4).fields] == [18]


def test_what_is_rehearsed_is_standardized():
    with pytest.warns(
        UserWarning, match=r"standardized trajectories to rehearse, got means of 50, 50 and .* of 1, 0\.995; "
    ):
        rehearsed_fields([50 + fields()], (8, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rehearsed_fields([fields(), 0.01 * fields(seed=1)], (8, 8))
        rehearsed_fields([], (8, 8))
