import warnings

import numpy as np
import pytest

from rdjepa.data.soundness import require_times, validate, why_constant, why_rounded
from rdjepa.errors import DataError

GOOD = np.random.default_rng(0).normal(size=(9, 16, 24, 2)).astype(np.float32)


def with_value(value: float) -> np.ndarray:
    fields = GOOD.copy()
    fields[3, 2, 1, 0] = value
    return fields


def test_good_fields_pass_as_they_are() -> None:
    assert validate(GOOD) is GOOD


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ">f4"])
def test_other_floating_dtypes_are_cast(dtype: str) -> None:
    fields = validate(GOOD.astype(dtype))
    assert fields.dtype == np.float32 and fields.dtype.isnative
    np.testing.assert_allclose(fields, GOOD, rtol=2e-3)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (GOOD[0], "expected fields with four axes"),
        (GOOD[None], "expected fields with four axes"),
        (GOOD.astype(int), "expected fields of a floating dtype, got int64"),
        (GOOD.astype(complex), "expected fields of a floating dtype, got complex128"),
        (GOOD > 0, "expected fields of a floating dtype, got bool"),
        (GOOD[..., :1], "expected 2 components on the last axis, got 1"),
        (np.moveaxis(GOOD, -1, 1), "expected 2 components on the last axis, got 24"),
        (GOOD[:8], "expected at least 9 frames on the first axis, got 8"),
        (GOOD[:, :1], "expected a grid of at least 2 x 2, got 1 x 24"),
        (with_value(np.nan), "expected finite fields, got 1 values"),
        (with_value(-np.inf), "expected finite fields, got 1 values"),
        (with_value(1.0).astype(np.float64) * 1e60, "expected fields within the range of float32"),
    ],
)
def test_each_unfit_input_has_its_sentence(fields: np.ndarray, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        validate(fields)
    message = str(caught.value)
    assert ", got " in message and "; " in message and "\n" not in message


@pytest.mark.parametrize("start", [0.0, 2.46e6, 1.7e9])
def test_a_hole_in_time_is_found_however_late_it_is(start: float) -> None:
    times = start + 60 * np.arange(14.0)
    require_times(times, 14)
    with pytest.raises(DataError, match="expected equally spaced times, got intervals from 60 to 600"):
        require_times(np.r_[times[:7], times[7:] + 540], 14)


def test_dates_are_no_numbers() -> None:
    with pytest.raises(DataError, match=r"real numbers, got datetime64\[D\]; give those since the first frame"):
        require_times(np.arange("2000-01-01", "2000-01-10", dtype="datetime64[D]"), 9)


def test_a_component_that_float32_makes_coarse_is_named() -> None:
    assert "subtract a constant" in why_constant("u", 1e7, 1e7 + 1) and "subtract" not in why_constant("u", 1e7, 1e7)
    assert not why_rounded("u", 1e3, 1.0) and not why_rounded("u", 0.0, 0.0)
    assert "component u varies by 0.7 in values up to 1e+06, so float32 has 6 steps" in why_rounded("u", 1e6, 0.7)


def test_times_beyond_single_precision_are_even_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_times(1e300 * np.arange(9), 9)
