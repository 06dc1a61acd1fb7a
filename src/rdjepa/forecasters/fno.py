"""Fourier neural operator: six Fourier layers, coordinates, and a head for all horizons at once (S3.2).

Source: Li et al., Fourier Neural Operator for Parametric Partial Differential Equations, ICLR 2021; the settings are
the paper's. "16 x 16 modes" can be read in two ways, and `convention` selects one: "li", 16 rows each of positive and
negative frequency and 16 columns, as in the authors' scripts (the default, and the larger model), or "neuralop", 16
rows in total and 9 columns, as in the neuraloperator package. Other choices: coordinates j / N without the end point,
readout width 128, weights uniform on [0, 1) over width^2, as in the authors' scripts.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rdjepa.forecasters.fourier import DenseSpectralConvolution
from rdjepa.forecasters.joint import JointForecaster, coordinates
from rdjepa.models.device import ended_in_own_precision


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are the paper's.

    Attributes:
        width: channels of the Fourier layers.
        layers: Fourier layers.
        modes: modes per direction.
        convention: how `modes` is counted, "li" or "neuralop".
        readout: channels between the two maps of the head.
        rate: learning rate (Table S5).
        grid: points per side.
        components: field components.
    """

    width: int = 192
    layers: int = 6
    modes: int = 16
    convention: Literal["li", "neuralop"] = "li"
    readout: int = 128
    rate: float = 2e-4
    grid: int = 128
    components: int = 2


PRESETS = {"paper": Config(), "nano": Config(width=24, modes=12, readout=64, rate=3e-3, grid=64)}


class FNO(JointForecaster):
    """v <- GELU(W v + K v) in every layer but the last, which has no activation; K is the spectral convolution."""

    presets = PRESETS

    space: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        li = config.convention == "li"
        rows = (config.modes, config.modes) if li else (config.modes - config.modes // 2, config.modes // 2)
        columns = config.modes if li else config.modes // 2 + 1
        self.lift = nn.Conv2d(self.channels_in + 2, config.width, 1)
        self.spectral = nn.ModuleList(
            DenseSpectralConvolution(config.width, *rows, columns) for _ in range(config.layers)
        )
        self.local = nn.ModuleList(nn.Conv2d(config.width, config.width, 1) for _ in range(config.layers))
        self.head = nn.Sequential(
            nn.Conv2d(config.width, config.readout, 1), nn.GELU(), nn.Conv2d(config.readout, self.channels_out, 1)
        )
        for layer in self.spectral:
            layer.check(config.grid, config.grid)  # type: ignore[operator]
        self.register_buffer("space", coordinates(config.grid, config.grid), persistent=False)

    def network(self, stacked: Tensor) -> Tensor:
        """Map (B, 4 C, H, W) to (B, 5 C, H, W)."""
        v = self.lift(torch.cat([stacked, self.space.expand(stacked.shape[0], -1, -1, -1)], dim=1))
        for number, (spectral, local) in enumerate(zip(self.spectral, self.local, strict=True), start=1):
            v = spectral(v) + local(v)
            if number < len(self.spectral):
                v = F.gelu(v)
        return ended_in_own_precision(self.head, v)
