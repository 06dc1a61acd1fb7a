from typing import Any

import numpy as np
import pytest
import torch

from rdjepa.errors import ArgumentError
from rdjepa.evaluation.metrics import METRICS, Metric, gradient_l1, mse, relative_l2, vrmse

RNG = np.random.default_rng(0)
REFERENCE = RNG.normal(1.0, 2.0, size=(3, 5, 6, 8, 2))
PREDICTION = REFERENCE + RNG.normal(size=REFERENCE.shape)


@pytest.mark.parametrize("name", METRICS)
def test_a_perfect_prediction_has_no_error(name: str) -> None:
    assert np.array_equal(METRICS[name](REFERENCE, REFERENCE), np.zeros((3, 5)))


@pytest.mark.parametrize("name", METRICS)
def test_each_field_is_measured_alone(name: str) -> None:
    errors = METRICS[name](PREDICTION, REFERENCE)
    assert errors.shape == (3, 5) and errors.dtype == np.float64 and (errors > 0).all()
    assert errors[1, 2] == pytest.approx(float(METRICS[name](PREDICTION[1, 2], REFERENCE[1, 2])), rel=1e-14)


@pytest.mark.parametrize("name", METRICS)
def test_grid_axes_and_components_are_equal(name: str) -> None:
    """Exchanging x and y, or u and v, or mirroring, changes nothing."""
    errors = METRICS[name](PREDICTION, REFERENCE)
    for change in (lambda x: x.swapaxes(-2, -3), lambda x: x[..., ::-1], lambda x: x[..., ::-1, :, :]):
        np.testing.assert_allclose(METRICS[name](change(PREDICTION), change(REFERENCE)), errors, rtol=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_tensors_are_taken_as_they_are(name: str) -> None:
    tensors = torch.tensor(PREDICTION, requires_grad=True), torch.tensor(REFERENCE)
    np.testing.assert_array_equal(METRICS[name](*tensors), METRICS[name](PREDICTION, REFERENCE))
    half = torch.tensor(REFERENCE, dtype=torch.bfloat16)
    assert METRICS[name](half, half).max() == 0


@pytest.mark.parametrize(("name", "power"), [("relative_l2", 0), ("gradient_l1", 1), ("mse", 2), ("vrmse", 0)])
def test_a_change_of_units(name: str, power: int) -> None:
    scaled = METRICS[name](7 * PREDICTION, 7 * REFERENCE)
    np.testing.assert_allclose(scaled, 7.0**power * METRICS[name](PREDICTION, REFERENCE), rtol=1e-6)


@pytest.mark.parametrize(("name", "power"), [("relative_l2", 1), ("gradient_l1", 1), ("mse", 2), ("vrmse", 1)])
def test_a_larger_error(name: str, power: int) -> None:
    larger = METRICS[name](REFERENCE + 3 * (PREDICTION - REFERENCE), REFERENCE)
    np.testing.assert_allclose(larger, 3.0**power * METRICS[name](PREDICTION, REFERENCE), rtol=1e-12)


def test_predicting_nothing_is_a_relative_error_of_one() -> None:
    np.testing.assert_allclose(relative_l2(np.zeros_like(REFERENCE), REFERENCE), 1, rtol=1e-8)


def test_a_reference_of_zero_is_divided_by_epsilon() -> None:
    zero = np.zeros((2, 2, 2))
    assert relative_l2(zero, zero) == 0
    assert relative_l2(zero + 1, zero) == pytest.approx(np.sqrt(8) / 1e-8)


def test_a_constant_shift_has_no_gradient() -> None:
    np.testing.assert_allclose(gradient_l1(REFERENCE + 5, REFERENCE), 0, atol=1e-14)
    np.testing.assert_allclose(mse(REFERENCE + 5, REFERENCE), 25, rtol=1e-12)


def test_predicting_the_mean_is_a_vrmse_of_one() -> None:
    mean = np.broadcast_to(REFERENCE.mean(axis=(-3, -2), keepdims=True), REFERENCE.shape)
    np.testing.assert_allclose(vrmse(mean, REFERENCE), 1, rtol=1e-6)


def test_the_gradient_by_hand() -> None:
    # component u errs by [[0, 1, 1], [0, 3, 0]], v by nothing
    reference = np.zeros((2, 3, 2))
    prediction = reference.copy()
    prediction[..., 0] = [[0, 1, 1], [0, 3, 0]]
    along_x = (1 + 0 + 3 + 3) / 8  # four pairs in each of two components, no pair from the last column to the first
    along_y = (0 + 2 + 1) / 6
    assert gradient_l1(prediction, reference) == pytest.approx(along_x + along_y)


def test_the_gradient_does_not_wrap_around() -> None:
    """A ramp has one difference at each pair; wrapping around would add its whole height back."""
    ramp = np.broadcast_to(np.arange(8.0)[None, :, None], (8, 8, 2))
    assert gradient_l1(ramp, np.zeros_like(ramp)) == pytest.approx(1)


def test_sums_are_taken_in_double_precision() -> None:
    reference = np.full((512, 512, 2), 1000.0, dtype=np.float32)
    assert mse(reference + np.float32(0.5), reference) == 0.25
    assert relative_l2(reference + np.float32(0.5), reference) == pytest.approx(0.0005, rel=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_unequal_shapes_are_refused(name: str) -> None:
    """Those that would broadcast, too: fewer samples, one component, no horizons."""
    for prediction in (REFERENCE[:1], REFERENCE[..., :1], REFERENCE[0]):
        with pytest.raises(ValueError, match="expected a prediction and a reference of equal shape"):
            METRICS[name](prediction, REFERENCE)
    with pytest.raises(ValueError, match="at least 2 x 2"):
        METRICS[name](np.zeros((1, 4, 2)), np.zeros((1, 4, 2)))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda x: x + 1j, "type complex128"),
        (lambda x: np.ma.masked_greater(x, 0), "masked ones"),
        (lambda x: x.astype(str), "type <U"),
    ],
)
def test_fields_that_would_become_other_numbers_are_refused(name: str, change: Any, got: str) -> None:
    for pair in ((change(REFERENCE), REFERENCE), (REFERENCE, change(REFERENCE))):
        with pytest.raises(ArgumentError, match=f"expected fields with a real number at every point, got .*{got}"):
            METRICS[name](*pair)
    whole = np.ma.masked_array(REFERENCE, mask=False)  # nothing is masked
    assert METRICS[name](whole, REFERENCE).max() == 0


@pytest.mark.parametrize(
    "function", [lambda p, t: float(np.abs(p - t).max()), lambda p, t: np.abs(p - t).mean(axis=-1)]
)
def test_errors_of_a_wrong_shape_are_refused_with_the_name_of_the_metric(function) -> None:
    fields = np.zeros((4, 5, 8, 8, 2))
    with pytest.raises(ValueError, match=r"expected errors \(4, 5\) from the metric 'mine' .*, got \(.*\); reduce"):
        Metric("mine", "Mine", function)(fields, fields)


@pytest.mark.parametrize(
    ("value", "got"), [(np.nan, "NaN or infinity"), (np.inf, "NaN or infinity"), (1j, "complex128"), ("a", "<U1")]
)
def test_errors_that_are_no_finite_numbers_are_refused_with_the_name_of_the_metric(value, got) -> None:
    fields = np.zeros((4, 5, 8, 8, 2))
    metric = Metric("mine", "Mine", lambda p, t: np.full(p.shape[:-3], value))
    with pytest.raises(ArgumentError, match=f"expected finite real errors from the metric 'mine', got .*{got}; "):
        metric(fields, fields)


def test_errors_may_be_tensors_with_a_gradient() -> None:
    def mine(p: Any, t: Any) -> Any:
        return torch.tensor(np.abs(p - t), requires_grad=True).mean((-3, -2, -1))

    metric = Metric("mine", "Mine", mine)
    assert metric(np.ones((4, 5, 8, 8, 2)), np.zeros((4, 5, 8, 8, 2))).tolist() == np.ones((4, 5)).tolist()


@pytest.mark.parametrize("name", ["", "  ", 3, None, ["a"]])
def test_a_metric_without_a_name_is_refused(name) -> None:
    with pytest.raises(ArgumentError, match=r"expected (a name for a metric|the name of a metric to be a str), got "):
        Metric(name, "Mine", relative_l2)


def test_a_metric_takes_what_its_function_takes():
    fields = np.arange(12.0).reshape(3, 2, 2)
    assert METRICS["mse"](fields.tolist(), (fields + 2).tolist()) == 4
