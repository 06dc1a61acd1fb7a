"""A reaction-diffusion equation with cubic kinetics, another one for each context: its terms, and how it is integrated.

    dx_c/dt = sum_i k[c, i] m_i(x) + D[c] Laplacian x_c

m_i are all monomials of the components up to third order, D is not negative; time is in frame intervals, length in grid
spacings. Coefficients are (B, C, n), the last of each component D. Everything is made of plain tensor operations, which
exporters know; where it can be, the kinetics of two components are compiled code.

The values of a frame are means over cells. States are integrated on `Domain.finer` points for each cell, along each
side, on which they begin as the polynomials of fourth order that five cells in a row have the means of (Harten,
Engquist, Osher and Chakravarthy, Journal of Computational Physics 71, 1987); means over cells are what is compared, and
returned. So fronts may be hardly wider than a cell, where the mean of the kinetics is not the kinetics of the mean.
"""

from collections.abc import Sequence
from functools import cache, cached_property, reduce
from itertools import combinations_with_replacement

import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.forecasters import compiled
from rdjepa.forecasters.domain import Domain
from rdjepa.models.compiling import once

ORDER = 3
STEPS = 8  # of the integration from a frame to the next


class Advance:
    """Steps of 1 / STEPS of a frame interval: half of the diffusion, the kinetics, the other half (Strang).

    Between two steps both halves are one. States (B, C, Y, X) have `Domain.finer` points for each of a frame
    (B, C, H, W), along each side: first the first points of all cells, then the second ones.

    Attributes:
        steps: of an interval.
        kinetics: (B, C, n - 1).
        half, whole: diffusion of half a step and of a whole one, each for rows and columns.
    """

    def __init__(self, weights: Tensor, bounds: tuple[Tensor, Tensor], shape: Sequence[int], domain: Domain) -> None:
        self.steps, self.kinetics, self.bounds = STEPS, weights[..., :-1], bounds
        time = weights[..., -1].clamp(min=0)[..., None] / (2 * STEPS)  # (B, C, 1)
        sides = [*zip(shape, domain.spacing, strict=True)]
        self.half, self.whole = (
            [_diffusion(of, size, domain.finer, domain.walls, distance).to(weights.dtype) for size, distance in sides]
            for of in (time, 2 * time)
        )
        self.finer = domain.finer
        self.cells = [refinement(size, self.finer, domain.walls, weights.device).to(weights.dtype) for size in shape]

    def refined(self, frame: Tensor) -> Tensor:
        """Return states of which (B, C, H, W) are the means."""
        rows, columns = self.cells
        return rows @ frame @ columns.T

    def means(self, state: Tensor) -> Tensor:
        """Return the means of states over cells, (B, C, H, W)."""
        return means(state, self.finer)

    def corrected(self, state: Tensor, frame: Tensor) -> Tensor:
        """Return states of which (B, C, H, W) are the means, within cells as much like others as may be."""
        return state + self.refined(frame - self.means(state))

    def interval(self, state: Tensor) -> Tensor:
        """Advance states to the next frame."""
        state = spread(state, self.half)
        for step in range(STEPS):
            if step:
                state = spread(state, self.whole)
            state = self.react(state)
        return spread(state, self.half)

    def inside(self, state: Tensor) -> Tensor:
        """Return the nearest states within the bounds."""
        low, high = self.bounds
        return torch.minimum(torch.maximum(state, low), high)

    def react(self, state: Tensor) -> Tensor:
        """Return states after the kinetics of a step, within the bounds (Runge-Kutta, fourth order).

        The kinetics outside of the bounds are those of the nearest states within.
        """
        if compiled.takes(self.kinetics, state):
            return compiled.react(state, self.polynomials, self.bounds, 1 / STEPS)
        rates = [self._kinetics(self.inside(state))]
        for share in (0.5, 0.5, 1):
            rates.append(self._kinetics(self.inside(torch.add(state, rates[-1], alpha=share / STEPS))))
        return self.inside(after_stages(state, rates))

    @cached_property
    def polynomials(self) -> compiled.Polynomials:
        """The kinetics as compiled code takes them."""
        return compiled.polynomials(self.kinetics)

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


def means(state: Float[Tensor, "*B Y X"], finer: int) -> Float[Tensor, "*B H W"]:
    """Return the means over the points of each cell."""
    return along_columns(along_rows(state, finer), finer)


def along_rows(state: Float[Tensor, "*B Y X"], finer: int) -> Float[Tensor, "*B H X"]:
    """Return the means over the rows of each cell."""
    return reduce(torch.add, state.chunk(finer, dim=-2)) / finer


def along_columns(state: Float[Tensor, "*B Y X"], finer: int) -> Float[Tensor, "*B Y W"]:
    """Return the means over the columns of each cell."""
    return reduce(torch.add, state.chunk(finer, dim=-1)) / finer


def spread(state: Tensor, diffusion: Sequence[Tensor]) -> Tensor:
    """Return states after the diffusion along rows and columns."""
    rows, columns = diffusion
    return rows @ state @ columns


@cache
def monomials_of(components: int) -> tuple[tuple[int, ...], ...]:
    """Return the monomials up to third order, each as the components that are multiplied; () is the constant."""
    return tuple(each for order in range(ORDER + 1) for each in combinations_with_replacement(range(components), order))


def products(fields: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B H W"]]:
    """Return the values of the monomials; each is one of lower order times a component."""
    found: dict[tuple[int, ...], Tensor] = {(): torch.ones_like(fields[:, 0])}
    for each in monomials_of(fields.shape[1])[1:]:
        found[each] = found[each[:-1]] * fields[:, each[-1]] if each[:-1] else fields[:, each[-1]]
    return list(found.values())


def terms(fields: Float[Tensor, "B C H W"], domain: Domain) -> Float[Tensor, "B C n H W"]:
    """Return the terms of each component: the monomials, and its own Laplacian, periodic or mirrored at walls."""
    shared = torch.stack(products(fields), 1)[:, None].expand(-1, fields.shape[1], -1, -1, -1)
    return torch.cat([shared, _laplacian(fields, domain)[:, :, None]], dim=2)


def _laplacian(fields: Float[Tensor, "B C H W"], domain: Domain) -> Float[Tensor, "B C H W"]:
    """Return the second differences along both sides, added."""
    along, across = (
        second_difference(size, 1, domain.walls, distance, fields.device)[0]
        for size, distance in zip(fields.shape[-2:], domain.spacing, strict=True)
    )
    return along @ fields + fields @ across


def after_stages(state: Tensor, rates: Sequence[Tensor]) -> Tensor:
    """Return states after a step with the rates of four stages, as the classical method of Runge and Kutta has them."""
    a, b, c, d = rates
    return torch.add(state, torch.add(a + d, b + c, alpha=2), alpha=1 / (6 * STEPS))


def _diffusion(time: Tensor, size: int, finer: int, walls: bool, distance: float) -> Float[Tensor, "*B Y Y"]:
    """Return exp(time L) of times (..., 1), L the second difference along one side."""
    _, values, vectors = second_difference(size, finer, walls, distance, time.device)
    return (vectors * torch.exp(time * values)[..., None, :]) @ vectors.T


@once
def refinement(size: int, finer: int, walls: bool, device: torch.device) -> Float[Tensor, "Y H"]:
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
def second_difference(
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
