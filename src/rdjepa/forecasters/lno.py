"""Laplace neural operator: one pole-residue layer with steady and transient parts (S3.2).

Source: Cao, Goswami, Karniadakis, Laplace neural operator for solving differential equations, Nature Machine
Intelligence 6 (2024), and the authors' script for reaction-diffusion in two dimensions, whose width and poles the paper
uses; the readout is theirs too. The authors' evaluation builds tensors over (H, W, width, width, poles, poles), 5 GB
each; the fractions factorize over the two directions, so this one holds (width, width, H, W) at most; a test compares
the two.

Kept from the authors: coordinates as input (here without the end point); instance normalization without parameters
before and after the layer; poles with positive real part at the start and unconstrained later, so the axes run over
[0, 1]; and the transient part, which contracts the first index of the poles with the output of the residue sum, so that
channels are mixed twice. Always in float32: near a pole the terms reach 1e6, and the rest takes little time.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rdjepa.forecasters.joint import JointForecaster, coordinates


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are the paper's.

    Attributes:
        width: channels of the pole-residue layer.
        poles: poles per direction.
        readout: channels between the two maps of the head.
        rate: learning rate (Table S5).
        grid: points per side.
        components: field components.
    """

    width: int = 48
    poles: int = 4
    readout: int = 128
    rate: float = 2e-4
    grid: int = 128
    components: int = 2


PRESETS = {"paper": Config(), "nano": Config(width=16, readout=64, rate=1e-2, grid=64)}


class PoleResidue(nn.Module):
    """The layer: y = Re F^-1(sum_i alpha_i H_io) + transient, alpha = F(v), on [0, 1] x [0, 1].

    H_io(k) = sum_mn R_io,mn / ((i omega_k1 - p_io,m) (i omega_k2 - q_io,n)).

    Args:
        width: channels in and out.
        poles: poles per direction.
    """

    def __init__(self, width: int, poles: int) -> None:
        super().__init__()
        scale = 1 / width**2
        self.poles_1 = nn.Parameter(scale * torch.rand(width, width, poles, 2))
        self.poles_2 = nn.Parameter(scale * torch.rand(width, width, poles, 2))
        self.residues = nn.Parameter(scale * torch.rand(width, width, poles, poles, 2))

    def fractions(self, height: int, width: int) -> tuple[Tensor, Tensor]:
        """Return 1 / (i omega - pole) along each direction, (in, out, points, poles)."""
        device = self.residues.device

        def along(points: int, poles: Tensor) -> Tensor:
            # the axes include both ends of [0, 1], so points are 1 / (points - 1) apart
            omega = 2 * torch.pi * torch.fft.fftfreq(points, 1 / (points - 1), device=device)
            return 1 / (1j * omega[:, None] - torch.view_as_complex(poles)[:, :, None])

        return along(height, self.poles_1), along(width, self.poles_2)

    def forward(self, v: Tensor) -> Tensor:
        """Map (B, width, H, W) to the same shape."""
        height, width = v.shape[-2:]
        alpha = torch.fft.fft2(v)
        first, second = self.fractions(height, width)
        residues = torch.view_as_complex(self.residues)
        half = torch.einsum("ioxm,iomn->ioxn", first, residues)
        transfer = torch.einsum("ioxn,ioyn->ioxy", half, second)
        steady = torch.fft.ifft2(torch.einsum("bixy,ioxy->boxy", alpha, transfer)).real
        # sum over k of alpha_i(k) / ((i omega_1 - p_m)(i omega_2 - q_n)), one direction after the other
        partial = torch.einsum("bixy,ioyn->bioxn", alpha, second)
        rho = torch.einsum("bioxn,ioxm,iomn->bomn", partial, first, residues)
        waves = (
            torch.exp(torch.view_as_complex(poles)[:, :, :, None] * torch.linspace(0, 1, points, device=v.device))
            for poles, points in ((self.poles_1, height), (self.poles_2, width))
        )
        wave_1, wave_2 = waves  # (first index, channel, poles, points)
        inner = torch.einsum("bomn,ocny->bocmy", rho, wave_2)
        transient = torch.einsum("bocmy,ocmx->bcxy", inner, wave_1).real / (height * width)
        return steady + transient


class LNO(JointForecaster):
    """Lift, norm(pole-residue(norm(v))) + pointwise map, and a head with a sine between its two maps."""

    presets = PRESETS

    space: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.lift = nn.Conv2d(self.channels_in + 2, config.width, 1)
        self.layer = PoleResidue(config.width, config.poles)
        self.local = nn.Conv2d(config.width, config.width, 1)
        self.hidden = nn.Conv2d(config.width, config.readout, 1)
        self.head = nn.Conv2d(config.readout, self.channels_out, 1)
        self.register_buffer("space", coordinates(config.grid, config.grid), persistent=False)

    def network(self, stacked: Tensor) -> Tensor:
        """Map (B, 4 C, H, W) to (B, 5 C, H, W)."""
        with torch.autocast(stacked.device.type, enabled=False):
            v = self.lift(torch.cat([stacked.float(), self.space.expand(stacked.shape[0], -1, -1, -1)], dim=1))
            v = F.instance_norm(self.layer(F.instance_norm(v))) + self.local(v)
            return self.head(torch.sin(self.hidden(v)))
