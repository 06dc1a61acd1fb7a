"""Adaptation to all systems at once: predictor and decoder learn fields, on the latents of a pretrained encoder.

What S2.6 does for one system and a few trajectories, for the systems of a pretraining before a new one is met. The
encoder, which S2.6 freezes, learns with them if asked.
"""

from dataclasses import dataclass
from typing import ClassVar

from rdjepa.checks import check
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.objectives.decoder_alone import DecoderAlone


@dataclass(frozen=True)
class AdaptationOptions:
    """Settings of the adaptation to all systems.

    Attributes:
        encoder: whether the encoder learns too; it stays as it was pretrained otherwise, as in S2.6.
    """

    encoder: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        check(self)


class Adaptation(DecoderAlone):
    """The loss of adaptation (S2.6), for predictor and decoder, and for the encoder where the settings say so."""

    options: ClassVar[type | None] = AdaptationOptions

    def __init__(self, model: RDJEPA, config: PretrainConfig) -> None:
        super().__init__(model, config)
        self.predictor.requires_grad_(True)
        if config.options.encoder:
            self.encoder.requires_grad_(True)
            self.encoder.mask_token.requires_grad_(False)  # no token is hidden

    @classmethod
    def summary(cls, options: AdaptationOptions) -> str | None:
        """Return what is done where the encoder learns too."""
        return "forecasting fields with all three networks" if options.encoder else None
