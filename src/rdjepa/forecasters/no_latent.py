"""The no-predictive-latent control: RD-JEPA's decoder on the newest frame and a lead time alone (S3.2).

The latent grid of each horizon is a spatially constant embedding of the lead time, which is independent of the sample.
The paper leaves the form of the embedding open; ours is that of the predictor (S2.4).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rdjepa.forecasters.base import HORIZONS, Configured
from rdjepa.models.decoder import GROUPS, Decoder
from rdjepa.models.embeddings import LeadTimeEmbedding


@dataclass(frozen=True)
class Config:
    """Sizes and rates; the defaults are the paper's.

    Attributes:
        width: width of the lead-time embedding, RD-JEPA's latent width.
        decoder_width: decoder features at full resolution.
        decoder_groups: groups of the decoder's group normalizations; 0 for none.
        patch: points per side of a patch of the latent grid.
        conditioner_rate: learning rate of the embedding (Table S5).
        decoder_rate: learning rate of the decoder.
        grid: points per side.
        components: field components.
    """

    width: int = 512
    decoder_width: int = 96
    patch: int = 8
    conditioner_rate: float = 1e-4
    decoder_rate: float = 2e-4
    grid: int = 128
    components: int = 2
    decoder_groups: int = GROUPS


PRESETS = {
    "paper": Config(),
    "small": Config(384, 64, conditioner_rate=3e-4, decoder_rate=5e-4, decoder_groups=4),
    "nano": Config(128, 16, patch=4, conditioner_rate=5e-4, decoder_rate=1e-3, grid=64, decoder_groups=0),
}


class NoLatent(Configured):
    """Decoder(constant grid of e_h, newest frame) for h = 1..5."""

    presets = PRESETS

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.conditioner = LeadTimeEmbedding(config.width)
        self.decoder = Decoder(
            config.width, config.decoder_width, config.components, config.decoder_groups, config.patch
        )

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return the newest frame (B, C, H, W), the only input of this control."""
        return (context[:, -1],)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        (frame,) = features
        lead = self.conditioner(torch.arange(1, HORIZONS + 1, device=frame.device))
        tokens = (self.config.grid // self.config.patch) ** 2
        return self.decoder(lead[None, :, None].expand(frame.shape[0], -1, tokens, -1), frame)

    def parameter_groups(self) -> list[dict]:
        """Return one group for the embedding and one for the decoder."""
        return [
            {"params": list(self.conditioner.parameters()), "lr": self.config.conditioner_rate},
            {"params": list(self.decoder.parameters()), "lr": self.config.decoder_rate},
        ]
