"""The objective of pretraining: the predictive latent loss (S2.5)."""

import torch.nn.functional as F
from torch import Tensor

from rdjepa.errors import ArgumentError


def jepa_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """Mean squared difference of feature-normalised latent vectors (equation of S2.5).

    Args:
        predicted: (..., d) predicted latent vectors.
        target: (..., d) target vectors; no gradient reaches them.

    Returns:
        A scalar, computed in float32.
    """
    if predicted.shape != target.shape:
        raise ArgumentError(f"expected equal shapes, got {tuple(predicted.shape)} and {tuple(target.shape)}")
    width = predicted.shape[-1:]
    difference = F.layer_norm(predicted.float(), width) - F.layer_norm(target.detach().float(), width)
    return difference.square().mean()
