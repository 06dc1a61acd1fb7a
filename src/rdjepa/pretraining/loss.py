"""The objective of pretraining: the predictive latent loss (S2.5)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from rdjepa.errors import ArgumentError


def jepa_loss(predicted: Float[Tensor, "*M d"], target: Float[Tensor, "*M d"]) -> Float[Tensor, ""]:
    """Compute the mean squared difference of feature-normalized latent vectors (equation of S2.5).

    Args:
        predicted: (..., d) predicted latent vectors.
        target: (..., d) target vectors; no gradient reaches them.

    Returns:
        A scalar, computed in float32, or in float64 for vectors of that.
    """
    if predicted.shape != target.shape:
        raise ArgumentError(f"expected equal shapes, got {tuple(predicted.shape)} and {tuple(target.shape)}")
    width = predicted.shape[-1:]
    predicted, target = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (predicted, target.detach()))
    difference = F.layer_norm(predicted, width) - F.layer_norm(target, width)
    return difference.square().mean()
