"""Fixed sinusoidal embeddings of positions, and the learned embedding of a lead time (S2.2, S2.4)."""

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from rdjepa.errors import ArgumentError
from rdjepa.models.attention import mlp
from rdjepa.models.compiling import constant, once

MAX_OFFSET = 8  # lead times are scaled by the largest offset of pretraining, tau = h / 8
OCTAVES = 16
FEATURES = 2 * OCTAVES + 2


def sinusoid(positions: Num[Tensor, " n"], width: int) -> Float[Tensor, "n {width}"]:
    """Compute f_D(a) of S2.2: all D/2 sines, then all D/2 cosines, at frequencies 10000^(-2j/D).

    Args:
        positions: (n,) positions a.
        width: embedding width D, even.

    Returns:
        (n, D) float32.
    """
    if width % 2:
        raise ArgumentError(f"expected an even embedding width, got {width}")
    frequencies = 10000.0 ** (-2.0 * torch.arange(width // 2, dtype=torch.float64) / width)
    angles = positions.to(torch.float64)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()


@once
def _time_embedding(count: int, width: int, device: torch.device) -> Tensor:
    """Copy `sinusoid` of 0..count-1 to a device, once."""
    return sinusoid(torch.arange(count), width).to(device)


@constant
def time_embedding(count: int, width: int, device: torch.device) -> Tensor:
    """Return embeddings (count, width) of temporal indices 0..count-1; a compiled network holds them as constants."""
    return _time_embedding(count, width, device)


def spatial_embedding(side: int, width: int) -> Float[Tensor, "{side*side} {width}"]:
    """Embed the row and the column of each patch, half the width each (S2.2): (side * side, width), row-major."""
    axis = sinusoid(torch.arange(side), width // 2)
    rows = axis[:, None, :].expand(side, side, -1)
    columns = axis[None, :, :].expand(side, side, -1)
    return torch.cat([rows, columns], dim=-1).reshape(side * side, width)


def lead_time_features(offsets: Int[Tensor, "*M"]) -> Float[Tensor, "*M 34"]:
    """Return the 34 features gamma(h) of offsets h in 0..8: 16 sines and 16 cosines of 2 pi 2^j tau, tau and tau^2.

    The angle is reduced modulo one turn in exact arithmetic, since 2^15 turns cost float32 all its digits.

    Args:
        offsets: integer tensor of any shape (...).

    Returns:
        (..., 34) float32.
    """
    octave = 2 ** torch.arange(OCTAVES, device=offsets.device)
    turns = (offsets[..., None] * octave) % MAX_OFFSET  # eighths of a turn, exact
    angles = turns.to(torch.float32) * (2 * torch.pi / MAX_OFFSET)
    tau = offsets[..., None].to(torch.float32) / MAX_OFFSET
    return torch.cat([angles.sin(), angles.cos(), tau, tau**2], dim=-1)


class LeadTimeEmbedding(nn.Module):
    """e_h = W2 GELU(W1 LN(gamma(h)) + b1) + b2 (S2.4): integer offsets (...) to (..., width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES)
        self.map = mlp(FEATURES, 2 * width, width)

    def forward(self, offsets: Int[Tensor, "*M"]) -> Float[Tensor, "*M d"]:
        """Embed integer offsets of any shape."""
        return self.map(self.norm(lead_time_features(offsets).to(self.norm.weight.dtype)))
