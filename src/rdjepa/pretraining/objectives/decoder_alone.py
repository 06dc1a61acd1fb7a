"""The decoder alone, on what a pretrained encoder and predictor give: their latents are learned, now fields are read.

The paper starts a fresh decoder for every new system (S2.6). One that has learned to read the latents of the sources
has less to learn from a few trajectories. Encoder and predictor stay as they were pretrained.
"""

from typing import Any, ClassVar

import numpy as np

from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.loss import forecast_loss
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.objectives.base import ObjectiveModel, Outcome
from rdjepa.pretraining.targets import Queries


class DecoderAlone(ObjectiveModel):
    """The loss of adaptation (S2.6) on D(P(E(context), h), newest frame) at its five horizons, for D alone."""

    exact: ClassVar[bool] = True

    def __init__(self, model: RDJEPA, config: PretrainConfig) -> None:
        super().__init__(model, config)
        self.predictor, self.decoder = model.predictor, model.decoder
        self.encoder.requires_grad_(False)
        self.predictor.requires_grad_(False)

    @classmethod
    def kept(cls, options: Any) -> tuple[str, ...]:
        """Return all three networks."""
        return ("encoder", "predictor", "decoder")

    def draw(self, rng: np.random.Generator, side: int) -> Queries:
        """Ask for the frames of all horizons of adaptation."""
        return Queries.of_frames(np.arange(1, HORIZONS + 1), side)

    def forward(self, batch: Batch) -> Outcome:
        """Forecast the fields at every horizon."""
        latent = self.encoder(batch.context)
        predicted = self.decoder(self.predictor.full_grid(latent, HORIZONS), batch.context[:, -1])
        return Outcome(forecast_loss(predicted, batch.futures[batch.frame_of_query]), latent.detach())
