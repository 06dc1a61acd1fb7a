"""Riesz neural operator: identity and Riesz transforms, mixed, before a low-mode spectral convolution (S3.2).

Source: Liu, Yang, Chen, Riesz Neural Operator, ICLR 2026, of which no code is public; the settings are the paper's. The
published count, 172k parameters at one field in and out (complex ones counted once), fixes two blocks of modes,
three mixing scalars, one pointwise bypass and a readout of 128; a test counts them. Choices: the multiplier is that
of the Riesz transform, -i k_j / |k|, for which the two transforms together conserve the energy of a field of zero mean;
the mixing scalars start at 1; instance normalization before and after, and a sine in the head, as in the related
Laplace neural operator.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rdjepa.forecasters.fourier import DenseSpectralConvolution, real_inverse
from rdjepa.forecasters.joint import JointForecaster, coordinates
from rdjepa.models.device import in_own_precision


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are the paper's.

    Attributes:
        width: channels of the spectral layer.
        modes: modes per direction and sign.
        readout: channels between the two maps of the head.
        rate: learning rate (Table S5).
        grid: points per side.
        components: field components.
    """

    width: int = 36
    modes: int = 8
    readout: int = 128
    rate: float = 2e-4
    grid: int = 128
    components: int = 2


PRESETS = {"paper": Config(), "nano": Config(rate=9e-3, grid=64)}


def riesz_multipliers(height: int, width: int) -> Tensor:
    """Return -k_j / |k| for j = y, x on the half spectrum, (2, H, W // 2 + 1), zero at k = 0, without the factor i."""
    ky = torch.fft.fftfreq(height, 1 / height)[:, None].expand(-1, width // 2 + 1)
    kx = torch.fft.rfftfreq(width, 1 / width)[None].expand(height, -1)
    size = torch.hypot(ky, kx)
    return -torch.stack([ky, kx]) / torch.where(size > 0, size, 1.0)


class RieszNO(JointForecaster):
    """Lift, norm(spectral(mix(norm(v)))) + pointwise map, and a head with a sine between its two maps."""

    presets = PRESETS

    space: Tensor
    multipliers: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.lift = nn.Conv2d(self.channels_in + 2, config.width, 1)
        self.mixing = nn.Parameter(torch.ones(3))
        self.spectral = DenseSpectralConvolution(config.width, config.modes, config.modes, config.modes)
        self.spectral.check(config.grid, config.grid)
        self.local = nn.Conv2d(config.width, config.width, 1)
        self.hidden = nn.Conv2d(config.width, config.readout, 1)
        self.head = nn.Conv2d(config.readout, self.channels_out, 1)
        self.register_buffer("space", coordinates(config.grid, config.grid), persistent=False)
        self.register_buffer("multipliers", riesz_multipliers(config.grid, config.grid), persistent=False)

    def mixed(self, v: Tensor) -> Tensor:
        """Apply the spectral layer to fields (B, width, H, W), in float32 whatever the precision around it."""
        with torch.autocast(v.device.type, enabled=False):
            spectrum = torch.fft.rfft2(v.float())
            factor = torch.complex(
                self.mixing[0].expand(self.multipliers.shape[1:]),
                self.mixing[1] * self.multipliers[0] + self.mixing[2] * self.multipliers[1],
            )
            return real_inverse(self.spectral.multiply(spectrum * factor), v.shape[-2:])

    def network(self, stacked: Tensor) -> Tensor:
        """Map (B, 4 C, H, W) to (B, 5 C, H, W)."""
        v = self.lift(torch.cat([stacked, self.space.expand(stacked.shape[0], -1, -1, -1)], dim=1))
        v = F.instance_norm(self.mixed(F.instance_norm(v))) + self.local(v)
        return in_own_precision(self.head, torch.sin(self.hidden(v)))
