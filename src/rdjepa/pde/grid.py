"""A uniform periodic grid on a square, and distances on it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Grid:
    """`size` x `size` points of a periodic square [origin, origin + length)^2; rows run along y, columns along x."""

    size: int
    length: float
    origin: float = 0.0

    @property
    def spacing(self) -> float:
        """Distance of neighbouring points."""
        return self.length / self.size

    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y at every point, each (H, W)."""
        axis = self.origin + self.spacing * np.arange(self.size)
        return np.broadcast_to(axis, (self.size, self.size)), np.broadcast_to(axis[:, None], (self.size, self.size))

    def offsets(self, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the displacement from `centre` (x, y) to every point along the shortest way around, each (H, W)."""
        x, y = self.coordinates()
        half = 0.5 * self.length
        return (x - centre[0] + half) % self.length - half, (y - centre[1] + half) % self.length - half

    def distance(self, centre: np.ndarray) -> np.ndarray:
        """Return the distance from `centre` (x, y) to every point along the shortest way around, (H, W)."""
        return np.hypot(*self.offsets(centre))

    def random_point(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a point (x, y) uniformly from the square."""
        return self.origin + self.length * rng.random(2)
