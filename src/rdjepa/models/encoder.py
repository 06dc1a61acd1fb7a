"""The encoder: frames to a latent grid, by tokenization, temporal aggregation and a U-shaped spatial encoder (S2.2).

Left open by the paper and chosen here: 3x3 convolutions pad with zeros, as the decoder's do; the adaptive
normalizations start as plain layer normalizations (zero scale and shift); the embedding-like vectors start from
N(0, 0.02^2); the spectral weights start as `rdjepa.models.spectral` says.
"""

from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from rdjepa.errors import ArgumentError
from rdjepa.models.attention import Attention, mlp
from rdjepa.models.embeddings import spatial_embedding, time_embedding
from rdjepa.models.spectral import SpectralConvolution
from rdjepa.models.tokenizer import Tokenizer


def to_grid(tokens: Float[Tensor, "B S d"]) -> Float[Tensor, "B d side side"]:
    """Arrange (B, S, d) row-major tokens as (B, d, side, side)."""
    side = round(tokens.shape[1] ** 0.5)
    return tokens.transpose(1, 2).unflatten(-1, (side, side))


def to_tokens(grid: Float[Tensor, "B d side side"]) -> Float[Tensor, "B side*side d"]:
    """Flatten (B, d, side, side) to (B, S, d) row-major tokens."""
    return grid.flatten(-2).transpose(1, 2)


class TemporalBlock(nn.Module):
    """One cross-attention update of the query from the frames' tokens, then a feed-forward update."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm_query = nn.LayerNorm(width)
        self.norm_context = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm_mlp = nn.LayerNorm(width)
        self.mlp = mlp(width, 2 * width, width)

    def forward(self, query: Float[Tensor, "n 1 d"], frames: Float[Tensor, "n T d"]) -> Float[Tensor, "n 1 d"]:
        """Update queries (n, 1, d) from frames' tokens (n, T, d)."""
        query = query + self.attention(self.norm_query(query), self.norm_context(frames))
        return query + self.mlp(self.norm_mlp(query))


class AdaptiveNorm(nn.Module):
    """Layer normalization, then a scale and shift computed from the shared encoder embedding."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.modulation = nn.Linear(width, 2 * width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, tokens: Float[Tensor, "B S d"], embedding: Float[Tensor, " d"]) -> Float[Tensor, "B S d"]:
        """Normalize tokens (B, S, d), conditioned on the embedding (d,)."""
        scale, shift = self.modulation(F.silu(embedding)).chunk(2, dim=-1)
        return self.norm(tokens) * (1 + scale) + shift


class OperatorBlock(nn.Module):
    """Self-attention, spectral-local mixing and a position-wise MLP, each with a residual connection (S2.2 i-iii)."""

    def __init__(self, width: int, heads: int, modes: int) -> None:
        super().__init__()
        self.norm_attention = AdaptiveNorm(width)
        self.attention = Attention(width, heads)
        self.norm_mixing = AdaptiveNorm(width)
        self.spectral = SpectralConvolution(width, modes)
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.pointwise = nn.Linear(width, width)
        self.fusion = nn.Linear(2 * width, width)
        self.norm_mlp = AdaptiveNorm(width)
        self.mlp = mlp(width, 4 * width, width)

    def forward(self, tokens: Float[Tensor, "B S d"], embedding: Float[Tensor, " d"]) -> Float[Tensor, "B S d"]:
        """Update tokens (B, S, d) of a square grid."""
        normed = self.norm_attention(tokens, embedding)
        tokens = tokens + self.attention(normed, normed)
        normed = self.norm_mixing(tokens, embedding)
        local = self.pointwise(F.gelu(to_tokens(self.depthwise(to_grid(normed)))))
        tokens = tokens + self.fusion(torch.cat([self.spectral(normed), local], dim=-1))
        return tokens + self.mlp(self.norm_mlp(tokens, embedding))


class SpatialEncoder(nn.Module):
    """Five stages at 1, 1/2, 1/4, 1/2 and 1 times the token grid's side, with two projected skip connections.

    Args:
        width: latent width d, the same in every stage.
        heads: attention heads.
        depths: operator blocks per stage.
        modes: Fourier modes kept per direction.
    """

    def __init__(self, width: int, heads: int, depths: tuple[int, ...], modes: int) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.ModuleList(OperatorBlock(width, heads, modes) for _ in range(depth)) for depth in depths
        )
        self.down = nn.ModuleList(nn.Conv2d(width, width, 3, stride=2, padding=1) for _ in range(2))
        self.up = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.skip = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Float[Tensor, "B S d"], embedding: Float[Tensor, " d"]) -> Float[Tensor, "B S d"]:
        """Encode tokens (B, S, d) into a latent grid (B, S, d)."""
        descending: list[Tensor] = []
        for index, stage in enumerate(self.stages):
            if index in (1, 2):
                descending.append(tokens)
                tokens = to_tokens(self.down[index - 1](to_grid(tokens)))
            elif index > 2:
                finer = F.interpolate(to_grid(tokens), scale_factor=2, mode="bilinear", align_corners=False)
                tokens = to_tokens(self.up[index - 3](finer)) + self.skip[index - 3](descending.pop())
            for block in cast(nn.ModuleList, stage):
                tokens = block(tokens, embedding)
        return self.norm(tokens)


class Encoder(nn.Module):
    """E: frames (B, T, C, H, W) in standardized units to latent tokens (B, S, d).

    The online encoder sees four frames, the target encoder one; both have the same parameters. A mask (B, T, S),
    true where a token is hidden, replaces tokens after tokenization and keeps their positions.

    Args:
        width: latent width d.
        heads: attention heads.
        depths: operator blocks in the five stages.
        modes: Fourier modes per direction.
        temporal_blocks: cross-attention blocks of the temporal aggregation.
        side: tokens per side (the grid has `side * patch` points per side).
        patch: points per side of a patch.
        components: field components C.
    """

    space: Tensor

    def __init__(
        self,
        width: int,
        heads: int,
        depths: tuple[int, ...],
        modes: int = 8,
        temporal_blocks: int = 3,
        side: int = 16,
        patch: int = 8,
        components: int = 2,
    ) -> None:
        super().__init__()
        self.width, self.fields = width, (components, side * patch, side * patch)
        self.tokenizer = Tokenizer(width, patch, components)
        self.mask_token = nn.Parameter(torch.randn(width) * 0.02)
        self.embedding = nn.Parameter(torch.randn(width) * 0.02)
        self.query_bias = nn.Parameter(torch.randn(width) * 0.02)
        self.temporal = nn.ModuleList(TemporalBlock(width, heads) for _ in range(temporal_blocks))
        self.spatial = SpatialEncoder(width, heads, depths, modes)
        # A constant of the sizes: checkpoints hold learned values alone.
        self.register_buffer("space", spatial_embedding(side, width), persistent=False)

    def forward(
        self, frames: Float[Tensor, "B T C H W"], mask: Bool[Tensor, "B T S"] | None = None
    ) -> Float[Tensor, "B S d"]:
        """Encode frames (B, T, C, H, W), optionally hiding tokens where mask (B, T, S) is true.

        The last frame is the newest one. Pretraining has shown it four frames, and single ones.

        Raises:
            ArgumentError: another number of components, or another grid.
        """
        if frames.ndim != 5 or tuple(frames.shape[2:]) != self.fields:
            raise ArgumentError(
                f"expected frames (B, T, {', '.join(map(str, self.fields))}), channels first, got "
                f"{tuple(frames.shape)}; bring the fields to it (rdjepa.data.fields.channels_first)"
            )
        batch, count = frames.shape[:2]
        tokens = self.tokenizer(frames)
        # Positions are added after hiding, so a hidden token still tells where and when it is.
        if mask is not None:
            tokens = torch.where(mask[..., None], self.mask_token.to(tokens.dtype), tokens)
        time = time_embedding(count, self.width, tokens.device)
        tokens = tokens + self.space + time[:, None, :] + self.embedding
        frames_of_patch = tokens.transpose(1, 2).flatten(0, 1)  # (B S, T, d)
        query = frames_of_patch[:, -1:] + self.query_bias  # of the newest frame, which attends to all frames
        for block in self.temporal:
            query = block(query, frames_of_patch)
        return self.spatial(query.reshape(batch, -1, self.width), self.embedding)
