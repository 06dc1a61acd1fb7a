import numpy as np
import pytest
import torch

from rdjepa.data.fields import block_means, channels_first, channels_last, measured, with_second
from rdjepa.errors import DataError

GOOD = np.random.default_rng(0).normal(size=(9, 16, 24, 2)).astype(np.float32)


def test_channels_move_and_come_back() -> None:
    first = channels_first(GOOD)
    assert first.shape == (9, 2, 16, 24) and first.flags.c_contiguous
    assert np.array_equal(first[4, 1], GOOD[4, ..., 1])
    assert np.array_equal(channels_last(first), GOOD)
    assert np.array_equal(channels_first(torch.from_numpy(GOOD)).numpy(), first)
    assert np.array_equal(channels_last(torch.from_numpy(first)).numpy(), GOOD)


def test_a_single_frame_of_two_components_has_two() -> None:
    assert measured(np.zeros((1, 4, 4, 2), np.float32)) == 2


def test_beside_one_component_stands_what_it_was_a_frame_earlier() -> None:
    both = with_second(GOOD[..., :1])
    assert both.shape == GOOD.shape and both.dtype == np.float32
    assert np.array_equal(both[..., 0], GOOD[..., 0])
    assert np.array_equal(both[1:, ..., 1], GOOD[:-1, ..., 0])
    np.testing.assert_allclose(both[0, ..., 1] + both[1, ..., 0], 2 * both[0, ..., 0], rtol=1e-5, atol=1e-5)
    with pytest.raises(DataError, match="at least 2 frames"):
        with_second(GOOD[:1, ..., :1])
    assert (measured(both), measured(GOOD), measured(both[..., ::-1])) == (1, 2, 2)


def test_block_means_of_whole_numbers_are_not_rounded() -> None:
    fields = np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1)
    assert np.array_equal(block_means(fields, 2)[0, ..., 0], [[2.5, 4.5], [10.5, 12.5]])
