"""Frames to patch tokens: each frame alone, each component alone, then mixed (S2.2, per-frame tokenization)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.models.attention import mlp


class Tokenizer(nn.Module):
    """Map fields (..., C, H, W) to one token per non-overlapping patch, (..., S, d), row-major over patches.

    Every component has its own affine map of a patch's values; the maps and the learned component identities are
    averaged over components, and a residual two-layer map follows.

    Args:
        width: latent width d.
        patch: points per side of a patch.
        components: number of field components C.
    """

    def __init__(self, width: int, patch: int = 8, components: int = 2) -> None:
        super().__init__()
        self.patch = patch
        self.project = nn.ModuleList(nn.Linear(patch * patch, width) for _ in range(components))
        self.identity = nn.Parameter(torch.randn(components, width) * 0.02)
        self.norm = nn.LayerNorm(width)
        self.mix = mlp(width, width, width)

    def patches(self, fields: Float[Tensor, "*B C H W"]) -> Float[Tensor, "*B C S {self.patch*self.patch}"]:
        """Cut fields (..., C, H, W) into the values of each patch, (..., C, S, patch * patch)."""
        p = self.patch
        *lead, height, width = fields.shape
        blocks = fields.reshape(*lead, height // p, p, width // p, p).transpose(-3, -2)
        return blocks.reshape(*lead, (height // p) * (width // p), p * p)

    def forward(self, fields: Float[Tensor, "*B C H W"]) -> Float[Tensor, "*B S d"]:
        """Return tokens (..., S, d) of fields (..., C, H, W)."""
        components = self.patches(fields).unbind(-3)
        tokens = [project(values) for project, values in zip(self.project, components, strict=True)]
        token = (sum(tokens[1:], tokens[0]) + self.identity.sum(0)) / len(tokens)
        return token + self.mix(self.norm(token))
