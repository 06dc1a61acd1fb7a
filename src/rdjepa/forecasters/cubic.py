"""A reaction-diffusion equation with cubic kinetics, another one for each context: terms, integration, derivatives.

    dx_c/dt = sum_i k[c, i] m_i(x) + D[c] Laplacian x_c

m_i are all monomials of the components up to third order, D is not negative; time is in frame intervals, length in grid
spacings. Coefficients are (B, C, n), the last of each component D. Everything is made of plain tensor operations, which
exporters know.
"""

from collections.abc import Sequence
from functools import cache, cached_property
from itertools import combinations_with_replacement
from typing import NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.forecasters.domain import Domain
from rdjepa.models.compiling import once

ORDER = 3
STEPS = 8  # of the integration from a frame to the next
BANDS = 2  # of rows of each frame, whose squares are apart


class Squares(NamedTuple):
    """Parts of a mean square near some coefficients: value - 2 cross d + d gram d, at a distance d from them.

    Attributes:
        gram: (B, P, q, q), q = C n coefficients.
        cross: (B, P, q).
        value: (B, P).
    """

    gram: Tensor
    cross: Tensor
    value: Tensor

    def summed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return gram (B, q, q), cross (B, q) and value (B,) of all parts together."""
        gram, cross, value = (each.sum(1) for each in self)
        return gram, cross, value

    def weighted(self, weight: Tensor) -> Self:
        """Return the same parts, the last of them times a weight (B,)."""
        return type(self)(
            *(torch.cat([x[:, :-1], weight.view(-1, *(x.ndim - 1) * [1]) * x[:, -1:]], dim=1) for x in self)
        )


class Advance:
    """A step of 1 / STEPS of a frame interval: half of the diffusion, the kinetics, the other half (Strang)."""

    def __init__(self, weights: Tensor, bounds: tuple[Tensor, Tensor], shape: Sequence[int], domain: Domain) -> None:
        self.kinetics, self.bounds = weights[..., :-1], bounds
        time = weights[..., -1].clamp(min=0)[..., None] / (2 * STEPS)  # (B, C, 1)
        self.rows, self.columns = (
            _diffusion(time, size, domain.walls, distance).to(weights.dtype)
            for size, distance in zip(shape, domain.spacing, strict=True)
        )

    def __call__(self, state: Tensor) -> Tensor:
        """Advance states (B, C, H, W)."""
        return self.inside(self.spread(self.react(self.spread(state))[0]))

    def interval(self, state: Tensor) -> Tensor:
        """Advance states (B, C, H, W) to the next frame."""
        for _ in range(STEPS):
            state = self(state)
        return state

    def spread(self, state: Tensor) -> Tensor:
        """Return states after half of the diffusion."""
        return self.rows @ state @ self.columns

    def inside(self, state: Tensor) -> Tensor:
        """Return the nearest states within the bounds."""
        return torch.clamp(state, *self.bounds)

    def react(self, state: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return states after the kinetics of a step (Runge-Kutta, fourth order), and the monomials of its stages.

        The kinetics outside of the bounds are those of the nearest states within.
        """
        values = [monomials(self.inside(state))]
        rates = [self._kinetics(values[0])]
        for share in (0.5, 0.5, 1):
            values.append(monomials(self.inside(state + share / STEPS * rates[-1])))
            rates.append(self._kinetics(values[-1]))
        a, b, c, d = rates
        return state + (a + 2 * b + 2 * c + d) / (6 * STEPS), values

    def _kinetics(self, values: Float[Tensor, "B n-1 H W"]) -> Float[Tensor, "B C H W"]:
        return (self.kinetics @ values.flatten(2)).unflatten(2, values.shape[2:])

    def turn(self, values: Sequence[Tensor]) -> Float[Tensor, "B C C H W"]:
        """Return the derivatives of `react` by the state at which it begins, from the monomials of its stages."""
        slopes, unit = self._slopes
        of_rates = [(slopes @ value.flatten(2)).view(-1, *unit.shape[:2], *value.shape[2:]) for value in values]
        found = [of_rates[0]]
        for share, each in zip((0.5, 0.5, 1), of_rates[1:], strict=True):
            found.append(_product(each, unit + share / STEPS * found[-1]))
        a, b, c, d = found
        return unit + (a + 2 * b + 2 * c + d) / (6 * STEPS)

    @cached_property
    def _slopes(self) -> tuple[Tensor, Tensor]:
        """The coefficients of the derivatives of the kinetics (B, C C, n - 1), and the unit matrix (C, C, 1, 1)."""
        kinetics, components = self.kinetics, self.kinetics.shape[1]
        unit = torch.eye(components, dtype=kinetics.dtype, device=kinetics.device)[..., None, None]
        return (kinetics[:, :, None, None] @ _differentiation(components, kinetics.device)).flatten(1, 3), unit


def squares(
    frames: Float[Tensor, "B T C H W"], weights: Float[Tensor, "B C n"], bounds: tuple[Tensor, Tensor], domain: Domain
) -> Squares:
    """Return the mean square of what is missed when every frame but the last is integrated to the next, in parts.

    Every interval between frames and every band of rows is a part of it, P = (T - 1) BANDS. The derivatives of where it
    ends are integrated beside it. They only lead the way to better coefficients, so they are of single precision, and
    what the terms add on the way is summed by the trapezoidal rule.
    """
    (batch, length, components, *shape), count = frames.shape, weights.shape[-1]
    each = [x.expand(batch, *x.shape[1:]).repeat_interleave(length - 1, 0) for x in (weights, *bounds)]
    advance = Advance(each[0], (each[1], each[2]), shape, domain)
    half = [x.float() for x in (advance.rows, advance.columns)]
    whole = [(x @ x).float() for x in (advance.rows, advance.columns)]
    state = frames[:, :-1].flatten(0, 1)
    moved = torch.zeros(
        (state.shape[0], components, shape[0], components, count, shape[1]), dtype=torch.float32, device=frames.device
    )
    for step in range(STEPS):
        state = advance.spread(state)
        if step:  # nothing has moved before
            moved = _spread(moved, whole)
        moved = _with_terms(moved, state, domain)
        state, values = advance.react(state)
        moved = _turned(moved, advance.turn(values).float())
        moved = _with_terms(moved, state, domain)
        state = advance.inside(advance.spread(state))
    found, missed = _spread(moved, half).flatten(3, 4), frames[:, 1:].flatten(0, 1) - state
    products = found @ found.transpose(3, 4), (found @ missed.float()[..., None])[..., 0], missed.square().sum(3)
    points = (length - 1) * missed[0, 0].numel()
    band = torch.arange(shape[0], device=frames.device) * BANDS // shape[0]
    bands = (band == torch.arange(BANDS, device=frames.device)[:, None]).double() / points
    parts = [(bands @ x.double().sum(1).flatten(2)).unflatten(2, x.shape[3:]) for x in products[:2]]
    parts.append(products[2].sum(1) @ bands.T)
    return Squares(*(x.unflatten(0, (batch, length - 1)).flatten(1, 2) for x in parts))


def _spread(moved: Float[Tensor, "B C H C n W"], diffusion: Sequence[Tensor]) -> Tensor:
    """Return derivatives after the diffusion of their states."""
    rows, columns = diffusion
    along = (rows @ moved.flatten(3)).unflatten(3, moved.shape[3:])
    return (along.flatten(2, 4) @ columns).unflatten(2, moved.shape[2:5])


def _with_terms(moved: Float[Tensor, "B C H C n W"], state: Tensor, domain: Domain) -> Tensor:
    """Add what the terms of half a step give to the derivatives by their own coefficients, in place."""
    shared, own = monomials(state).transpose(1, 2).float(), _laplacian(state, domain).float()
    for c in range(state.shape[1]):
        moved[:, c, :, c, :-1].add_(shared, alpha=1 / (2 * STEPS))
        moved[:, c, :, c, -1].add_(own[:, c], alpha=1 / (2 * STEPS))
    return moved


def _turned(moved: Float[Tensor, "B C H C n W"], by: Float[Tensor, "B C C H W"]) -> Tensor:
    """Return derivatives after the kinetics of their states."""
    by = by[:, :, :, :, None, None]
    found = by[:, :, 0] * moved[:, None, 0]
    for c in range(1, moved.shape[1]):
        found = torch.addcmul(found, by[:, :, c], moved[:, None, c])
    return found


@cache
def monomials_of(components: int) -> tuple[tuple[int, ...], ...]:
    """Return the monomials up to third order, each as the components that are multiplied; () is the constant."""
    return tuple(each for order in range(ORDER + 1) for each in combinations_with_replacement(range(components), order))


def monomials(fields: Float[Tensor, "B C H W"]) -> Float[Tensor, "B n-1 H W"]:
    """Return the values of the monomials; each is one of lower order times a component."""
    found: dict[tuple[int, ...], Tensor] = {(): torch.ones_like(fields[:, 0])}
    for each in monomials_of(fields.shape[1])[1:]:
        found[each] = found[each[:-1]] * fields[:, each[-1]] if each[:-1] else fields[:, each[-1]]
    return torch.stack(list(found.values()), dim=1)


def terms(fields: Float[Tensor, "B C H W"], domain: Domain) -> Float[Tensor, "B C n H W"]:
    """Return the terms of each component: the monomials, and its own Laplacian, periodic or mirrored at walls."""
    shared = monomials(fields)[:, None].expand(-1, fields.shape[1], -1, -1, -1)
    return torch.cat([shared, _laplacian(fields, domain)[:, :, None]], dim=2)


def _laplacian(fields: Float[Tensor, "B C H W"], domain: Domain) -> Float[Tensor, "B C H W"]:
    """Return the second differences along both sides, added."""
    along, across = (
        _second_difference(size, domain.walls, distance, fields.device)[0]
        for size, distance in zip(fields.shape[-2:], domain.spacing, strict=True)
    )
    return along @ fields + fields @ across


@once
def _differentiation(components: int, device: torch.device) -> Float[Tensor, "C m m"]:
    """Return how the coefficients of a cubic become those of its derivatives by each component."""
    every = monomials_of(components)
    found = torch.zeros(components, len(every), len(every), dtype=torch.float64)
    for i, each in enumerate(every):
        for c in set(each):
            rest = list(each)
            rest.remove(c)
            found[c, i, every.index(tuple(rest))] = each.count(c)
    return found.to(device)


def _product(one: Float[Tensor, "B C C H W"], other: Float[Tensor, "B C C H W"]) -> Float[Tensor, "B C C H W"]:
    """Return the products of matrices, one at every point."""
    return (one[:, :, :, None] * other[:, None]).sum(2)


def _diffusion(time: Tensor, size: int, walls: bool, distance: float) -> Tensor:
    """Return exp(time L) (..., size, size) of times (..., 1), L the second difference along one side."""
    _, values, vectors = _second_difference(size, walls, distance, time.device)
    return (vectors * torch.exp(time * values)[..., None, :]) @ vectors.T


@once
def _second_difference(size: int, walls: bool, distance: float, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return the second difference along one side, periodic or mirrored at walls, its eigenvalues and eigenvectors.

    It is that of points at a distance from each other, in the unit of the coefficients.
    Its diffusion makes no new extremes. That of the Fourier series does, around a front as narrow as the grid, and
    kinetics that amplify them draw stripes.
    """
    unit = torch.eye(size, dtype=torch.float64)
    matrix = unit.roll(1, 0) + unit.roll(-1, 0) - 2 * unit
    if walls:
        matrix[0, -1] -= 1
        matrix[-1, 0] -= 1
        matrix[0, 0] = matrix[-1, -1] = -1
    matrix /= distance**2
    values, vectors = torch.linalg.eigh(matrix)
    return matrix.to(device), values.to(device), vectors.to(device)
