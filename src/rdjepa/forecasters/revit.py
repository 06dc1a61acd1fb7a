"""ReViT: a windowed transformer in local frames of reference, equivariant under quarter turns (S3.2).

Source: Wei, List, Thuerey, ReViT, ICML 2026, and its public description (code: MIT); written anew. Every patch has a
frame of reference: the direction of its mean gradient of u + v in the newest frame, and the direction a quarter turn
further. Vectors are expressed in it, so tokens do not change when the field is turned; the relative position of
two tokens enters attention in the frame of the query.

Left open by the paper and chosen here: patches of 4 points (every published configuration); periodic central
differences of all eight input scalars as vectors, beside the scalars themselves; mean pooling over the points of a
patch, after attention among them with one head, a normalization and a residual; circular bilinear resampling; no
conditioning layers, whose input would be constant; windows that are shifted in every second block, counted through all
stages, so that stages of one block have shifted windows too; and a decoder that maps a token and the position of a
point within its patch, in the patch's frame, to the ten outputs, which is equivariant and not constant within a patch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.joint import JointForecaster
from rdjepa.models.attention import Attention, mlp
from rdjepa.models.device import ended_in_own_precision

OCTAVES = 3  # of the position within a patch
SMALLEST = 1e-7  # a shorter reference vector gives the frame of the grid


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are the paper's.

    Attributes:
        width: channels at the finest of three scales; each scale doubles them.
        depths: blocks in the two encoder stages, the bottleneck and the two decoder stages.
        heads: attention heads at every scale.
        window: tokens per side of an attention window.
        patch: points per side of a patch.
        rate: learning rate (Table S5).
        grid: points per side, such that every scale is made of whole windows.
        components: field components.
    """

    width: int = 192
    depths: tuple[int, int, int, int, int] = (2, 4, 8, 4, 2)
    heads: int = 16
    window: int = 8
    patch: int = 4
    rate: float = 2e-4
    grid: int = 128
    components: int = 2


PRESETS = {"paper": Config(), "nano": Config(width=48, depths=(1, 1, 2, 1, 1), heads=4, patch=2, rate=3e-4, grid=64)}


def frames(reference: Tensor) -> Tensor:
    """Build orthonormal frames of reference vectors (..., 2): (..., 2, 2), [component x or y, first or second axis]."""
    length = reference.norm(dim=-1, keepdim=True)
    unit = torch.cat([torch.ones_like(length), torch.zeros_like(length)], dim=-1)
    first = torch.where(length > SMALLEST, reference / length.clamp_min(SMALLEST), unit)
    second = torch.stack([-first[..., 1], first[..., 0]], dim=-1)
    return torch.stack([first, second], dim=-1)


def to_local(vectors: Tensor, frame: Tensor) -> Tensor:
    """Return the components of vectors (..., n, 2) along the axes of frames (..., 2, 2)."""
    return vectors @ frame


def to_global(vectors: Tensor, frame: Tensor) -> Tensor:
    """Return vectors (..., n, 2) along the grid from components along the axes of frames: the inverse of `to_local`."""
    return vectors @ frame.transpose(-1, -2)


def gradients(fields: Tensor) -> Tensor:
    """Take periodic central differences (d/dx, d/dy) of (..., H, W): (..., H, W, 2), x along columns, spacing 1."""
    return torch.stack([(fields.roll(-1, d) - fields.roll(1, d)) / 2 for d in (-1, -2)], dim=-1)


def coarser(grid: Tensor) -> Tensor:
    """Average (B, h, w, n) over 2x2 points: (B, h / 2, w / 2, n)."""
    return F.avg_pool2d(grid.movedim(-1, 1), 2).movedim(1, -1)


def finer(grid: Tensor) -> Tensor:
    """Resample (B, h, w, n) bilinearly and periodically to twice the points per side: (B, 2 h, 2 w, n)."""
    padded = F.pad(grid.movedim(-1, 1), (1, 1, 1, 1), mode="circular")
    return F.interpolate(padded, scale_factor=2, mode="bilinear", align_corners=False)[..., 2:-2, 2:-2].movedim(1, -1)


class WindowBlock(nn.Module):
    """Attention within windows, with a bias from relative positions in the query's frame, then an MLP.

    Args:
        width: channels.
        heads: attention heads.
        window: tokens per side of a window.
        shift: tokens by which windows are displaced, periodically.
    """

    displacements: Tensor

    def __init__(self, width: int, heads: int, window: int, shift: int) -> None:
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.merge = nn.Linear(width, width)
        self.position = mlp(3, 32, heads)
        self.mlp = mlp(width, 4 * width, width)
        y, x = torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
        positions = torch.stack([x, y], dim=-1).reshape(-1, 2).float()
        self.register_buffer("displacements", positions[None] - positions[:, None], persistent=False)  # (query, key, 2)

    def windows(self, grid: Tensor) -> Tensor:
        """Cut (B, h, w, n) into windows: (B x windows, tokens of a window, n)."""
        batch, height, width, count = grid.shape
        side = self.window
        grid = grid.roll((-self.shift, -self.shift), (1, 2))
        blocks = grid.reshape(batch, height // side, side, width // side, side, count).transpose(2, 3)
        return blocks.reshape(-1, side * side, count)

    def grid(self, blocks: Tensor, shape: torch.Size) -> Tensor:
        """Put windows back to a grid of the given shape (B, h, w, _): the inverse of `windows`."""
        batch, height, width, _ = shape
        side = self.window
        blocks = blocks.reshape(batch, height // side, width // side, side, side, -1).transpose(2, 3)
        return blocks.reshape(batch, height, width, -1).roll((self.shift, self.shift), (1, 2))

    def forward(self, x: Tensor, frame: Tensor) -> Tensor:
        """Update tokens (B, h, w, width), given their frames (B, h, w, 2, 2)."""
        inside = self.windows(self.norm_attention(x))
        axes = self.windows(frame.flatten(-2)).unflatten(-1, (2, 2))
        local = torch.einsum("qka,nqac->nqkc", self.displacements, axes)
        distance = self.displacements.norm(dim=-1, keepdim=True).expand(len(axes), -1, -1, -1)
        bias = self.position(torch.cat([distance, local], dim=-1)).movedim(-1, 1)
        q, k, v = self.project(inside).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype)).transpose(1, 2).flatten(-2)
        x = x + self.grid(self.merge(attended), x.shape)
        return x + self.mlp(self.norm_mlp(x))


class ReViT(JointForecaster):
    """Patch tokens in local frames, a U-shaped windowed transformer, and a decoder at every point."""

    presets = PRESETS
    offsets: Tensor

    def __init__(self, config: Config) -> None:
        coarsest = config.grid // config.patch // 4
        if config.grid % (4 * config.patch) or coarsest % config.window:
            raise ArgumentError(
                f"expected a grid of a multiple of {4 * config.patch * config.window} points per side, "
                f"got {config.grid}"
            )
        if config.width % (2 * config.heads):
            raise ArgumentError(f"expected a width that is a multiple of twice the {config.heads} heads")
        super().__init__(config)
        points = 3 * self.channels_in  # a scalar and a vector for every input
        widths = (config.width, 2 * config.width, 4 * config.width)
        self.norm_points = nn.LayerNorm(points)
        self.attention = Attention(points, 1)
        self.lift = mlp(points, config.width, config.width)
        self.embed = nn.Sequential(nn.LayerNorm(config.width), nn.Linear(config.width, config.width))
        shifts = cycle((0, config.window // 2))  # from block to block, on through all stages
        self.stages = nn.ModuleList(
            nn.ModuleList(WindowBlock(widths[scale], config.heads, config.window, next(shifts)) for _ in range(depth))
            for scale, depth in zip((0, 1, 2, 1, 0), config.depths, strict=True)
        )
        self.down = nn.ModuleList(nn.Sequential(nn.LayerNorm(w), nn.Linear(w, 2 * w, bias=False)) for w in widths[:2])
        self.up = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(3 * w), nn.Linear(3 * w, w, bias=False)) for w in widths[1::-1]
        )
        self.norm = nn.LayerNorm(config.width)
        self.decode = mlp(config.width + 4 * OCTAVES, config.width, self.channels_out)
        position = (torch.arange(config.patch) - (config.patch - 1) / 2) / config.patch
        y, x = torch.meshgrid(position, position, indexing="ij")
        self.register_buffer("offsets", torch.stack([x, y], dim=-1).reshape(-1, 2), persistent=False)

    def patches(self, grid: Tensor) -> Tensor:
        """Cut (B, H, W, ...) into patches: (B, h, w, points of a patch, ...)."""
        batch, height, width, *rest = grid.shape
        p = self.config.patch
        blocks = grid.reshape(batch, height // p, p, width // p, p, *rest).transpose(2, 3)
        return blocks.reshape(batch, height // p, width // p, p * p, *rest)

    def tokens(self, stacked: Tensor, slopes: Tensor, frame: Tensor) -> Tensor:
        """Compute tokens (B, h, w, width) of scalars (B, n, H, W) and their gradients (B, n, H, W, 2)."""
        scalars = self.patches(stacked.movedim(1, -1))
        vectors = self.patches(slopes.movedim(1, -2))
        local = to_local(vectors, frame[:, :, :, None])
        points = torch.cat([scalars, local.flatten(-2)], dim=-1)
        shape = points.shape
        normed = self.norm_points(points).flatten(0, 2)
        points = points + self.attention(normed, normed).view(shape)
        return self.embed(self.lift(points).mean(dim=-2))

    def network(self, stacked: Tensor) -> Tensor:
        """Map (B, 4 C, H, W) to (B, 5 C, H, W)."""
        slopes = gradients(stacked)
        newest = slopes[:, -self.components :].sum(1)  # of u + v, (B, H, W, 2)
        references = [self.patches(newest).mean(dim=-2).detach()]
        references += [coarser(references[0]), coarser(coarser(references[0]))]
        axes = [frames(reference) for reference in references]
        x = self.tokens(stacked, slopes, axes[0])
        kept: list[Tensor] = []
        for number, stage in enumerate(self.stages):
            scale = min(number, 4 - number)
            if 0 < number < 3:
                kept.append(x)
                x = self.down[number - 1](_change(x, axes[scale - 1], axes[scale], coarser))
            elif number >= 3:
                fine = _change(x, axes[scale + 1], axes[scale], finer)
                x = self.up[number - 3](torch.cat([fine, kept.pop()], dim=-1))
            for block in cast(nn.ModuleList, stage):
                x = block(x, axes[scale])
        return self.points(self.norm(x), axes[0])

    def points(self, tokens: Tensor, frame: Tensor) -> Tensor:
        """Decode tokens (B, h, w, width) to fields (B, 5 C, H, W) from the position of each point within its patch."""
        position = to_local(self.offsets.expand(*frame.shape[:3], -1, -1), frame)  # (B, h, w, p p, 2)
        angles = position[..., None] * (torch.pi * 2.0 ** torch.arange(OCTAVES, device=position.device))
        waves = torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2)
        each = tokens[:, :, :, None].expand(-1, -1, -1, waves.shape[3], -1)
        values = ended_in_own_precision(self.decode, torch.cat([each, waves.to(each.dtype)], dim=-1))
        batch, height, width, _, channels = values.shape
        p = self.config.patch
        values = values.reshape(batch, height, width, p, p, channels).permute(0, 5, 1, 3, 2, 4)
        return values.reshape(batch, channels, height * p, width * p)


def _change(x: Tensor, source: Tensor, target: Tensor, resample: Callable[[Tensor], Tensor]) -> Tensor:
    """Resample features (B, h, w, n) from one scale to another, as n / 2 vectors that change from frames to frames."""
    # Vectors of different frames cannot be averaged: they are expressed along the grid for the resampling.
    vectors = to_global(x.unflatten(-1, (-1, 2)), source)
    return to_local(resample(vectors.flatten(-2)).unflatten(-1, (-1, 2)), target).flatten(-2)
