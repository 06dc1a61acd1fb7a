"""A reaction-diffusion equation with cubic kinetics, another one for each context: terms, integration, derivatives.

    dx_c/dt = sum_i k[c, i] m_i(x) + D[c] Laplacian x_c

m_i are all monomials of the components up to third order, D is not negative; time is in frame intervals, length in grid
spacings. Coefficients are (B, C, n), the last of each component D. Everything is made of plain tensor operations, which
exporters know.

The values of a frame are means over cells. States are integrated on `Domain.finer` points for each cell, along each
side, on which they begin as the polynomials of fourth order that five cells in a row have the means of (Harten,
Engquist, Osher and Chakravarthy, Journal of Computational Physics 71, 1987); means over cells are what is compared, and
returned. So fronts may be hardly wider than a cell, where the mean of the kinetics is not the kinetics of the mean.
"""

from collections.abc import Sequence
from functools import cache, cached_property, reduce
from itertools import combinations_with_replacement, pairwise
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
    """Steps of 1 / STEPS of a frame interval: half of the diffusion, the kinetics, the other half (Strang).

    Between two steps both halves are one. States (B, C, Y, X) have `Domain.finer` points for each of a frame
    (B, C, H, W), along each side: first the first points of all cells, then the second ones.

    Attributes:
        half, whole: diffusion of half a step and of a whole one, each for rows and columns.
    """

    def __init__(self, weights: Tensor, bounds: tuple[Tensor, Tensor], shape: Sequence[int], domain: Domain) -> None:
        self.kinetics, self.bounds = weights[..., :-1], bounds
        time = weights[..., -1].clamp(min=0)[..., None] / (2 * STEPS)  # (B, C, 1)
        sides = [*zip(shape, domain.spacing, strict=True)]
        self.half, self.whole = (
            [_diffusion(of, size, domain.finer, domain.walls, distance).to(weights.dtype) for size, distance in sides]
            for of in (time, 2 * time)
        )
        self.finer = domain.finer
        self.cells = [_refinement(size, self.finer, domain.walls, weights.device).to(weights.dtype) for size in shape]

    def refined(self, frame: Tensor) -> Tensor:
        """Return states of which (B, C, H, W) are the means."""
        rows, columns = self.cells
        return rows @ frame @ columns.T

    def means(self, state: Tensor) -> Tensor:
        """Return the means of states over cells, (B, C, H, W)."""
        return _means(state, self.finer)

    def corrected(self, state: Tensor, frame: Tensor) -> Tensor:
        """Return states of which (B, C, H, W) are the means, within cells as much like others as may be."""
        return state + self.refined(frame - self.means(state))

    def interval(self, state: Tensor) -> Tensor:
        """Advance states to the next frame."""
        state = spread(state, self.half)
        for step in range(STEPS):
            if step:
                state = spread(state, self.whole)
            state = self.inside(self.react(state))
        return spread(state, self.half)

    def inside(self, state: Tensor) -> Tensor:
        """Return the nearest states within the bounds."""
        low, high = self.bounds
        return torch.minimum(torch.maximum(state, low), high)

    def react(self, state: Tensor) -> Tensor:
        """Return states after the kinetics of a step (Runge-Kutta, fourth order).

        The kinetics outside of the bounds are those of the nearest states within.
        """
        rates = [self._kinetics(self.inside(state))]
        for share in (0.5, 0.5, 1):
            rates.append(self._kinetics(self.inside(torch.add(state, rates[-1], alpha=share / STEPS))))
        return _after(state, rates)

    def _kinetics(self, state: Tensor) -> Tensor:
        """Return the rates of states, the polynomial summed from its highest orders (Horner's rule)."""
        components = state.unbind(1)

        def rest(of: tuple[int, ...]) -> Tensor:
            """Return what multiplies a monomial in all that begin with it."""
            found = self.kinetics[..., monomials_of(len(components)).index(of), None, None]
            for c in range(of[-1] if of else 0, len(components)) if len(of) < ORDER else ():
                found = torch.addcmul(found, components[c][:, None], rest((*of, c)))
            return found

        return rest(())

    def turn(self, before: Tensor, after: Tensor) -> Float[Tensor, "B C C H W"]:
        """Return how a change of the means before the kinetics of a step goes on until after them.

        Given are the means of the monomials, (B, n - 1, H, W); between both, the derivatives of the kinetics are taken
        to change evenly.
        """
        slopes, unit = self._slopes
        first, last = (
            (slopes @ each.flatten(2)).view(-1, *unit.shape[:2], *each.shape[2:]) for each in (before, after)
        )
        found, middle = [first], (first + last) / 2
        for share, each in zip((0.5, 0.5, 1), (middle, middle, last), strict=True):
            found.append(_product(each, torch.add(unit, found[-1], alpha=share / STEPS)))
        return _after(unit, found)

    @cached_property
    def _slopes(self) -> tuple[Tensor, Tensor]:
        """The coefficients of the derivatives of the kinetics (B, C C, n - 1), and the unit matrix (C, C, 1, 1)."""
        kinetics, components = self.kinetics, self.kinetics.shape[1]
        unit = torch.eye(components, dtype=kinetics.dtype, device=kinetics.device)[..., None, None]
        return (kinetics[:, :, None, None] @ _differentiation(components, kinetics.device)).flatten(1, 3), unit


def _means(state: Float[Tensor, "*B Y X"], finer: int) -> Float[Tensor, "*B H W"]:
    """Return the means over the points of each cell."""
    return _along_columns(_along_rows(state, finer), finer)


def _along_rows(state: Float[Tensor, "*B Y X"], finer: int) -> Float[Tensor, "*B H X"]:
    """Return the means over the rows of each cell."""
    return reduce(torch.add, state.chunk(finer, dim=-2)) / finer


def _along_columns(state: Float[Tensor, "*B Y X"], finer: int) -> Float[Tensor, "*B Y W"]:
    """Return the means over the columns of each cell."""
    return reduce(torch.add, state.chunk(finer, dim=-1)) / finer


def spread(state: Tensor, diffusion: Sequence[Tensor]) -> Tensor:
    """Return states after the diffusion along rows and columns."""
    rows, columns = diffusion
    return rows @ state @ columns


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
        cells = [_refinement(size, over, domain.walls, device) for size in self.shape]
        self.half, self.whole = (
            [_of_means(*each) for each in zip(of, cells, strict=True)] for of in (advance.half, advance.whole)
        )
        rows, columns = (_refinement(size // self.rest, self.rest, domain.walls, device).float() for size in self.shape)
        self.cells = rows, columns.T

    def means(self, moved: Tensor) -> Float[Tensor, "B C H C n W"]:
        """Return those of means over cells."""
        rows = _along_rows(moved.flatten(3), self.rest).unflatten(3, moved.shape[3:])
        return _along_columns(rows, self.rest)

    def corrected(self, moved: Tensor | None) -> Tensor | None:
        """Return those of states that have been corrected to a frame, None where nothing is left of them."""
        return None if moved is None or self.rest == 1 else moved - _spread(self.means(moved), self.cells)

    def interval(self, state: Tensor, moved: Tensor | None) -> tuple[Tensor, Tensor]:
        """Advance states and derivatives, None where there are none, to the next frame."""
        state = spread(state, self.advance.half)
        moved = self._none() if moved is None else _spread(moved, self.half)
        for step in range(STEPS):
            if step:
                state, moved = spread(state, self.advance.whole), _spread(moved, self.whole)
            before, own = self._terms(state)
            moved = _with_terms(moved, before, own)
            state = self.advance.inside(self.advance.react(state))
            after, own = self._terms(state)
            moved = _with_terms(_turned(moved, self.advance.turn(before, after).float()), after, own)
        return spread(state, self.advance.half), _spread(moved, self.half)

    def _none(self) -> Tensor:
        """Return those of states that do not depend on the coefficients."""
        kinetics, (rows, columns) = self.advance.kinetics, self.shape
        (batch, components), count = kinetics.shape[:2], kinetics.shape[2] + 1
        size = batch, components, rows, components, count, columns
        return torch.zeros(size, dtype=torch.float32, device=kinetics.device)

    def _terms(self, state: Tensor) -> tuple[Float[Tensor, "B n-1 Y X"], Float[Tensor, "B C Y X"]]:
        """Return the means of the monomials of states, and of their Laplacian."""
        finer, over = self.domain.finer, self.over
        along, across = (
            _mean_second_difference(size // finer, finer, over, self.domain.walls, distance, state.device)
            for size, distance in zip(state.shape[-2:], self.domain.spacing, strict=True)
        )
        own = along @ _along_columns(state, over) + _along_rows(state, over) @ across.T
        return torch.stack([_means(each, over) for each in _products(state)], 1), own


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
    return _along_rows(diffusion @ cells, cells.shape[0] // cells.shape[1]).float()


def _spread(moved: Float[Tensor, "B C H C n W"], by: Sequence[Tensor]) -> Tensor:
    """Return derivatives with rows and columns multiplied, as by the diffusion of their states."""
    rows, columns = by
    along = (rows @ moved.flatten(3)).unflatten(3, moved.shape[3:])
    return (along.flatten(2, 4) @ columns).unflatten(2, along.shape[2:5])


def _with_terms(moved: Float[Tensor, "B C H C n W"], shared: Tensor, own: Tensor) -> Tensor:
    """Add what the terms of half a step give to the derivatives by their own coefficients, in place."""
    shared, own = shared.transpose(1, 2).float(), own.float()
    for c in range(own.shape[1]):
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


def _products(fields: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B H W"]]:
    """Return the values of the monomials; each is one of lower order times a component."""
    found: dict[tuple[int, ...], Tensor] = {(): torch.ones_like(fields[:, 0])}
    for each in monomials_of(fields.shape[1])[1:]:
        found[each] = found[each[:-1]] * fields[:, each[-1]] if each[:-1] else fields[:, each[-1]]
    return list(found.values())


def terms(fields: Float[Tensor, "B C H W"], domain: Domain) -> Float[Tensor, "B C n H W"]:
    """Return the terms of each component: the monomials, and its own Laplacian, periodic or mirrored at walls."""
    shared = torch.stack(_products(fields), 1)[:, None].expand(-1, fields.shape[1], -1, -1, -1)
    return torch.cat([shared, _laplacian(fields, domain)[:, :, None]], dim=2)


def _laplacian(fields: Float[Tensor, "B C H W"], domain: Domain) -> Float[Tensor, "B C H W"]:
    """Return the second differences along both sides, added."""
    along, across = (
        _second_difference(size, 1, domain.walls, distance, fields.device)[0]
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


def _after(state: Tensor, rates: Sequence[Tensor]) -> Tensor:
    """Return states after a step with the rates of four stages, as the classical method of Runge and Kutta has them."""
    a, b, c, d = rates
    return torch.add(state, torch.add(a + d, b + c, alpha=2), alpha=1 / (6 * STEPS))


def _product(one: Float[Tensor, "B C C H W"], other: Float[Tensor, "B C C H W"]) -> Float[Tensor, "B C C H W"]:
    """Return the products of matrices, one at every point."""
    return (one[:, :, :, None] * other[:, None]).sum(2)


def _diffusion(time: Tensor, size: int, finer: int, walls: bool, distance: float) -> Float[Tensor, "*B Y Y"]:
    """Return exp(time L) of times (..., 1), L the second difference along one side."""
    _, values, vectors = _second_difference(size, finer, walls, distance, time.device)
    return (vectors * torch.exp(time * values)[..., None, :]) @ vectors.T


@once
def _refinement(size: int, finer: int, walls: bool, device: torch.device) -> Float[Tensor, "Y H"]:
    """Return how values on so many points of each cell follow from the means over cells along one side.

    They are the means over these points of the polynomial of fourth order that has the means of five cells.
    """

    def mean_powers(edges: Tensor) -> Tensor:
        """Return the means of 1, t, ..., t^4 between edges that follow each other."""
        powers = torch.arange(1, 6)
        return (edges[:, None] ** powers).diff(dim=0) / powers / edges.diff()[:, None]

    cells = torch.arange(6, dtype=torch.float64) - 2.5
    points = torch.arange(finer + 1, dtype=torch.float64) / finer - 0.5
    weights = torch.linalg.solve(mean_powers(cells), mean_powers(points), left=False)  # (finer, 5)
    places = torch.arange(size)[:, None] + torch.arange(-2, 3)
    if walls:
        places = places % (2 * size)
        places = torch.minimum(places, 2 * size - 1 - places)
    else:
        places = places % size
    found = torch.zeros(size, finer, size, dtype=torch.float64)
    found.scatter_add_(2, places[:, None].expand(-1, finer, -1), weights.expand(size, -1, -1))
    return found.transpose(0, 1).flatten(0, 1).to(device)


@once
def _mean_second_difference(
    size: int, finer: int, over: int, walls: bool, distance: float, device: torch.device
) -> Float[Tensor, "H Y"]:
    """Return the means, over so many points, of the second difference of states along one side."""
    return _along_rows(_second_difference(size, finer, walls, distance, device)[0], over)


@once
def _second_difference(
    size: int, finer: int, walls: bool, distance: float, device: torch.device
) -> tuple[Float[Tensor, "Y Y"], Float[Tensor, " Y"], Float[Tensor, "Y Y"]]:
    """Return the second difference along one side, periodic or mirrored at walls, its eigenvalues and eigenvectors.

    It is that of so many points for each cell, in the order of states; cells are at a distance from each other, in the
    unit of the coefficients.
    Its diffusion makes no new extremes. That of the Fourier series does, around a front as narrow as the grid, and
    kinetics that amplify them draw stripes.
    """
    unit = torch.eye(finer * size, dtype=torch.float64)
    matrix = unit.roll(1, 0) + unit.roll(-1, 0) - 2 * unit
    if walls:
        matrix[0, -1] -= 1
        matrix[-1, 0] -= 1
        matrix[0, 0] = matrix[-1, -1] = -1
    matrix /= (distance / finer) ** 2
    values, vectors = torch.linalg.eigh(matrix)
    order = torch.arange(finer * size).view(size, finer).T.flatten()
    return matrix[order][:, order].to(device), values.to(device), vectors[order].to(device)
