"""What lies beyond the borders of a grid, for 3x3 and strided convolutions and for the neighbors of a token.

In the paper the latent Laplacian takes periodic neighbors and the decoder's convolutions pad with zeros (S2.4, S2.6).
Fields of a user may have walls, and periodic fields have no border at all, so the kind is a setting:

- "zeros": convolutions pad with zeros, neighbors wrap; the paper's model.
- "periodic": both wrap.
- "walls": both see the border repeated. At a wall between cells that nothing passes, the cell beyond has the value of
  the one before it; at other walls it is the same first guess, which the decoder can correct.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

BORDERS = ("zeros", "periodic", "walls")
ZEROS, PERIODIC, WALLS = BORDERS


class Convolution(nn.Conv2d):
    """A convolution of a grid continued by one point: of size 3 it keeps the grid, of size 4 and stride 2 it halves it.

    Args:
        width_in: features of the input.
        width_out: features of the output.
        size: points per side of the kernel.
        stride: step between outputs.
        borders: one of `BORDERS`.
    """

    def __init__(self, width_in: int, width_out: int, size: int, stride: int = 1, borders: str = ZEROS) -> None:
        super().__init__(width_in, width_out, size, stride)
        self.borders = borders

    def forward(self, x: Float[Tensor, "B width_in H W"]) -> Float[Tensor, "B width_out _ _"]:
        """Map (B, width_in, H, W) to (B, width_out, H / stride, W / stride)."""
        return self.part(x, self.weight, self.bias)

    def part(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with other weights than its own, as for some of its input features."""
        if self.borders == ZEROS:
            return F.conv2d(x, weight, bias, self.stride, padding=1)
        return F.conv2d(beyond(x, self.borders), weight, bias, self.stride)


def beyond(x: Float[Tensor, "B d H W"], borders: str) -> Float[Tensor, "B d H+2 W+2"]:
    """Continue (B, d, H, W) by a point on every side, periodically or by repeating the border.

    Copies instead of `torch.nn.functional.pad`, whose gradient on a GPU is not the same in every run.
    """
    for axis in (-2, -1):
        first, last = x.narrow(axis, 0, 1), x.narrow(axis, x.shape[axis] - 1, 1)
        before, after = (last, first) if borders == PERIODIC else (first, last)
        x = torch.cat([before, x, after], dim=axis)
    return x
