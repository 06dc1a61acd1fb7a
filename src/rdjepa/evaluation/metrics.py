"""Errors of predicted fields in physical units (S3.4).

Every metric takes a prediction and a reference of equal shape (..., H, W, C), arrays or tensors, and returns an array
(...) in float64: one value per field, over both components together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rdjepa.checks import of_class
from rdjepa.data.fields import array_of
from rdjepa.errors import ArgumentError
from rdjepa.registry import Registry

EPSILON = 1e-8
DEFAULT_METRICS = ("relative_l2", "gradient_l1")  # those of the paper's tables


def relative_l2(prediction: Any, reference: Any) -> np.ndarray:
    """Return the norm of the error divided by the norm of the reference plus 1e-8."""
    predicted, true = _pair(prediction, reference)
    return _norm(predicted - true) / (_norm(true) + EPSILON)


def gradient_l1(prediction: Any, reference: Any) -> np.ndarray:
    """Return the mean absolute error of differences between neighboring points, added over the two grid axes.

    The differences do not wrap around and are not divided by the grid spacing, whatever the boundary.
    """
    predicted, true = _pair(prediction, reference)
    error = predicted - true  # the difference of the gradients is the gradient of the error
    along_rows = np.abs(np.diff(error, axis=-2)).mean(axis=(-3, -2, -1))
    along_columns = np.abs(np.diff(error, axis=-3)).mean(axis=(-3, -2, -1))
    return np.asarray(along_rows + along_columns)


def mse(prediction: Any, reference: Any) -> np.ndarray:
    """Return the mean squared error over points and components."""
    predicted, true = _pair(prediction, reference)
    return np.asarray(np.square(predicted - true).mean(axis=(-3, -2, -1)))


def vrmse(prediction: Any, reference: Any) -> np.ndarray:
    """Return the root of the mean squared error over the spatial variance plus 1e-7, averaged over components.

    It is 1 for a prediction of each component's own spatial mean where the variance is far above 1e-7; elsewhere it
    depends on the unit of the fields. Source: the metric of The Well, whose variance is that of a sample: its values
    are smaller by 1 in 8,000 on 64 x 64 points.
    """
    predicted, true = _pair(prediction, reference)
    error = np.square(predicted - true).mean(axis=(-3, -2))
    return np.asarray(np.sqrt(error / (true.var(axis=(-3, -2)) + 1e-7)).mean(axis=-1))


@dataclass(frozen=True)
class Metric:
    """An error of predicted fields, and its names in tables.

    Attributes:
        name: name in rows and arguments.
        title: name in tables and figures.
        function: prediction and reference (..., H, W, C) to errors (...), zero for a perfect prediction.
        description: name in captions; the title by default.

    Raises:
        ArgumentError: the name is empty or no text, the title no text, or the function none.
    """

    name: str
    title: str
    function: Callable[[Any, Any], np.ndarray]
    description: str = ""

    def __post_init__(self) -> None:
        """Check the name, and set the description to the title where none is given."""
        if not of_class(self.name, str, "the name of a metric").strip():
            raise ArgumentError(f"expected a name for a metric, got {self.name!r}; give it one")
        of_class(self.title, str, f"the title of the metric {self.name}")
        of_class(self.function, Callable, f"the function of the metric {self.name}")  # type: ignore[arg-type]
        object.__setattr__(self, "description", self.description or self.title)

    def __call__(self, prediction: Any, reference: Any) -> np.ndarray:
        """Return the errors (...) of a prediction (..., H, W, C).

        Raises:
            ArgumentError: the function returned errors of another shape, or that are no finite numbers, or writes into
                fields that it may only read.
        """
        try:
            errors = self.function(prediction, reference)
        except ValueError as error:
            if "read-only" not in str(error):  # of NumPy, which has no class for it
                raise
            raise ArgumentError(
                f"expected the metric {self.name!r} to leave the fields as they are, got one that writes into them; "
                "let it make new arrays"
            ) from error
        shape = np.shape(reference)
        expected = shape[:-3]
        if np.shape(errors) != expected:
            raise ArgumentError(
                f"expected errors {expected} from the metric {self.name!r} for fields {tuple(shape)}, got "
                f"{np.shape(errors)}; reduce the last three axes (H, W, C) alone"
            )
        found = np.asarray(array_of(errors))
        if found.dtype.kind not in "biuf" or not np.isfinite(found).all():
            kind = "NaN or infinity" if found.dtype.kind == "f" else f"values of type {found.dtype}"
            raise ArgumentError(
                f"expected finite real errors from the metric {self.name!r}, got {kind}; correct its function"
            )
        return found


_REGISTERED = Registry(Metric, "a metric", "rdjepa.metrics.register")
METRICS = _REGISTERED.entries


def register(metric: Metric) -> Metric:
    """Register a metric under its name for the rest of this process, and return it; studies then record it.

    Raises:
        ArgumentError: the name is taken, or has a slash or a comma.
    """
    return _REGISTERED.add(metric)


register(Metric("relative_l2", "Relative L²", relative_l2))
register(Metric("gradient_l1", "Gradient L¹", gradient_l1))
register(Metric("mse", "MSE", mse, "mean squared error"))
register(Metric("vrmse", "VRMSE", vrmse, "the VRMSE of The Well"))


def _pair(prediction: Any, reference: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 arrays; raise an `ArgumentError` unless their shapes are equal (..., H, W, C)."""
    predicted, true = _array(prediction), _array(reference)
    if predicted.shape != true.shape or true.ndim < 3 or min(true.shape[-3:-1]) < 2:
        raise ArgumentError(
            f"expected a prediction and a reference of equal shape (..., H, W, C), got {predicted.shape} and "
            f"{true.shape}; give fields on the same grid of at least 2 x 2"
        )
    return predicted, true


def _array(x: Any) -> np.ndarray:
    """Return an array or tensor as a float64 array; refuse what that would make other numbers of."""
    given = array_of(x)
    found = np.asarray(given)
    if found.dtype.kind not in "biuf" or np.ma.is_masked(given):
        kind = "masked ones" if np.ma.is_masked(given) else f"values of type {found.dtype}"
        raise ArgumentError(f"expected fields with a real number at every point, got {kind}; give real fields, whole")
    return found.astype(np.float64, copy=False)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(x).sum(axis=(-3, -2, -1)))
