"""CNextU-Net: the ConvNeXt U-Net of The Well's benchmark (S3.2).

Source: Ohana et al., The Well, NeurIPS 2024, and its public model (BSD-3-Clause, Polymathic AI), whose defaults the
paper uses; written anew, with the same 18,574,594 parameters. Kept from there: the channel normalization of the
resampling layers divides by the Euclidean norm over channels, and its bias is never used (frozen here: it is
counted among the parameters and gets no gradient); a skip connection has what enters the blocks of a scale, not what
leaves them, and the first scale has none; convolutions pad with zeros; layer scales start at 1e-6.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.joint import JointForecaster
from rdjepa.models.device import in_own_precision


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are the paper's.

    Attributes:
        width: channels at full resolution; each scale doubles them.
        scales: encoder and decoder scales.
        blocks: ConvNeXt blocks per scale.
        neck: blocks at the coarsest grid.
        layer_scale: initial value of the learned factor of every block.
        rate: learning rate (Table S5).
        grid: points per side, a multiple of 2^scales.
        components: field components.
    """

    width: int = 42
    scales: int = 4
    blocks: int = 2
    neck: int = 1
    layer_scale: float = 1e-6
    rate: float = 2e-4
    grid: int = 128
    components: int = 2


PRESETS = {"paper": Config(), "nano": Config(width=14, rate=3e-4, grid=64)}


class ChannelNorm(nn.Module):
    """x / max(||x||_2 over channels, 1e-12), times a weight."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels), requires_grad=False)  # counted, never used

    def forward(self, x: Tensor) -> Tensor:
        """Normalize (B, C, H, W)."""
        return F.normalize(x, dim=1) * self.weight[:, None, None]


class Block(nn.Module):
    """x + gamma (Linear(GELU(Linear(LayerNorm(depthwise 7x7 convolution of x)))))."""

    def __init__(self, channels: int, layer_scale: float) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.expand = nn.Linear(channels, 4 * channels)
        self.contract = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), layer_scale))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, C, H, W) to the same shape."""
        inner = self.norm(self.depthwise(x).movedim(1, -1))
        return x + (self.gamma * self.contract(F.gelu(self.expand(inner)))).movedim(-1, 1)


class CNextUNet(JointForecaster):
    """Four scales down, a neck, four scales up with skip connections from all scales but the first."""

    presets = PRESETS

    def __init__(self, config: Config) -> None:
        if config.grid % 2**config.scales:
            raise ArgumentError(
                f"expected a grid of a multiple of {2**config.scales} points per side, got {config.grid}"
            )
        super().__init__(config)
        widths = [config.width * 2**i for i in range(config.scales + 1)]

        def blocks(channels: int, count: int) -> nn.Sequential:
            return nn.Sequential(*(Block(channels, config.layer_scale) for _ in range(count)))

        self.enter = nn.Conv2d(self.channels_in, widths[0], 3, padding=1)
        self.encoder = nn.ModuleList(blocks(w, config.blocks) for w in widths[:-1])
        self.down = nn.ModuleList(
            nn.Sequential(ChannelNorm(a), nn.Conv2d(a, b, 2, stride=2)) for a, b in pairwise(widths)
        )
        self.neck = blocks(widths[-1], config.neck)
        coarse_first = widths[:0:-1]  # without the full resolution, at which no decoder block works
        self.skip = nn.ModuleList(nn.Conv2d(2 * w, w, 1) for w in coarse_first[1:])
        self.decoder = nn.ModuleList(blocks(w, config.blocks) for w in coarse_first)
        self.up = nn.ModuleList(
            nn.Sequential(ChannelNorm(w), nn.ConvTranspose2d(w, w // 2, 2, stride=2)) for w in coarse_first
        )
        self.leave = nn.Conv2d(widths[0], self.channels_out, 3, padding=1)

    def network(self, stacked: Tensor) -> Tensor:
        """Map (B, 4 C, H, W) to (B, 5 C, H, W)."""
        x, kept = self.enter(stacked), []
        for blocks, down in zip(self.encoder, self.down, strict=True):
            kept.append(x)
            x = down(blocks(x))
        x = self.neck(x)
        for number, (blocks, up) in enumerate(zip(self.decoder, self.up, strict=True)):
            if number:
                x = self.skip[number - 1](torch.cat([x, kept[-number]], dim=1))
            x = up(blocks(x))
        return in_own_precision(self.leave, x)
