"""Bilinear interpolation to twice the points per side, as two products with a small matrix.

It equals torch.nn.functional.interpolate (scale_factor=2, mode="bilinear", align_corners=False) up to rounding, which
repeats the last point beyond an end; periodic fields go on at the other end instead. On a
CPU its gradient takes a fifth of the time of the library's, and on a GPU it is the same in every run.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.models.compiling import once


def _weights(size: int, periodic: bool, device: torch.device) -> Tensor:
    """Return the weights (2 size, size): 3/4 of the nearest point and 1/4 of the next, also beyond an end."""
    place = torch.arange(2 * size, device=device)
    near = place // 2
    beside = near + place % 2 * 2 - 1
    beside = beside % size if periodic else beside.clamp(0, size - 1)
    points = torch.arange(size, device=device)
    return 0.75 * (near[:, None] == points) + 0.25 * (beside[:, None] == points)


_weights_once = once(_weights)


def double(fields: Float[Tensor, "*B H W"], periodic: bool = False) -> Float[Tensor, "*B 2*H 2*W"]:
    """Interpolate fields (..., H, W) to (..., 2 H, 2 W)."""
    weights = _weights if torch.compiler.is_compiling() else _weights_once  # a compiler folds them into constants
    rows, columns = (weights(size, periodic, fields.device).to(fields.dtype) for size in fields.shape[-2:])
    return rows @ (fields @ columns.T)
