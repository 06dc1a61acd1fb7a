"""The dense decoder: predicted latent grid and newest frame to the future field (S2.6)."""

import itertools
from typing import cast

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.errors import ArgumentError
from rdjepa.models.borders import PERIODIC, ZEROS, Convolution
from rdjepa.models.device import ended_in_own_precision
from rdjepa.models.encoder import to_grid
from rdjepa.models.upsampling import double

GROUPS = 8  # of a group normalization (S2.6)


def normalization(groups: int, width: int) -> nn.Module:
    """Return a group normalization of `width` features, or what changes nothing for 0 groups."""
    return nn.GroupNorm(groups, width) if groups else nn.Identity()


class ResidualBlock(nn.Module):
    """Twice a 3x3 convolution, group normalization and SiLU, added to the input (1x1 map where widths differ)."""

    def __init__(self, width_in: int, width_out: int, groups: int, borders: str = ZEROS) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            Convolution(width_in, width_out, 3, borders=borders),
            normalization(groups, width_out),
            nn.SiLU(),
            Convolution(width_out, width_out, 3, borders=borders),
            normalization(groups, width_out),
            nn.SiLU(),
        )
        self.skip = nn.Identity() if width_in == width_out else nn.Conv2d(width_in, width_out, 1)

    def forward(self, x: Float[Tensor, "B width_in H W"]) -> Float[Tensor, "B width_out H W"]:
        """Map (B, width_in, H, W) to (B, width_out, H, W)."""
        return self.branch(x) + self.skip(x)


class Fusion(ResidualBlock):
    """A residual block over [upsampled features, features that N consecutive samples share], without the copies.

    A convolution over concatenated channels is a sum of two, of which the shared one is computed once for the N
    samples. A 1x1 map commutes with interpolation, so that of the skip connection is computed on the coarse grid.

    Args:
        width: features of the samples.
        shared: features that samples share, and of the output.
        groups: groups of the group normalizations.
        borders: what convolutions see beyond the borders (`rdjepa.models.borders`).
    """

    def __init__(self, width: int, shared: int, groups: int, borders: str = ZEROS) -> None:
        super().__init__(width + shared, shared, groups, borders)
        self.periodic = borders == PERIODIC
        self.width = width

    def forward(  # type: ignore[override]
        self, x: Float[Tensor, "BN width h w"], shared: Float[Tensor, "B shared H W"]
    ) -> Float[Tensor, "BN shared H W"]:
        """Map (B N, width, h, w) and (B, shared, H, W) to (B N, shared, H, W), where H is h or 2 h."""

        def finer(y: Tensor) -> Tensor:
            return y if y.shape[-1] == shared.shape[-1] else double(y, self.periodic)

        def over_samples(y: Tensor, once: Tensor) -> Tensor:
            return (y.unflatten(0, (shared.shape[0], -1)) + once[:, None]).flatten(0, 1)

        first, skip = cast(Convolution, self.branch[0]), cast(nn.Conv2d, self.skip)
        own, common = first.weight.split((self.width, first.in_channels - self.width), dim=1)
        branch = over_samples(first.part(finer(x), own, None), first.part(shared, common, first.bias))
        own, common = skip.weight.split((self.width, skip.in_channels - self.width), dim=1)
        skipped = over_samples(finer(F.conv2d(x, own)), F.conv2d(shared, common, skip.bias))
        return self.branch[1:](branch) + skipped


class Decoder(nn.Module):
    """D: latent tokens (B, N, S, d) and the newest frame (B, C, H, W) to fields (B, N, C, H, W).

    A pyramid of features is computed from the newest frame once and shared by the N horizons: one level for every
    halving from the fields' points to the latent grid's, which enters at the coarsest. Widths are `width` times
    1, 2, 4, 4: at 128, 64, 32 and 16 points per side for the paper's patches of 8 x 8.

    Args:
        latent: width d of the latent tokens.
        width: features at full resolution; a multiple of `groups`.
        components: field components C.
        groups: groups of the group normalizations; 0 leaves these out.
        patch: points per side of a patch, a power of two.
        borders: what convolutions see beyond the borders of the fields (`rdjepa.models.borders`).

    Raises:
        ArgumentError: another size of a patch.
    """

    def __init__(
        self,
        latent: int,
        width: int,
        components: int = 2,
        groups: int = GROUPS,
        patch: int = 8,
        borders: str = ZEROS,
    ) -> None:
        super().__init__()
        if patch < 2 or patch & (patch - 1):
            raise ArgumentError(f"expected a patch of 2, 4, 8, ... points per side, got {patch}; name one of them")
        widths = [width * min(2**level, 4) for level in range(patch.bit_length())]
        steps = list(itertools.pairwise(widths))
        self.stem = ResidualBlock(components, widths[0], groups, borders)
        self.down = nn.ModuleList(Convolution(a, b, 4, 2, borders) for a, b in steps)
        self.pyramid = nn.ModuleList(ResidualBlock(w, w, groups, borders) for w in widths[1:])
        self.latent = nn.Sequential(nn.LayerNorm(latent), nn.Linear(latent, widths[-1]))
        self.fuse = Fusion(widths[-1], widths[-1], groups, borders)
        self.up = nn.ModuleList(Fusion(b, a, groups, borders) for a, b in reversed(steps))
        self.head = nn.Sequential(
            Convolution(width, width, 3, borders=borders),
            normalization(groups, width),
            nn.SiLU(),
            nn.Conv2d(width, components, 1),
        )

    def features(self, frame: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B _ _ _"]]:
        """Return the pyramid F0, F1, ... of the newest frame, finest first, each (B, width_i, H / 2^i, W / 2^i)."""
        levels = [self.stem(frame)]
        for down, block in zip(self.down, self.pyramid, strict=True):
            levels.append(block(down(levels[-1])))
        return levels

    def forward(self, latent: Float[Tensor, "B N S d"], frame: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N C H W"]:
        """Decode N latent grids (B, N, S, d) given the newest frame (B, C, H, W).

        Raises:
            ArgumentError: as many newest frames as there are contexts are not given.
        """
        if latent.shape[0] != frame.shape[0]:
            raise ArgumentError(
                f"expected a newest frame for each of {latent.shape[0]} contexts, got {frame.shape[0]}; give "
                "context[:, -1]"
            )
        *finer, coarsest = self.features(frame)
        # A grid of tokens lies in memory with channels last, for which group normalization is several times slower.
        x = self.fuse(to_grid(self.latent(latent).flatten(0, 1)).contiguous(), coarsest)
        for block, level in zip(self.up, reversed(finer), strict=True):
            x = block(x, level)
        return ended_in_own_precision(self.head, x).unflatten(0, latent.shape[:2])
