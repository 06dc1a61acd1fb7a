"""Multi-head attention with separate, biased query, key, value and output maps (S2.2, S2.4)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.errors import ArgumentError


class Attention(nn.Module):
    """Scaled dot-product attention from `query` tokens (B, M, d), or (1, M, d), to `context` tokens (B, S, d).

    Args:
        width: latent width d.
        heads: number of heads; must divide `width`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ArgumentError(f"expected a width divisible by the number of heads, got {width} and {heads}")
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, query: Float[Tensor, "#B M d"], context: Float[Tensor, "B S d"]) -> Float[Tensor, "B M d"]:
        """Return the attended values (B, M, d); queries (1, M, d) are the same for all samples."""

        def split(tokens: Tensor) -> Tensor:
            return tokens.unflatten(-1, (self.heads, -1)).transpose(-3, -2)

        q, k, v = split(self.query(query)), split(self.key(context)), split(self.value(context))
        return self.output(_attend(q.expand(k.shape[0], -1, -1, -1), k, v).transpose(-3, -2).flatten(-2))


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return softmax(q k^T / sqrt(D)) v for q (B, heads, M, D) and k, v (B, heads, S, D)."""
    # Backward in bfloat16, torch's fused kernel for CPUs takes four to ten times as long as these products.
    if q.requires_grad and q.dtype == torch.bfloat16 and q.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
            return scores.softmax(-1) @ v
    return F.scaled_dot_product_attention(q, k, v)


def mlp(width_in: int, width_hidden: int, width_out: int) -> nn.Sequential:
    """Build two affine maps separated by GELU, the feed-forward map used everywhere in the model."""
    return nn.Sequential(nn.Linear(width_in, width_hidden), nn.GELU(), nn.Linear(width_hidden, width_out))
