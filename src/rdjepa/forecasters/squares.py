"""What a cubic equation misses of frames, as squares near its coefficients, with derivatives integrated along the way.

Coefficients, states and units are those of `rdjepa.forecasters.cubic`.
"""

from collections.abc import Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.forecasters import compiled
from rdjepa.forecasters.cubic import (
    Advance,
    after_stages,
    along_columns,
    along_rows,
    means,
    monomials_of,
    products,
    refinement,
    second_difference,
    spread,
)
from rdjepa.forecasters.domain import Domain
from rdjepa.models.compiling import once

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


class Terms(NamedTuple):
    """Means of the terms of states.

    Attributes:
        shared: (B, n - 1, H, W), of the monomials.
        own: (B, C, H, W), of each component's Laplacian.
    """

    shared: Tensor
    own: Tensor


def squares(
    frames: Float[Tensor, "B T C H W"],
    weights: Float[Tensor, "B C n"],
    bounds: tuple[Tensor, Tensor],
    domain: Domain,
    through: bool = False,
) -> Squares:
    """Return the mean square of what is missed when every frame but the last is integrated to the next, in parts.

    Every interval between frames and every band of rows is a part of it, P = (T - 1) BANDS. No polynomial knows how
    steep a front is within a cell, but the equation does: so but for the first, an interval begins from the state in
    which the one before has ended, corrected to the frame (a sequential assimilation of data; Daley, Atmospheric Data
    Analysis, 1991).

    The derivatives of where an interval ends are integrated beside it. They only lead the way to better coefficients,
    so they are of single precision, and what the terms add on the way is summed by the trapezoidal rule. Either they
    are those of all points and go on through the states where intervals begin, or they are those of means over cells,
    and these states are taken as they are: that takes half of the time, and is enough near the least.
    """
    batch = frames.shape[0]
    weights, low, high = (x.expand(batch, *x.shape[1:]) for x in (weights, *bounds))
    advance = Advance(weights, (low, high), frames.shape[-2:], domain)
    derivatives = Derivatives(advance, domain, 1 if through else domain.finer)
    state, moved, parts = advance.refined(frames[:, 0]), None, []
    for before, frame in pairwise(frames.unbind(1)):
        state, moved = derivatives.interval(advance.corrected(state, before), derivatives.corrected(moved))
        parts.append(_in_bands(frame - advance.means(state), derivatives.means(moved)))
    intervals = frames.shape[1] - 1
    return Squares(*(torch.cat(x, dim=1) / intervals for x in zip(*parts, strict=True)))


class Derivatives:
    """Derivatives by the coefficients, (B, C, Y, C, n, X): of states, or of means over so many points along each side.

    Nothing is left of those of means over cells when the means are corrected.
    """

    def __init__(self, advance: Advance, domain: Domain, over: int) -> None:
        self.advance, self.domain, self.over = advance, domain, over
        self.rest = domain.finer // over  # points for each cell, along each side
        self.shape = [each.shape[0] // over for each in advance.cells]
        device = advance.kinetics.device
        cells = [refinement(size, over, domain.walls, device) for size in self.shape]
        self.half, self.whole = (
            [_of_means(*each) for each in zip(of, cells, strict=True)] for of in (advance.half, advance.whole)
        )
        rows, columns = (refinement(size // self.rest, self.rest, domain.walls, device).float() for size in self.shape)
        self.cells = rows, columns.T

    def means(self, moved: Tensor) -> Float[Tensor, "B C H C n W"]:
        """Return those of means over cells."""
        rows = along_rows(moved.flatten(3), self.rest).unflatten(3, moved.shape[3:])
        return along_columns(rows, self.rest)

    def corrected(self, moved: Tensor | None) -> Tensor | None:
        """Return those of states that have been corrected to a frame, None where nothing is left of them."""
        return None if moved is None or self.rest == 1 else moved - _spread(self.means(moved), self.cells)

    def interval(self, state: Tensor, moved: Tensor | None) -> tuple[Tensor, Tensor]:
        """Advance states and derivatives, None where there are none, to the next frame."""
        state = spread(state, self.advance.half)
        moved = self._none() if moved is None else _spread(moved, self.half)
        for step in range(self.advance.steps):
            if step:
                state, moved = spread(state, self.advance.whole), _spread(moved, self.whole)
            before = self._terms(state)
            state = self.advance.react(state)
            moved = self._turned(moved, before, self._terms(state))
        return spread(state, self.advance.half), _spread(moved, self.half)

    def _none(self) -> Tensor:
        """Return those of states that do not depend on the coefficients."""
        kinetics, (rows, columns) = self.advance.kinetics, self.shape
        (batch, components), count = kinetics.shape[:2], kinetics.shape[2] + 1
        size = batch, components, rows, components, count, columns
        return torch.zeros(size, dtype=torch.float32, device=kinetics.device)

    def _turned(self, moved: Tensor, before: Terms, after: Terms) -> Tensor:
        """Return derivatives after the kinetics of a step, with what the terms give them; in place."""
        by = self.turn(before.shared, after.shared).to(moved.dtype)
        share = 1 / (2 * self.advance.steps)
        if compiled.takes(self.advance.kinetics, moved, by):
            return compiled.turn(moved, by, *before, *after, share=share)
        return _with_terms(_multiplied(_with_terms(moved, before, share), by), after, share)

    def _terms(self, state: Tensor) -> Terms:
        """Return the means of the terms of states."""
        finer, over, walls = self.domain.finer, self.over, self.domain.walls
        sides = [*zip(state.shape[-2:], self.domain.spacing, strict=True)]
        if compiled.takes(self.advance.kinetics, state):
            near = [_neighbors(size // finer, finer, walls) for size, _ in sides]
            return Terms(*compiled.terms(state, over, near, [(distance / finer) ** 2 for _, distance in sides]))
        along, across = (
            _mean_second_difference(size // finer, finer, over, walls, distance, state.device)
            for size, distance in sides
        )
        own = along @ along_columns(state, over) + along_rows(state, over) @ across.T
        return Terms(torch.stack([means(each, over) for each in products(state)], 1), own)

    def turn(self, before: Tensor, after: Tensor) -> Float[Tensor, "B C C H W"]:
        """Return how a change of the means before the kinetics of a step goes on until after them.

        Given are the means of the monomials, (B, n - 1, H, W); between both, the derivatives of the kinetics are taken
        to change evenly.
        """
        advance = self.advance
        if compiled.takes(advance.kinetics, before, after):
            return compiled.turns(before, after, advance.polynomials, 1 / advance.steps)
        slopes, unit = self._slopes
        first, last = (
            (slopes @ each.flatten(2)).view(-1, *unit.shape[:2], *each.shape[2:]) for each in (before, after)
        )
        found, middle = [first], (first + last) / 2
        for share, each in zip((0.5, 0.5, 1), (middle, middle, last), strict=True):
            found.append(_product(each, torch.add(unit, found[-1], alpha=share / advance.steps)))
        return after_stages(unit, found)

    @cached_property
    def _slopes(self) -> tuple[Tensor, Tensor]:
        """The coefficients of the derivatives of the kinetics (B, C C, n - 1), and the unit matrix (C, C, 1, 1)."""
        kinetics, components = self.advance.kinetics, self.advance.kinetics.shape[1]
        unit = torch.eye(components, dtype=kinetics.dtype, device=kinetics.device)[..., None, None]
        return (kinetics[:, :, None, None] @ _differentiation(components, kinetics.device)).flatten(1, 3), unit


def _in_bands(missed: Float[Tensor, "B C H W"], moved: Float[Tensor, "B C H C n W"]) -> Squares:
    """Return the mean square of what is missed, a part for each band of rows, and how it changes."""
    moved, rows = moved.flatten(3, 4), missed.shape[2]
    products = moved @ moved.transpose(3, 4), (moved @ missed.float()[..., None])[..., 0], missed.square().sum(3)
    band = torch.arange(rows, device=missed.device) * BANDS // rows
    bands = (band == torch.arange(BANDS, device=missed.device)[:, None]).double() / missed[0].numel()
    gram, cross = ((bands @ x.double().sum(1).flatten(2)).unflatten(2, x.shape[3:]) for x in products[:2])
    return Squares(gram, cross, products[2].sum(1) @ bands.T)


def _of_means(diffusion: Float[Tensor, "B C Y Y"], cells: Float[Tensor, "Y H"]) -> Float[Tensor, "B C H H"]:
    """Return what a diffusion of states makes of means along one side, in single precision."""
    return along_rows(diffusion @ cells, cells.shape[0] // cells.shape[1]).float()


def _spread(moved: Float[Tensor, "B C H C n W"], by: Sequence[Tensor]) -> Tensor:
    """Return derivatives with rows and columns multiplied, as by the diffusion of their states."""
    rows, columns = by
    along = (rows @ moved.flatten(3)).unflatten(3, moved.shape[3:])
    return (along.flatten(2, 4) @ columns).unflatten(2, along.shape[2:5])


def _with_terms(moved: Float[Tensor, "B C H C n W"], terms: Terms, share: float) -> Tensor:
    """Add a share of the terms to the derivatives by their own coefficients, in place."""
    shared, own = terms.shared.transpose(1, 2).float(), terms.own.float()
    for c in range(own.shape[1]):
        moved[:, c, :, c, :-1].add_(shared, alpha=share)
        moved[:, c, :, c, -1].add_(own[:, c], alpha=share)
    return moved


def _multiplied(moved: Float[Tensor, "B C H C n W"], by: Float[Tensor, "B C C H W"]) -> Tensor:
    """Return derivatives times matrices, one at every point."""
    by = by[:, :, :, :, None, None]
    found = by[:, :, 0] * moved[:, None, 0]
    for c in range(1, moved.shape[1]):
        found = torch.addcmul(found, by[:, :, c], moved[:, None, c])
    return found


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


@cache
def _neighbors(size: int, finer: int, walls: bool) -> np.ndarray:
    """Return the places (2, Y) of the neighbors of each point along one side, in the order of states.

    The neighbor of a point at a wall is the point itself.
    """
    places = np.arange(finer * size).reshape(finer, size).T.ravel()  # of the points in the order of the side
    shifted = np.stack([np.arange(finer * size) + 1, np.arange(finer * size) - 1])
    near = shifted.clip(0, finer * size - 1) if walls else shifted % (finer * size)
    found = np.empty_like(near)
    found[:, places] = places[near]
    return found


@once
def _mean_second_difference(
    size: int, finer: int, over: int, walls: bool, distance: float, device: torch.device
) -> Float[Tensor, "H Y"]:
    """Return the means, over so many points, of the second difference of states along one side."""
    return along_rows(second_difference(size, finer, walls, distance, device)[0], over)
