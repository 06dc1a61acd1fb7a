"""The paper's objective: predict the latent tokens of later frames as an averaged encoder computes them (S2.3-S2.5)."""

from typing import Any, ClassVar

import numpy as np
from torch import nn

from rdjepa.models.jepa import JEPA
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.diagnostics import diagnose
from rdjepa.pretraining.loss import jepa_loss
from rdjepa.pretraining.monitor import averaging_distance, gates
from rdjepa.pretraining.objectives.base import ObjectiveModel, Outcome
from rdjepa.pretraining.schedules import ema_momentum
from rdjepa.pretraining.targets import Queries


class PredictiveLatent(ObjectiveModel, JEPA):
    """Online encoder, predictor and target encoder with the predictive latent loss.

    Its settings are `targets` and `ema` of `PretrainConfig`.
    """

    watched: ClassVar[str] = "target"

    def __init__(self, model: RDJEPA, config: PretrainConfig) -> None:
        JEPA.__init__(self, model.encoder, model.predictor)
        self.config = config

    @classmethod
    def kept(cls, options: Any) -> tuple[str, ...]:
        """Return encoder and predictor."""
        return ("encoder", "predictor")

    def draw(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw region, offsets, queries and context mask."""
        return self.config.targets.sample(rng, side)

    def sample(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw from the stream of the batch itself, which the other objectives follow."""
        return self.draw(rng, side)

    def forward(self, batch: Batch) -> Outcome:
        """Compute the loss of S2.5; the watched latents are those of each sample's first queried frame."""
        latent = self.targets(batch.futures)
        predicted = self.predict(batch.context, batch.patches, batch.offsets, batch.mask)
        loss = jepa_loss(predicted, latent[batch.frame_of_query, batch.patches])
        return Outcome(loss, latent[batch.frame_of_query[:, 0]])

    def follow(self, step: int) -> dict[str, float]:
        """Move the target encoder towards the online one."""
        momentum = ema_momentum(step, self.config.steps, *self.config.ema)
        self.update_target(momentum)
        return {"momentum": momentum}

    def watch(self) -> dict[str, Any]:
        """Measure the distance of the target encoder, and the predictor's gates."""
        return {"averaging_distance": averaging_distance(self), "gates": gates(self.predictor)}

    def diagnose(self, batches: list[Batch]) -> dict[str, float]:
        """Measure latent skill and the spread of the targets, as `rdjepa.pretraining.diagnostics.diagnose`."""
        return diagnose(self, batches)

    def networks(self) -> list[nn.Module]:
        """Return online encoder, predictor and target encoder."""
        return [self.encoder, self.predictor, self.target_encoder]
