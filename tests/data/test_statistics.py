import json

import numpy as np
import pytest
import torch

from rdjepa.data.fields import channels_first
from rdjepa.data.statistics import Normalizer
from rdjepa.errors import DataError

RNG = np.random.default_rng(0)
PARTS = [RNG.normal((3.0, -50.0), (0.2, 7.0), size=(n, 5, 6, 2)).astype(np.float32) for n in (4, 9, 1)]
NORMALIZER = Normalizer.fit(PARTS)


def test_the_stream_gives_the_statistics_of_everything_at_once() -> None:
    everything = np.concatenate([part.reshape(-1, 2) for part in PARTS]).astype(np.float64)
    np.testing.assert_allclose(NORMALIZER.mean, everything.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(NORMALIZER.std, everything.std(axis=0), rtol=1e-12)


def test_a_large_offset_does_not_cancel() -> None:
    base = RNG.normal(size=(2, 100, 2))
    std = Normalizer.fit(base + 1e6).std
    np.testing.assert_allclose(std, base.reshape(-1, 2).std(axis=0), rtol=1e-6)


def test_standardized_fields_have_mean_zero_and_deviation_one() -> None:
    x = np.concatenate([NORMALIZER.standardize(part.astype(np.float64)).reshape(-1, 2) for part in PARTS])
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(axis=0), 1, rtol=1e-12)


def test_restore_inverts_and_keeps_the_dtype() -> None:
    x = NORMALIZER.standardize(PARTS[0])
    assert x.dtype == np.float32
    np.testing.assert_allclose(NORMALIZER.restore(x), PARTS[0], rtol=1e-6)


def test_tensors_and_channels_first_agree_with_arrays() -> None:
    expected = channels_first(NORMALIZER.standardize(PARTS[1]))
    tensor = torch.from_numpy(channels_first(PARTS[1]))
    x = NORMALIZER.standardize(tensor, axis=-3)
    assert isinstance(x, torch.Tensor) and x.dtype == torch.float32
    np.testing.assert_array_equal(x.numpy(), expected)
    torch.testing.assert_close(NORMALIZER.restore(x, axis=-3), tensor)


def test_a_constant_component_is_not_divided_by_zero() -> None:
    flat = Normalizer.fit([np.full((3, 4, 4, 2), 2.0)])
    assert flat.std == (0.0, 0.0) and flat.scale == (1e-6, 1e-6)
    assert np.array_equal(flat.standardize(np.full((4, 4, 2), 2.0)), np.zeros((4, 4, 2)))


def test_it_survives_json() -> None:
    support = Normalizer.fit(PARTS, source="support")
    assert Normalizer.from_dict(json.loads(json.dumps(support.to_dict()))) == support
    assert support.source == "support" and support != NORMALIZER


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="at least one array"):
        Normalizer.fit([])
    with pytest.raises(DataError, match="expected finite"):
        Normalizer.fit([np.full((2, 2), np.nan)])
    with pytest.raises(DataError, match="expected a source among"):
        Normalizer((0.0,), (1.0,), source="test")
    with pytest.raises(DataError, match="as many means"):
        Normalizer((0.0,), (1.0, 1.0))
    with pytest.raises(DataError, match="expected 2 components on axis -3"):
        NORMALIZER.standardize(PARTS[0], axis=-3)


@pytest.mark.parametrize("arrays", ["text", [1.0], [None], [["a", "b"]], [np.zeros((0, 2))]])
def test_what_is_no_field_has_no_statistics(arrays):
    with pytest.raises(DataError, match=r"expected numbers \(\.\.\., C\)"):
        Normalizer.fit(arrays)


@pytest.mark.parametrize("of", [np.asarray, torch.as_tensor])
def test_whole_numbers_are_standardized_as_real_ones(of) -> None:
    normalizer, whole = Normalizer((0.5,), (2.0,)), np.arange(4)[:, None]
    np.testing.assert_allclose(normalizer.standardize(of(whole)), (whole - 0.5) / 2)
