"""The objective of adaptation: the forecast loss (S2.6)."""

import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.errors import ArgumentError

RELATIVE_WEIGHT = 0.50
GRADIENT_WEIGHT = 0.10
SPECTRUM_WEIGHT = 0.05


def forecast_loss(
    prediction: Float[Tensor, "*B C H W"],
    target: Float[Tensor, "*B C H W"],
    magnitude: Float[Tensor, "*B C H _"] | None = None,
) -> Float[Tensor, ""]:
    """Return MSE + 0.50 relative + 0.10 first-difference + 0.05 log-spectrum loss, averaged over all offsets (S2.6).

    Args:
        prediction: (..., C, H, W) fields in standardized units, usually (B, N, C, H, W).
        target: fields of the same shape.
        magnitude: `log_magnitude(target)`, for those who need it often; computed when None.

    Returns:
        A scalar, computed in float32, or in float64 for fields of that dtype. The relative term divides by
        max(norm, 1e-8), where the metric divides by norm + 1e-8. Where a prediction equals its target the gradient is
        zero.

    Raises:
        ArgumentError: the shapes differ.
    """
    if prediction.shape != target.shape:
        raise ArgumentError(f"expected equal shapes, got {tuple(prediction.shape)} and {tuple(target.shape)}")
    prediction, target = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (prediction, target))
    error = prediction - target
    square = error.square()
    norm = _root(target.square().sum(dim=(-3, -2, -1))).clamp_min(1e-8)
    relative = (_root(square.sum(dim=(-3, -2, -1))) / norm).mean()
    gradient = error.diff(dim=-2).abs().mean() + error.diff(dim=-1).abs().mean()
    spectrum = (log_magnitude(prediction) - (log_magnitude(target) if magnitude is None else magnitude)).abs().mean()
    return square.mean() + RELATIVE_WEIGHT * relative + GRADIENT_WEIGHT * gradient + SPECTRUM_WEIGHT * spectrum


def log_magnitude(fields: Float[Tensor, "*B C H W"]) -> Float[Tensor, "*B C H _"]:
    """Return log(1 + |F(u)|), with F the real transform over the last two axes scaled by 1/sqrt(H W)."""
    return torch.fft.rfft2(fields, norm="ortho").abs().log1p()


def _root(x: Tensor) -> Tensor:
    """Return the square root with gradient 0 at 0."""
    # There autograd's gradient is infinite, and NaN once it is multiplied by the zero gradient of the square.
    zero = x == 0
    return x.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)
