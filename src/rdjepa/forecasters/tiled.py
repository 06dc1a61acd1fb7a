"""A forecaster of a larger grid: its network forecasts overlapping squares of its own size, which are blended.

Squares keep the resolution of the fields, where averaging them to the network's grid would lose what is small. Every
square is forecast alone, so what lies outside of it within five intervals is not seen: a point is weighted by
sin^2 of its place along each side of the square, nothing at the edge and most in the middle. Not part of the paper.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.around import Around
from rdjepa.forecasters.base import ForecastModel

OVERLAP = 0.25  # of a square's side, at least


def places(grid: int, size: int, walls: bool) -> np.ndarray:
    """Return the points (n, size) along one side of `grid` points that each of n overlapping squares covers.

    Between walls the first and the last square end there; otherwise squares go around.

    Raises:
        ArgumentError: the grid is not larger than a square.
    """
    if grid <= size:
        raise ArgumentError(f"expected a grid of more than {size} points per side to tile, got {grid}; leave tiles out")
    alone = size - math.ceil(OVERLAP * size)
    if walls:
        count = math.ceil((grid - size) / alone) + 1
        starts = np.arange(count) * ((grid - size) / (count - 1))
    else:
        count = math.ceil(grid / alone)
        starts = np.arange(count) * (grid / count)
    return (starts.round().astype(np.int64)[:, None] + np.arange(size)) % grid


def squares(fields: np.ndarray, size: int | None, walls: bool) -> list[np.ndarray]:
    """Cut a trajectory (T, N, N, C) into those of its squares, n^2 of (T, size, size, C), row-major.

    Raises:
        ArgumentError: the grid is not larger than a square, or the size is that of a network of any grid.
    """
    if size is None:
        raise ArgumentError("expected a network of one grid to tile with, got one that takes any grid; leave tiles out")
    covered = places(fields.shape[1], size, walls)
    return [np.ascontiguousarray(fields[:, rows][:, :, columns]) for rows in covered for columns in covered]


class Tiled(Around):
    """A network of size x size points on a grid of `grid` x `grid`.

    Args:
        network: a forecaster with a grid of its own.
        grid: points per side, more than the network's.
        walls: whether squares end at the borders instead of going around.

    Raises:
        ArgumentError: the grid is not larger than the network's.
    """

    index: Tensor
    blending: Tensor

    def __init__(self, network: ForecastModel, grid: int, walls: bool) -> None:
        super().__init__(network)
        assert network.grid is not None  # refused by `squares`
        self.grid, self.walls, self.size = grid, walls, network.grid
        covered = places(grid, self.size, walls)
        weight = np.zeros((grid, covered.size))
        weight[covered.ravel(), np.arange(covered.size)] = np.tile(
            np.sin(np.pi * (np.arange(self.size) + 0.5) / self.size) ** 2, len(covered)
        )
        self.register_buffer("index", torch.from_numpy(covered.ravel()), persistent=False)
        blending = torch.from_numpy(weight / weight.sum(axis=1, keepdims=True)).float()
        self.register_buffer("blending", blending, persistent=False)

    def cut(self, fields: Float[Tensor, "*B H W"]) -> Float[Tensor, "*B n size size"]:
        """Cut fields (..., H, W) into their n squares, row-major."""
        doubled = fields.index_select(-2, self.index).index_select(-1, self.index)
        squares = doubled.unflatten(-2, (-1, self.size)).unflatten(-1, (-1, self.size))
        return squares.transpose(-3, -2).flatten(-4, -3)

    def blend(self, squares: Float[Tensor, "*B n size size"]) -> Float[Tensor, "*B H W"]:
        """Blend n squares into fields (..., H, W); what `cut` returned gives the same fields again."""
        side = math.isqrt(squares.shape[-3])
        doubled = squares.unflatten(-3, (side, side)).transpose(-3, -2).flatten(-2).flatten(-3, -2)
        return self.blending @ doubled @ self.blending.T

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return what the network returns for the squares, (B, n, ...)."""
        squares = self.cut(context).movedim(-3, 1)
        made = self.network.features(squares.flatten(0, 1))
        return tuple(part.unflatten(0, squares.shape[:2]) for part in made)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        made = self.network.predict(*(part.flatten(0, 1) for part in features))
        return self.blend(made.unflatten(0, features[0].shape[:2]).movedim(1, -3))

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the mean over squares of the network's description."""
        made = self.network.latent_summary(*(part.flatten(0, 1) for part in features))
        return None if made is None else made.unflatten(0, features[0].shape[:2]).mean(dim=1)
