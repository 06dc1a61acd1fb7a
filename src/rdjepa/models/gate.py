"""A gate between what a network paints and what the context tells of itself (`rdjepa.models.autoregression`).

    forecast = a + g (painted - a),    g = sigmoid(log r + logit)

a is the autoregression of the context, r the mean square of what its fit leaves of the context around a point, and the
decoder gives a logit beside every value that it paints. With a logit of -log s this is the weight r / (r + s) of the
two forecasts by their variances, if that of the first grows as r and the second has s. So slow fields are left to the
map that fits them, to more digits than a network paints, and the network learns where no map fits. Not part of the
paper.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from rdjepa.models.autoregression import fitted

AROUND = 4  # points on every side over which what is left is averaged
REST = 1e-12  # added to what is left, which may be nothing
CLOSED = -2 * math.log(0.02)  # logit of a gate that has learned nothing; chosen on random equations


class Beside(NamedTuple):
    """What the decoder's fields are gated with.

    Attributes:
        forecast: (B, N, C, H, W), the autoregression of each context, float32.
        level: (B, C, H, W), log r, float32.
    """

    forecast: Tensor
    level: Tensor


def beside(context: Float[Tensor, "B T C H W"], horizons: int) -> Beside:
    """Return the autoregression of contexts (B, T, C, H, W) and the logarithm of what it leaves around every point."""
    forecast, left = fitted(context, horizons)
    around = F.avg_pool2d(left, 2 * AROUND + 1, stride=1, padding=AROUND, count_include_pad=False)
    return Beside(forecast.float(), (around + REST).log().float())


def gated(painted: Float[Tensor, "B N two_C H W"], other: Beside) -> Float[Tensor, "B N C H W"]:
    """Return the forecast (B, N, C, H, W) of fields and logits, the latter in the second half of the channels."""
    fields, logit = painted.chunk(2, dim=2)
    return torch.lerp(other.forecast, fields, torch.sigmoid(other.level[:, None] + logit))
