"""Phase fields with defects on a periodic square, for oscillatory media."""

from dataclasses import dataclass

import numpy as np

from rdjepa.pde.grid import Grid


@dataclass(frozen=True)
class Defects:
    """Vortices on a periodic square.

    Attributes:
        centers: (n, 2) positions (x, y), in the unit of the domain length.
        charges: (n,) winding numbers +1 or -1, which must sum to zero: a periodic phase has no net winding.
    """

    centers: np.ndarray
    charges: np.ndarray

    def phase(self, grid: Grid) -> np.ndarray:
        """Return a phase in radians, (H, W), that winds by 2 pi around each vortex, periodic modulo 2 pi.

        It is the argument of a ratio of Jacobi theta functions, which sums over all periodic images in closed form,
        plus the linear phase that makes it periodic along y as well.
        """
        x, y = grid.coordinates()
        phase = np.zeros((grid.size, grid.size))
        for (cx, cy), charge in zip(self.centers, self.charges, strict=True):
            w = np.pi * ((x - cx) + 1j * (y - cy)) / grid.length
            phase += charge * np.angle(_theta(w))
        # One period along y changes the argument of theta by pi - 2 Re w. For neutral charges these changes sum to
        # 2 pi sum(charge cx) / length, whatever x is; the linear phase takes them away.
        tilt = 2 * np.pi * float(self.charges @ self.centers[:, 0]) / grid.length**2
        return phase - tilt * (y - grid.origin)

    def nearest(self, grid: Grid) -> np.ndarray:
        """Return the distance from every point to the nearest vortex, (H, W)."""
        return np.min([grid.distance(center) for center in self.centers], axis=0)

    def amplitude(self, grid: Grid, core: float) -> np.ndarray:
        """Return an amplitude, (H, W), that vanishes at every vortex and rises to 1 as tanh(distance / core)."""
        return np.prod([np.tanh(grid.distance(center) / core) for center in self.centers], axis=0)


def _theta(w: np.ndarray) -> np.ndarray:
    """Return Jacobi's first theta function for a square lattice (nome exp(-pi)), without constant factors."""
    # Term n is at most exp(-pi n (n + 1) + (2 n + 1) |Im w|), where |Im w| is up to 1.5 pi: the seventh is far below
    # the rounding error of the sum.
    terms = [(-1) ** n * np.exp(-np.pi * n * (n + 1)) * np.sin((2 * n + 1) * w) for n in range(6)]
    return np.sum(terms, axis=0)


def random_pairs(grid: Grid, rng: np.random.Generator, pairs: int) -> Defects:
    """Draw `pairs` vortices of each sign at independent uniform positions."""
    centers = np.array([grid.random_point(rng) for _ in range(2 * pairs)])
    return Defects(centers, np.tile([1.0, -1.0], pairs))


def remote_pair(grid: Grid, rng: np.random.Generator) -> Defects:
    """Draw one vortex of random sign, and half a period away on both axes the opposite one that periodicity needs."""
    center = grid.random_point(rng)
    sign = rng.choice([-1.0, 1.0])
    return Defects(np.array([center, center + 0.5 * grid.length]), np.array([sign, -sign]))


def oscillation(phase: np.ndarray, amplitude: np.ndarray | float = 1.0) -> np.ndarray:
    """Return the state (u, v) = amplitude (cos phase, sin phase), (2, H, W)."""
    return np.stack([amplitude * np.cos(phase), amplitude * np.sin(phase)])
