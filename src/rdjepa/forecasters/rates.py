"""A regression of local rates of change on a library of terms, and the forecast that integrates them.

    du/dt = a_0 + a_1 u + a_2 v + ... + a_9 v^3 + d_u Laplacian u + d_v Laplacian v,    dv/dt likewise

All monomials up to third order and the five-point Laplacians of both components: the sparse-regression view (Brunton,
Proctor and Kutz, 2016) of the same data that a network learns from. The rates are never differenced in time: over two
frame intervals the change of a field is compared with the integral of the terms by Simpson's rule, as in Schaeffer and
McCalla (2017), which is of fourth order where a central difference is of second. Terms that contribute little are left
out one after the other. Time is in frame intervals and length in grid spacings, so no unit is needed.

Least squares of NumPy and an integrator of SciPy are all it takes; PySINDy fits such terms too, but would bring five
packages for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.persistence import persistence

ORDER = 3
POWERS = tuple(sorted(((i, j) for i, j in product(range(ORDER + 1), repeat=2) if i + j <= ORDER), key=sum))
TERMS = ("1", "v", "u", "v^2", "u v", "u^2", "v^3", "u v^2", "u^2 v", "u^3", "lap u", "lap v")
LEAST = 0.01  # root mean square of a term's contribution, of that of the change; smaller ones are left out
ROWS = 100_000  # of the regression: points and frames drawn from the support; many times the number of terms
ROOM = 0.5  # states are kept within the range of the support, widened on both sides by this share of it
TOLERANCE = 1e-3  # of the integration, of that range
EVALUATIONS = 4_000  # of the rates in five intervals; what needs more is too stiff to be a forecast
TOGETHER = 4  # windows that are integrated as one


@dataclass(frozen=True)
class Rates:
    """Fitted rates of change of two components.

    Attributes:
        weights: (terms, 2), of `TERMS` in each rate, in physical units per frame interval; 0 where left out.
        low, high: (2,) range of the support, widened.
        walls: whether fields are mirrored at the borders instead of continued periodically.
    """

    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray
    walls: bool = False

    @classmethod
    def fit(cls, support: Sequence[np.ndarray], walls: bool = False, seed: int = 0) -> "Rates":
        """Fit the rates to trajectories by least squares, leaving out what contributes little.

        Args:
            support: fields (T, H, W, 2) each, of equal frame intervals.
            walls: as the attribute.
            seed: of the draw of points.

        Raises:
            ArgumentError: no trajectories, one of fewer than three frames, or not two components.
        """
        if not support or min(len(fields) for fields in support) < 3 or any(x.shape[-1] != 2 for x in support):
            shapes = ", ".join(str(fields.shape) for fields in support) or "none"
            raise ArgumentError(f"expected trajectories (T, H, W, 2) of at least 3 frames, got {shapes}; give others")
        rng = np.random.default_rng(seed)
        share = ROWS / sum((len(fields) - 2) * fields[0, ..., 0].size for fields in support)
        parts = [_rows(fields, walls, min(share, 1.0), rng) for fields in support]
        columns, changes = (np.concatenate(each) for each in zip(*parts, strict=True))
        low = np.min([fields.min(axis=(0, 1, 2)) for fields in support], axis=0).astype(np.float64)
        high = np.max([fields.max(axis=(0, 1, 2)) for fields in support], axis=0).astype(np.float64)
        room = ROOM * (high - low)
        weights = np.stack([_sparse(columns, change) for change in changes.T], axis=-1)
        return cls(weights, low - room, high + room, walls)

    def rates(self, fields: np.ndarray) -> np.ndarray:
        """Return the rates of change of fields (..., H, W, 2), per frame interval, at the nearest states in range."""
        inside = np.clip(fields, self.low, self.high)
        found = np.zeros_like(inside)
        for number, weights in enumerate(self.weights):
            if weights.any():
                found += _term(number, inside, self.walls)[..., None] * weights
        return found

    def forecast(self, context: np.ndarray) -> np.ndarray:
        """Integrate the newest frame of contexts (B, T, H, W, 2) over five intervals; return (B, 5, H, W, 2) float32.

        States stay in the range of the attributes. Where the rates are too stiff, the newest frame is repeated.
        """
        few = range(0, len(context), TOGETHER)
        return np.concatenate([self._integrated(context[first : first + TOGETHER]) for first in few])

    def _integrated(self, context: np.ndarray) -> np.ndarray:
        from scipy.integrate import solve_ivp

        start = context[:, -1].astype(np.float64)
        count = 0

        def rates(time: float, flat: np.ndarray) -> np.ndarray:
            nonlocal count
            count += 1
            if count > EVALUATIONS:
                raise _TooStiffError
            return self.rates(flat.reshape(start.shape)).ravel()

        try:
            found = solve_ivp(
                rates,
                (0, HORIZONS),
                start.ravel(),
                method="RK23",  # its stability region is the largest for its cost, which diffusion decides
                t_eval=np.arange(1, HORIZONS + 1),
                rtol=TOLERANCE,
                atol=np.broadcast_to(TOLERANCE * (self.high - self.low), start.shape).ravel(),
            )
        except _TooStiffError:
            return persistence(context).astype(np.float32)
        if not found.success:
            return persistence(context).astype(np.float32)
        fields = np.moveaxis(found.y.reshape(*start.shape, HORIZONS), -1, 1)
        return np.clip(fields, self.low, self.high).astype(np.float32)

    def __str__(self) -> str:
        """Return the two fitted equations as text."""
        return "\n".join(
            f"d{name}/dt = " + (" ".join(f"{w:+.4g} {term}" for w, term in zip(each, TERMS, strict=True) if w) or "0")
            for name, each in zip("uv", self.weights.T, strict=True)
        )


class _TooStiffError(Exception):
    """Ends an integration that needs too many evaluations."""


def laplacian(field: np.ndarray, walls: bool = False) -> np.ndarray:
    """Return the five-point Laplacian of (..., H, W), in units of 1/spacing^2, periodic or mirrored at walls."""
    border = [(0, 0)] * (field.ndim - 2) + [(1, 1), (1, 1)]
    x = np.pad(field, border, mode="symmetric" if walls else "wrap")
    around = x[..., :-2, 1:-1] + x[..., 2:, 1:-1] + x[..., 1:-1, :-2] + x[..., 1:-1, 2:]
    return around - 4 * field


def _term(number: int, fields: np.ndarray, walls: bool) -> np.ndarray:
    """Return the values (..., H, W) of one of `TERMS` on fields (..., H, W, 2)."""
    if number >= len(POWERS):
        return laplacian(fields[..., number - len(POWERS)], walls)
    i, j = POWERS[number]
    return fields[..., 0] ** i * fields[..., 1] ** j


def _rows(fields: np.ndarray, walls: bool, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return integrals of the terms (n, terms) and changes (n, 2) over two intervals, at points drawn at random."""
    fields = fields.astype(np.float64)
    points = fields[0, ..., 0].size
    chosen = rng.choice(points, max(1, round(share * points)), replace=False)
    columns = np.empty(((len(fields) - 2) * len(chosen), len(TERMS)))
    for number in range(len(TERMS)):
        x = _term(number, fields, walls).reshape(len(fields), -1)[:, chosen]
        columns[:, number] = ((x[:-2] + 4 * x[1:-1] + x[2:]) / 3).ravel()
    change = (fields[2:] - fields[:-2]).reshape(len(fields) - 2, -1, 2)[:, chosen]
    return columns, change.reshape(-1, 2)


def _sparse(columns: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return weights (terms,) by sequentially thresholded least squares, 0 where a term contributes little."""
    size = np.sqrt(np.mean(np.square(columns), axis=0))
    scaled = columns / np.where(size > 0, size, 1.0)
    used = size > 0
    weights = np.zeros(len(size))
    bound = LEAST * np.sqrt(np.mean(np.square(change)))
    while used.any():
        weights[:] = 0
        weights[used] = np.linalg.lstsq(scaled[:, used], change)[0]
        small = used & (np.abs(weights) < bound)
        if not small.any():
            break
        used &= ~small
    else:
        weights[:] = 0
    return weights / np.where(size > 0, size, 1.0)
