"""A forecast by the reaction-diffusion equation that a context obeys: fitted to its four frames, then integrated.

    dx_c/dt = sum_i k[c, i] m_i(x) + D[c] Laplacian x_c

m_i are all monomials of the components up to third order, D is not negative, and time is in frame intervals, length in
grid spacings. All coefficients are those of one context, fitted by least squares to the steps of all its points; the
rows of the support, if there is one, count a millionth as much, which decides what the context leaves open, such as the
kinetics of states that none of its points has been in.

Rates are never differenced in time. A first fit compares steps with integrals of the terms over the frames (Schaeffer
and McCalla, Physical Review E 96, 2017); then the equation is integrated from every frame to the next, and what is
missing there is fitted by the integrals of the terms along the way, a Gauss-Newton step that leaves out how the way
itself changes: so what happens between frames is not lost. The library is that of sparse regression (Brunton, Proctor
and Kutz, PNAS 113, 2016), without a threshold: a forecast needs no few terms.

It knows what no network here does: that the law is local, autonomous, the same everywhere, and close to a cubic. Where
that holds and values are precise it is hard to beat. Noise makes it many times worse, and so do fronts that are
narrower than the grid and pass several points between frames. Not part of the paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.autoregression import solved
from rdjepa.forecasters.base import HORIZONS, ForecastModel

ORDER = 3
WEIGHT = 1e-6  # of the support's rows, of those of the context
RIDGE = 1e-9  # of scaled coefficients: the terms of a nearly uniform field are alike
CORRECTIONS = 3
STEPS = 4  # of the integration from a frame to the next; even, for Simpson's rule
MARGIN = 0.1  # of the range of a component in support and context, on either side of it
TOGETHER = 8  # steps of the support in memory, more than one


class Fitted(NamedTuple):
    """What the equations of some contexts make of them, float64.

    Attributes:
        forecast: (B, 5, C, H, W), integrated from the newest frame.
        missed: (B, C, H, W), the newest frame less what is integrated from the oldest.
    """

    forecast: Tensor
    missed: Tensor


class Equation(ForecastModel):
    """The forecast by the equation of each context, in standardized units.

    Args:
        components: field components C.
        walls: whether fields are mirrored at the borders instead of continued periodically.

    Attributes:
        gram: (C, n, n) mean products of the terms of the support, 0 without one; the last term is the Laplacian.
        cross: (C, n) mean products of terms and steps.
        low, high: (C,) range of the support.
    """

    grid = None
    name = "equation"
    gram: Tensor
    cross: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, components: int = 2, walls: bool = False) -> None:
        super().__init__()
        self.components, self.walls = components, walls
        count = len(monomials_of(components)) + 1
        self.register_buffer("gram", torch.zeros(components, count, count, dtype=torch.float64))
        self.register_buffer("cross", torch.zeros(components, count, dtype=torch.float64))
        self.register_buffer("low", torch.full((components,), torch.inf))
        self.register_buffer("high", torch.full((components,), -torch.inf))

    @classmethod
    def fit(cls, support: Sequence[Tensor], walls: bool = False) -> Self:
        """Keep what all steps of standardized trajectories (T, C, H, W) say of the terms.

        Raises:
            ArgumentError: no trajectories, or one of fewer than three frames.
        """
        shortest = min((len(fields) for fields in support), default=0)
        if shortest < 3:
            raise ArgumentError(f"expected trajectories of at least 3 frames, got {shortest}; give longer")
        model = cls(support[0].shape[1], walls).to(support[0].device)
        model.low = torch.stack([fields.amin((0, 2, 3)) for fields in support]).amin(0)
        model.high = torch.stack([fields.amax((0, 2, 3)) for fields in support]).amax(0)
        bounds = model._bounds(model.low[None, :, None, None], model.high[None, :, None, None])
        # each begins with the last frame of the one before, so that no step is lost
        stretches = [
            fields[None, start : start + TOGETHER + 1].double()
            for fields in support
            for start in range(0, len(fields) - 1, TOGETHER)
        ]
        model.gram, model.cross = _pooled(_simpson(each, walls) for each in stretches if each.shape[1] > 2)
        for _ in range(CORRECTIONS):
            weights = model._solution(model.gram[None], model.cross[None])
            model.gram, model.cross = _pooled(_steps(each, weights, bounds, walls) for each in stretches)
        return model

    @classmethod
    def from_preset(cls, preset: Any) -> Self:
        """Build it without a support; the preset has no influence."""
        return cls()

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build it without a support from what `settings` returned."""
        return cls(**settings)

    def settings(self) -> dict[str, Any]:
        """Return the number of components, and whether there are walls."""
        return {"components": self.components, "walls": self.walls}

    def parameter_groups(self) -> list[dict]:
        """Return no group: adaptation trains nothing."""
        return []

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W) from context (B, 4, C, H, W), in float64 within."""
        (context,) = features
        return self.fitted(context).forecast.to(context.dtype)

    def coefficients(self, context: Float[Tensor, "B T C H W"]) -> Float[Tensor, "B C n"]:
        """Return the coefficients of the terms in each context: monomials as `monomials_of` has them, then D."""
        return self._fit(context.double())[0]

    def fitted(self, context: Float[Tensor, "B T C H W"]) -> Fitted:
        """Fit the equation of every context, T at least 3; integrate its newest frame, and its oldest up to there."""
        frames = context.double()
        weights, bounds = self._fit(frames)
        advance = _Advance(weights, bounds, frames.shape[-2:], self.walls)
        ahead, again = ([frames[:, start]] for start in (-1, 0))
        for states, intervals in ((ahead, HORIZONS), (again, frames.shape[1] - 1)):
            for _ in range(intervals):
                state = states[-1]
                for _ in range(STEPS):
                    state = advance(state)
                states.append(state)
        return Fitted(torch.stack(ahead[1:], dim=1), frames[:, -1] - again[-1])

    def _fit(self, frames: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return coefficients (B, C, n) and bounds (B, C, 1, 1) of the states."""
        bounds = self._bounds(
            torch.minimum(frames.amin((1, 3, 4)), self.low)[..., None, None],
            torch.maximum(frames.amax((1, 3, 4)), self.high)[..., None, None],
        )
        behind, steps = WEIGHT * self.gram.double(), WEIGHT * self.cross.double()  # of the support
        gram, cross = _moments(*_simpson(frames, self.walls))
        weights = self._solution(gram + behind, cross + steps)
        for _ in range(CORRECTIONS):
            columns, missing = _missing(frames, weights, bounds, self.walls)
            gram, cross = _moments(columns, missing)
            change = self._solution(gram + behind, cross + steps - (behind @ weights[..., None])[..., 0])
            weights = weights + change
        return weights, bounds

    @staticmethod
    def _solution(gram: Tensor, cross: Tensor) -> Tensor:
        """Solve (..., n, n) for (..., n), with a ridge on coefficients of terms of unit size."""
        size = gram.diagonal(dim1=-2, dim2=-1).clamp(min=1e-12).sqrt()
        unit = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        scaled = gram / size[..., None] / size[..., None, :] + RIDGE * unit
        found = solved(scaled.flatten(0, -3), (cross / size).flatten(0, -2)[..., None])
        return found[..., 0].view_as(cross) / size

    @staticmethod
    def _bounds(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Return the range, widened."""
        room = MARGIN * (high - low)
        return low - room, high + room


class _Advance:
    """A step of 1 / STEPS of a frame interval: half of the diffusion, the kinetics, the other half (Strang)."""

    def __init__(self, weights: Tensor, bounds: tuple[Tensor, Tensor], shape: Sequence[int], walls: bool) -> None:
        self.kinetics, self.bounds = weights[..., :-1], bounds
        time = weights[..., -1].clamp(min=0)[..., None] / (2 * STEPS)  # (B, C, 1)
        self.rows, self.columns = (_diffusion(time, size, walls) for size in shape)

    def rates(self, state: Tensor) -> Tensor:
        """Return the kinetics of states (B, C, H, W), at the nearest states within the bounds."""
        return torch.einsum("bcn,bnhw->bchw", self.kinetics, _monomials(self.inside(state)))

    def inside(self, state: Tensor) -> Tensor:
        """Return the nearest states within the bounds."""
        return torch.minimum(torch.maximum(state, self.bounds[0]), self.bounds[1])

    def __call__(self, state: Tensor) -> Tensor:
        """Advance states (B, C, H, W); the kinetics by the fourth-order Runge-Kutta method."""
        h = 1 / STEPS
        x = self.rows @ state @ self.columns
        a = self.rates(x)
        b = self.rates(x + h / 2 * a)
        c = self.rates(x + h / 2 * b)
        d = self.rates(x + h * c)
        return self.inside(self.rows @ (x + h / 6 * (a + 2 * b + 2 * c + d)) @ self.columns)


@cache
def monomials_of(components: int) -> tuple[tuple[int, ...], ...]:
    """Return the monomials up to third order, each as the components that are multiplied; () is the constant."""
    return tuple(each for order in range(ORDER + 1) for each in combinations_with_replacement(range(components), order))


def _monomials(fields: Float[Tensor, "B C H W"]) -> Float[Tensor, "B n-1 H W"]:
    """Return the values of the monomials; each is one of lower order times a component."""
    known: dict[tuple[int, ...], Tensor] = {(): torch.ones_like(fields[:, 0])}
    for each in monomials_of(fields.shape[1])[1:]:
        known[each] = known[each[:-1]] * fields[:, each[-1]]
    return torch.stack(list(known.values()), dim=1)


def _terms(fields: Float[Tensor, "B C H W"], walls: bool) -> Float[Tensor, "B C n H W"]:
    """Return the terms of each component: the monomials, and its own Laplacian, periodic or mirrored at walls."""
    x = F.pad(fields, (1, 1, 1, 1), mode="replicate" if walls else "circular")
    around = x[..., :-2, 1:-1] + x[..., 2:, 1:-1] + x[..., 1:-1, :-2] + x[..., 1:-1, 2:]
    shared = _monomials(fields)[:, None].expand(-1, fields.shape[1], -1, -1, -1)
    return torch.cat([shared, (around - 4 * fields)[:, :, None]], dim=2)


def _simpson(frames: Float[Tensor, "B T C H W"], walls: bool) -> tuple[Tensor, Tensor]:
    """Return terms (B, C, n, p) and steps (B, C, p), means over two intervals, by Simpson's rule on the frames."""
    terms = _terms(frames.flatten(0, 1), walls).unflatten(0, frames.shape[:2])
    columns = (terms[:, :-2] + 4 * terms[:, 1:-1] + terms[:, 2:]) / 6
    steps = (frames[:, 2:] - frames[:, :-2]) / 2
    return columns.movedim(1, 3).flatten(3), steps.transpose(1, 2).flatten(2)


def _missing(
    frames: Float[Tensor, "B T C H W"], weights: Tensor, bounds: tuple[Tensor, Tensor], walls: bool
) -> tuple[Tensor, Tensor]:
    """Integrate every frame but the last to the next one.

    Returns:
        The integrals of the terms along the way (B, C, n, p), by Simpson's rule, and what is missing (B, C, p) at its
        end.
    """
    batch, count = frames.shape[0], frames.shape[1] - 1
    each = [x.expand(batch, *x.shape[1:]).repeat_interleave(count, 0) for x in (weights, *bounds)]
    advance = _Advance(each[0], (each[1], each[2]), frames.shape[-2:], walls)
    state = frames[:, :-1].flatten(0, 1)
    columns = _terms(state, walls)
    for step in range(1, STEPS + 1):
        state = advance(state)
        columns = columns + (1 if step == STEPS else 4 if step % 2 else 2) * _terms(state, walls)
    missing = frames[:, 1:] - state.unflatten(0, (batch, count))
    columns = columns.unflatten(0, (batch, count)) / (3 * STEPS)
    return columns.movedim(1, 3).flatten(3), missing.transpose(1, 2).flatten(2)


def _steps(
    frames: Float[Tensor, "B T C H W"], weights: Tensor, bounds: tuple[Tensor, Tensor], walls: bool
) -> tuple[Tensor, Tensor]:
    """Return integrals of the terms along the way (B, C, n, p), and the steps (B, C, p) that they are to make up."""
    columns, missing = _missing(frames, weights, bounds, walls)
    return columns, missing + torch.einsum("bcnp,bcn->bcp", columns, weights)


def _moments(columns: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean products of terms (B, C, n, n), and of terms and steps (B, C, n)."""
    points = columns.shape[-1]
    return columns @ columns.transpose(2, 3) / points, (columns @ steps[..., None])[..., 0] / points


def _pooled(parts: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the mean products of the terms and steps of several parts, (C, n, n) and (C, n)."""
    sums, points = [], []
    for columns, steps in parts:
        points.append(columns.shape[-1])
        sums.append([points[-1] * each[0] for each in _moments(columns, steps)])
    gram, cross = (torch.stack(each).sum(0) / sum(points) for each in zip(*sums, strict=True))
    return gram, cross


def _diffusion(time: Tensor, size: int, walls: bool) -> Tensor:
    """Return exp(time L) (..., size, size) of times (..., 1), L the second difference along one side."""
    values, vectors = (x.to(time.device) for x in _second_difference(size, walls))
    return (vectors * torch.exp(time * values)[..., None, :]) @ vectors.T


@cache
def _second_difference(size: int, walls: bool) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of the second difference along one side, periodic or mirrored at walls."""
    unit = torch.eye(size, dtype=torch.float64)
    matrix = unit.roll(1, 0) + unit.roll(-1, 0) - 2 * unit
    if walls:
        matrix[0, -1] = matrix[-1, 0] = 0
        matrix[0, 0] = matrix[-1, -1] = -1
    values, vectors = torch.linalg.eigh(matrix)
    return values, vectors
