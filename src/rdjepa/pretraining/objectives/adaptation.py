"""Adaptation to all systems at once: predictor and decoder learn fields, on the latents of a pretrained encoder.

What S2.6 does for one system and a few trajectories, for the systems of a pretraining before a new one is met.
"""

from typing import ClassVar

from rdjepa.pretraining.objectives.decoder_alone import DecoderAlone


class Adaptation(DecoderAlone):
    """The loss of adaptation (S2.6), for predictor and decoder; the encoder stays as it was pretrained."""

    tunes_predictor: ClassVar[bool] = True
