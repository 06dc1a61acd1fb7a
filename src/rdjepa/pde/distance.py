"""How far the kinetics of one equation is from that of another, after the symmetries of two-component equations.

Two equations are one and the same up to a shift and a scale of u, of v and of time, and an exchange of u and v, when an
affine map of each component takes one reaction vector field to the other. (With equal diffusivities any linear map of
both together would do too; these are not searched.) The distance is what is left of the first field after the best
such map. It is measured where the trajectory of the first goes, and the map takes this range to where trajectories of
the second go: elsewhere two kinetics may differ as they like, and on a small part every kinetics is a linear one. So
the same equation on a wider range is at a distance from itself, which `distance_beyond` does not count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rdjepa.pde.system import Coefficients, System

POINTS = 12  # per side of the grid of states
OUTLIERS = 0.005  # share of the states at either end of u and of v that is left out
SLACK = 0.125  # how far within a reference's range either end of an image may lie, as a share of the range
BEYOND = 0.5  # how far beyond it either end may lie in `distance_beyond`
WIDENED = 2.0  # coefficients of a reference are taken from half its lowest to this times its highest value
STARTS, REFINED, FIRST, THEN = 3, 6, 5, 15  # starts per symmetry, those that go on, steps before and after
TINY = 1e-300


class Nearest(NamedTuple):
    """The nearest of several equations and the distance to it."""

    name: str
    distance: float


@dataclass(frozen=True)
class Reference:
    """An equation that others keep away from, and the ranges of its trajectories.

    Attributes:
        system: the equation; its coefficients are drawn from boxes.
        u, v: (low, high) of each component.
    """

    system: System
    u: tuple[float, float]
    v: tuple[float, float]


@dataclass(frozen=True)
class Apart:
    """Equations that a drawn one has to differ from.

    Attributes:
        references: the equations.
        least: a draw that is nearer to one of them is rejected.
    """

    references: tuple[Reference, ...]
    least: float

    def nearest(self, system: System, p: Coefficients, fields: np.ndarray) -> Nearest:
        """Return the reference that is nearest to an equation on the range of its trajectory, (T, H, W, 2)."""
        states = visited(fields)

        def reaction(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return system.reaction(u, v, p)

        found = [Nearest(each.system.name, distance(reaction, states, each)) for each in self.references]
        return min(found, key=lambda nearest: nearest.distance)


def visited(fields: np.ndarray) -> np.ndarray:
    """Return a grid of states (u, v) over the ranges of a trajectory (T, H, W, 2), outliers left out, (n, 2).

    A grid, since the states of a slow pattern lie close to a curve, on which very different kinetics agree.
    """
    low, high = np.quantile(fields.reshape(-1, 2)[::7], [OUTLIERS, 1 - OUTLIERS], axis=0)
    axes = (np.linspace(first, last, POINTS) for first, last in zip(low, high, strict=True))
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def distance(
    reaction: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    states: np.ndarray,
    reference: Reference,
) -> float:
    """Return the distance of a kinetics from a reference, between 0 (the same over the same range) and 1.

    With (f, g) the kinetics, (h_1, h_2) that of the reference and |.| the root mean square over the states, it is the
    smallest value of

        sqrt( 1/2 min_{a > 0} |f - a h_1(U, V)|^2 / |f|^2 + 1/2 min_{b > 0} |g - b h_2(U, V)|^2 / |g|^2 )

    - over U affine in u and V affine in v, each rising or falling (with a falling one its rate changes sign), the
      images of the states being the range of the reference, or up to an eighth less at either end;
    - over the exchange: U affine in v, V in u, and f with h_2, g with h_1;
    - over the coefficients of the reference, each between half its lowest and twice its highest value.

    The rates a and b are free of each other, so a reference with another ratio of its two time scales is as near. The
    minimum is searched from 24 fixed starts by Levenberg and Marquardt's method, so the distance is an upper bound; for
    the 50 nearest of 324 random equations a search ten times as long found 0.01 less in the median and 0.04 at most.

    A trajectory that leaves the reference's range cannot be mapped onto it, and the reference's own kinetics are then
    far from it.

    Args:
        reaction: (u, v) -> (du/dt, dv/dt) without diffusion.
        states: (n, 2) at which it is evaluated: the range of a trajectory.
        reference: the other equation.
    """
    return _least(_Problem(reaction, states, reference))


def distance_beyond(
    reaction: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    states: np.ndarray,
    reference: Reference,
) -> float:
    """Return the distance of a kinetics from a reference, whose range a trajectory may leave: at most `distance`.

    It is the smaller of `distance` and of the same with either end of an image free to lie up to half the reference's
    range outside. The reference's own kinetics on a wider range are then near, those on a small part of it are not. No
    draw of a family is rejected by this: its trajectories, and what was learned from them, depend on `distance`.
    """
    beyond = _least(_Problem(reaction, states, reference, BEYOND))
    return min(distance(reaction, states, reference), beyond)


def _least(problem: "_Problem") -> float:
    """Return the smallest distance that the search finds."""
    symmetries = np.array(list(product((False, True), repeat=3)) * STARTS)
    unknowns = np.random.default_rng(0).uniform(-1, 1, (len(symmetries), problem.size))
    unknowns[: len(symmetries) // STARTS] = 0
    unknowns, error = _refined(problem, unknowns, symmetries, FIRST)
    best = np.argsort(error)[:REFINED]
    return float(np.sqrt(_refined(problem, unknowns[best], symmetries[best], THEN)[1].min() / 2))


class _Problem:
    """The two residuals that are left by the best rates, as functions of unbounded unknowns.

    The unknowns are the reference's coefficients, the ends of the image of one component and those of the other. A sine
    keeps each within its bounds. A symmetry is three flags: exchanged, U falls, V falls.
    """

    def __init__(
        self, reaction: Callable[..., tuple[Any, Any]], states: np.ndarray, reference: Reference, beyond: float = 0.0
    ) -> None:
        low, high = states.min(axis=0), states.max(axis=0)
        self.places = ((states - low) / np.maximum(high - low, TINY)).T  # 0 to 1 within the range
        self.rates = _normed(np.stack(np.broadcast_arrays(*reaction(*states.T), states[:, 0])[:2]))
        self.kinetics = reference.system.kinetics
        spans = [reference.system.range(name) for name in reference.system.kinetic_names]
        bounds = [(low / WIDENED, high * WIDENED) for low, high in spans]
        for low, high in (reference.u, reference.v):
            slack, out = SLACK * (high - low), beyond * (high - low)
            bounds += [(low - out, low + slack), (high - slack, high + out)]
        lowest, highest = np.array(bounds).T
        self.middle, self.half, self.size = (lowest + highest) / 2, (highest - lowest) / 2, len(bounds)

    def residuals(self, unknowns: np.ndarray, symmetries: np.ndarray) -> np.ndarray:
        """Return residuals (B, 2 n) for unknowns (B, size) and symmetries (B, 3)."""
        values = (self.middle + self.half * np.sin(unknowns))[..., None]
        exchanged, falls = symmetries[:, :1, None], symmetries[:, 1:, None]
        places = np.where(exchanged, self.places[::-1], self.places)
        places = np.where(falls, 1 - places, places)  # (B, 2, n)
        first, last = values[:, [-4, -2]], values[:, [-3, -1]]
        u, v = np.moveaxis(first + (last - first) * places, 1, 0)
        fitted = np.stack(self.kinetics(u, v, *np.moveaxis(values[:, :-4], 1, 0)), axis=1)
        fitted = _normed(np.where(falls, -fitted, fitted))
        fitted = np.where(exchanged, fitted[:, ::-1], fitted)
        rate = np.maximum((fitted * self.rates).sum(axis=-1, keepdims=True), 0)
        return (self.rates - rate * fitted).reshape(len(unknowns), -1)


def _normed(x: np.ndarray) -> np.ndarray:
    return x / np.maximum(np.sqrt((x**2).sum(axis=-1, keepdims=True)), TINY)


def _refined(
    problem: _Problem, unknowns: np.ndarray, symmetries: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Take steps of Levenberg and Marquardt from all starts at once; return the unknowns and the sums of squares."""
    count, size = unknowns.shape
    damping, step, each = np.full(count, 1e-2), 1e-5, np.arange(size)
    residual = problem.residuals(unknowns, symmetries)
    error = (residual**2).sum(axis=1)
    for _ in range(steps):
        shifted = np.repeat(unknowns[:, None], size, axis=1)
        shifted[:, each, each] += step
        ahead = problem.residuals(shifted.reshape(-1, size), np.repeat(symmetries, size, axis=0))
        jacobian = (ahead.reshape(count, size, -1) - residual[:, None]) / step
        normal = jacobian @ jacobian.transpose(0, 2, 1)
        normal[:, each, each] += damping[:, None] * (normal[:, each, each] + 1e-6)
        change = np.linalg.solve(normal, jacobian @ residual[..., None])[..., 0]
        length = np.sqrt((change**2).sum(axis=1, keepdims=True))
        candidate = unknowns - change / np.maximum(length, 1)  # at most one radian
        new = problem.residuals(candidate, symmetries)
        better = (new**2).sum(axis=1) < error
        unknowns = np.where(better[:, None], candidate, unknowns)
        residual = np.where(better[:, None], new, residual)
        error = (residual**2).sum(axis=1)
        damping = np.where(better, damping / 3, damping * 5)
    return unknowns, error
