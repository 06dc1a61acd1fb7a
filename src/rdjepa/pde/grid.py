"""A uniform grid on a square, periodic or between walls, and distances on it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Grid:
    """`size` x `size` points of the square [origin, origin + length]^2; rows run along y, columns along x.

    On a periodic grid the first point is the lower left corner, and distances are to the nearest periodic image.
    Between walls the points are cell centers, and distances are Euclidean.
    """

    size: int
    length: float
    origin: float = 0.0
    walls: bool = False

    @property
    def spacing(self) -> float:
        """Distance between neighboring points."""
        return self.length / self.size

    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y at every point, each (H, W)."""
        axis = self.origin + self.spacing * (np.arange(self.size) + 0.5 * self.walls)
        return np.broadcast_to(axis, (self.size, self.size)), np.broadcast_to(axis[:, None], (self.size, self.size))

    def offsets(self, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the displacement from `center` (x, y) to every point, each (H, W)."""
        x, y = self.coordinates()
        if self.walls:
            return x - center[0], y - center[1]
        half = 0.5 * self.length
        return (x - center[0] + half) % self.length - half, (y - center[1] + half) % self.length - half

    def rotated(self, center: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the displacements along `angle` (radians) and across it, each (H, W)."""
        x, y = self.offsets(center)
        return x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)

    def distance(self, center: np.ndarray) -> np.ndarray:
        """Return the distance from `center` (x, y) to every point, (H, W)."""
        return np.hypot(*self.offsets(center))

    def random_point(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a point (x, y) uniformly from the square."""
        return self.origin + self.length * rng.random(2)
