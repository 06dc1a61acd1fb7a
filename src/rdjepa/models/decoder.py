"""The dense decoder: predicted latent grid and newest frame to the future field (S2.6)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.models.encoder import to_grid


class ResidualBlock(nn.Module):
    """Twice a 3x3 convolution, group normalization and SiLU, added to the input (1x1 map where widths differ)."""

    def __init__(self, width_in: int, width_out: int, groups: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(width_in, width_out, 3, padding=1),
            nn.GroupNorm(groups, width_out),
            nn.SiLU(),
            nn.Conv2d(width_out, width_out, 3, padding=1),
            nn.GroupNorm(groups, width_out),
            nn.SiLU(),
        )
        self.skip = nn.Identity() if width_in == width_out else nn.Conv2d(width_in, width_out, 1)

    def forward(self, x: Float[Tensor, "B width_in H W"]) -> Float[Tensor, "B width_out H W"]:
        """Map (B, width_in, H, W) to (B, width_out, H, W)."""
        return self.branch(x) + self.skip(x)


class Decoder(nn.Module):
    """D: latent tokens (B, N, S, d) and the newest frame (B, C, H, W) to fields (B, N, C, H, W).

    A pyramid of features at 128, 64, 32 and 16 points per side is computed from the newest frame once and shared by
    the N horizons; the latent grid enters at the coarsest level. Widths are (1, 2, 4, 4) times `width`.

    Args:
        latent: width d of the latent tokens.
        width: features at full resolution; a multiple of `groups`.
        components: field components C.
        groups: groups of the group normalizations.
    """

    def __init__(self, latent: int, width: int, components: int = 2, groups: int = 8) -> None:
        super().__init__()
        w0, w1, w2, w3 = width, 2 * width, 4 * width, 4 * width
        self.stem = ResidualBlock(components, w0, groups)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 4, stride=2, padding=1) for a, b in ((w0, w1), (w1, w2), (w2, w3)))
        self.pyramid = nn.ModuleList(ResidualBlock(w, w, groups) for w in (w1, w2, w3))
        self.latent = nn.Sequential(nn.LayerNorm(latent), nn.Linear(latent, w3))
        self.fuse = ResidualBlock(2 * w3, w3, groups)
        self.up = nn.ModuleList(ResidualBlock(a + b, b, groups) for a, b in ((w3, w2), (w2, w1), (w1, w0)))
        self.head = nn.Sequential(
            nn.Conv2d(w0, w0, 3, padding=1), nn.GroupNorm(groups, w0), nn.SiLU(), nn.Conv2d(w0, components, 1)
        )

    def features(self, frame: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B _ _ _"]]:
        """Return the pyramid F0..F3 of the newest frame, finest first, each (B, width_i, H / 2^i, W / 2^i)."""
        levels = [self.stem(frame)]
        for down, block in zip(self.down, self.pyramid, strict=True):
            levels.append(block(down(levels[-1])))
        return levels

    def forward(self, latent: Float[Tensor, "B N S d"], frame: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N C H W"]:
        """Decode N latent grids (B, N, S, d) given the newest frame (B, C, H, W)."""
        batch, horizons = latent.shape[:2]

        def shared(level: Tensor) -> Tensor:
            # Horizons join the batch only here: the pyramid depends on the newest frame alone, so it is computed once.
            return level[:, None].expand(-1, horizons, -1, -1, -1).flatten(0, 1)

        *finer, coarsest = self.features(frame)
        x = to_grid(self.latent(latent).flatten(0, 1))
        x = self.fuse(torch.cat([x, shared(coarsest)], dim=1))
        for block, level in zip(self.up, reversed(finer), strict=True):
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = block(torch.cat([x, shared(level)], dim=1))
        return self.head(x).unflatten(0, (batch, horizons))
