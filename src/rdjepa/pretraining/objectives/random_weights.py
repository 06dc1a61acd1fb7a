"""No objective: the random weights of a seed, the floor for every other one."""

from typing import Any

import numpy as np

from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.objectives.base import ObjectiveModel, Outcome
from rdjepa.pretraining.targets import Queries


class RandomWeights(ObjectiveModel):
    """The encoder as it was drawn; a run makes no step."""

    @classmethod
    def kept(cls, options: Any) -> tuple[str, ...]:
        """Return nothing: every network is fresh."""
        return ()

    def draw(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw nothing; the context alone is read, for the diagnostics."""
        return Queries.of_frames(np.zeros(0, dtype=np.int64), side)

    def forward(self, batch: Batch) -> Outcome:
        """Refuse: there is no loss."""
        raise NotImplementedError("random weights are not trained")

    def diagnose(self, batches: list[Batch]) -> dict[str, float]:
        """Measure the spread of the encoder's tokens."""
        return self.spread(batches)
