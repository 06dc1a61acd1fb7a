"""Multi-head attention with separate, biased query, key, value and output maps (S2.2, S2.4)."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.errors import ArgumentError


class Attention(nn.Module):
    """Scaled dot-product attention from `query` tokens (…, M, d) to `context` tokens (…, S, d).

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

    def forward(self, query: Float[Tensor, "B M d"], context: Float[Tensor, "B S d"]) -> Float[Tensor, "B M d"]:
        """Return the attended values, of the shape of `query` (B, M, d)."""

        def split(tokens: Tensor) -> Tensor:
            return tokens.unflatten(-1, (self.heads, -1)).transpose(-3, -2)

        q, k, v = split(self.query(query)), split(self.key(context)), split(self.value(context))
        attended = F.scaled_dot_product_attention(q, k, v)
        return self.output(attended.transpose(-3, -2).flatten(-2))


def mlp(width_in: int, width_hidden: int, width_out: int) -> nn.Sequential:
    """Build two affine maps separated by GELU, the feed-forward map used everywhere in the model."""
    return nn.Sequential(nn.Linear(width_in, width_hidden), nn.GELU(), nn.Linear(width_hidden, width_out))
