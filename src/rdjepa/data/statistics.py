"""Field statistics: moments that add up, the normalizer of a system (S2.6), and the content of stats.yaml."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from rdjepa.checks import of_class
from rdjepa.errors import DataError

SMALLEST_SCALE = 1e-6
ORIGINS = ("pool", "support", "trajectory")

Array = TypeVar("Array", bound=Any)


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations per component, in float64; two of them add up.

    Attributes:
        count: number of values per component.
        mean: (C,) means.
        squares: (C,) sums of squared deviations from the mean.
    """

    count: int
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> "Moments":
        """Compute the moments of (..., C) over all axes but the last.

        Raises:
            DataError: there is no value.
        """
        if np.size(x) == 0 or np.ndim(x) == 0 or np.asarray(x).dtype.kind not in "biuf":
            raise DataError(
                f"expected numbers (..., C) to take statistics from, got {np.asarray(x).dtype} of shape {np.shape(x)}; "
                "give arrays of fields"
            )
        flat = np.asarray(x).reshape(-1, np.shape(x)[-1]).astype(np.float64)
        mean = flat.mean(axis=0)
        return cls(len(flat), mean, np.square(flat - mean).sum(axis=0))

    def __add__(self, other: "Moments") -> "Moments":
        """Return the moments of the two sets of values together (pairwise update, free of cancellation)."""
        count = self.count + other.count
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        squares = self.squares + other.squares + np.square(step) * (self.count * other.count / count)
        return Moments(count, mean, squares)

    @property
    def std(self) -> np.ndarray:
        """(C,) population standard deviations."""
        return np.sqrt(self.squares / self.count)

    @property
    def rms(self) -> np.ndarray:
        """(C,) root mean squares."""
        return np.sqrt(np.square(self.mean) + self.squares / self.count)


def fold(parts: Iterable[Moments]) -> Moments:
    """Return the moments of all parts together, added in the order given.

    Raises:
        DataError: there are none.
    """
    total: Moments | None = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        raise DataError("expected at least one array to take statistics from, got none; give some trajectories")
    return total


def summarize(arrays: Iterable[np.ndarray], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the content of The Well's stats.yaml.

    Args:
        arrays: fields (T, H, W, C) of every trajectory, taken one at a time.
        names: of the C components.

    Returns:
        "mean", "std" (population) and "rms" of the fields, and under the same names with "_delta" those of the
        differences between successive frames; component -> value, accumulated in float64.

    Raises:
        DataError: there are no arrays.
    """
    pairs = [(Moments.of(x), Moments.of(np.diff(x.astype(np.float64), axis=0))) for x in arrays]
    return {
        name + suffix: dict(zip(names, getattr(moments, name).tolist(), strict=True))
        for suffix, moments in (("", fold(of for of, _ in pairs)), ("_delta", fold(change for _, change in pairs)))
        for name in ("mean", "std", "rms")
    }


@dataclass(frozen=True)
class Normalizer:
    """The affine map between physical and standardized fields.

    x = (x_orig - mean) / max(std, 1e-6) per component. The same constants serve context frames and targets,
    and are stored with the model.

    Attributes:
        mean: one value per component, in physical units.
        std: one value per component, in physical units.
        source: which data the statistics came from: "pool" (the paper's choice), "support", or "trajectory", where
            every trajectory is of another equation.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    source: str = "pool"

    def __post_init__(self) -> None:
        """Check the values and the origin."""
        of_class(self.mean, tuple, "mean")
        of_class(self.std, tuple, "std")
        if len(self.mean) != len(self.std):
            raise DataError(
                f"expected as many means as standard deviations, got {len(self.mean)} and {len(self.std)}; "
                "give one of each per component"
            )
        values = (*self.mean, *self.std)
        if not all(isinstance(x, Real) and math.isfinite(x) for x in values) or min(self.std, default=0) < 0:
            raise DataError(
                f"expected finite means and non-negative standard deviations, got {self.mean} and {self.std}; "
                "check the fields that they were computed from"
            )
        if self.source not in ORIGINS:
            raise DataError(f"expected a source among {ORIGINS}, got {self.source!r}; name one of them")
        for name in ("mean", "std"):  # numbers of NumPy, which no file takes, as those of Python
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))

    @classmethod
    def fit(cls, arrays: Iterable[np.ndarray], source: str = "pool") -> "Normalizer":
        """Compute mean and population standard deviation over all trajectories, frames and grid points.

        Args:
            arrays: (..., C) each, taken one at a time and accumulated in float64.
            source: "pool", "support" or "trajectory".

        Raises:
            DataError: there are no arrays, or a value is not finite.
        """
        return cls.of(fold(map(Moments.of, of_class(arrays, Iterable, "arrays"))), source)

    @classmethod
    def of(cls, moments: Moments, source: str = "pool") -> "Normalizer":
        """Return the normalizer of given moments, with their population standard deviation."""
        return cls(tuple(moments.mean.tolist()), tuple(moments.std.tolist()), source)

    @property
    def scale(self) -> tuple[float, ...]:
        """max(std, 1e-6) per component, so that a constant component does not divide by zero."""
        return tuple(max(value, SMALLEST_SCALE) for value in self.std)

    def standardize(self, x: Array, axis: int = -1) -> Array:
        """Convert physical to standardized units.

        Args:
            x: array or tensor whose axis `axis` holds the components; dtype and device are kept, but that whole numbers
                become floating ones.
            axis: -1 for channels last, -3 for (..., C, H, W).
        """
        return (x - self._along(self.mean, x, axis)) / self._along(self.scale, x, axis)

    def restore(self, x: Array, axis: int = -1) -> Array:
        """Convert standardized to physical units: the inverse of `standardize`, with the same arguments."""
        return x * self._along(self.scale, x, axis) + self._along(self.mean, x, axis)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` is the inverse."""
        return {"mean": list(self.mean), "std": list(self.std), "source": self.source}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Normalizer":
        """Build from `to_dict`'s values."""
        return cls(tuple(map(float, values["mean"])), tuple(map(float, values["std"])), str(values["source"]))

    @staticmethod
    def _along(values: tuple[float, ...], x: Any, axis: int) -> Any:
        """Return `values` as an array or tensor like x that broadcasts along its axis `axis`."""
        if x.shape[axis] != len(values):
            raise DataError(
                f"expected {len(values)} components on axis {axis}, got shape {tuple(x.shape)}; "
                "give the axis that holds the components"
            )
        shape = [1] * x.ndim
        shape[axis] = len(values)
        # A tensor's own method gives its dtype and device without an import of torch.
        if hasattr(x, "new_tensor"):
            return (x if x.is_floating_point() else x.double()).new_tensor(values).reshape(shape)
        return np.asarray(values, dtype=x.dtype if x.dtype.kind == "f" else np.float64).reshape(shape)
