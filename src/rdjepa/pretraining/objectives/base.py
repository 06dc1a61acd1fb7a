"""The interface of all objectives: the networks of a pretraining, what it asks of a window, and the loss of a batch."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rdjepa.checks import of_class
from rdjepa.errors import ArgumentError
from rdjepa.models.encoder import Encoder
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.diagnostics import normalized, positions, spread
from rdjepa.pretraining.targets import Queries


class Outcome(NamedTuple):
    """What an objective makes of a batch.

    Attributes:
        loss: scalar in float32.
        latent: (B, S, d) latent tokens without gradient whose spread over the latest samples is watched.
    """

    loss: Tensor
    latent: Tensor


def require_outcome(found: Any, objective: type) -> Outcome:
    """Return what an objective made of a batch, or refuse what no step could be made with.

    Raises:
        ArgumentError: no outcome, a loss that is no scalar or reaches no weight, or a latent that is no tensor.
    """
    name = f"`forward` of {objective.__name__}"
    loss, latent = of_class(found, Outcome, f"what {name} returns")
    if not isinstance(loss, Tensor) or loss.ndim or not loss.requires_grad:
        raise ArgumentError(
            f"expected a scalar loss that depends on trained weights from {name}, got {_told(loss)}; return its mean"
        )
    if not isinstance(latent, Tensor) or latent.ndim != 3:
        raise ArgumentError(f"expected latent tokens (B, S, d) from {name}, got {_told(latent)}; return the encoder's")
    return found


def _told(value: Any) -> str:
    """Say what a value is that should have been a tensor of another kind."""
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"shape {tuple(value.shape)}" + " without gradient" * (not value.requires_grad)


class ObjectiveModel(nn.Module, ABC):
    """The encoder, the networks that are trained beside it, and the loss that trains them.

    A parameter is trained if it requires a gradient; what the loss does not reach must not. Networks are those of
    `model`, taken, not copied; an objective's own ones are made in its constructor, with the seed of the run.

    Attributes:
        options: frozen dataclass of the objective's own settings, with defaults; None for one that has none.
        watched: what `Outcome.latent` and the spread in the diagnostics are of.
        whole_batch: whether the loss compares the samples of a batch, which then cannot be divided over passes or
            processes.
        exact: whether frames are kept in float32 whatever the precision of the run, because what they differ by counts.
            Without it a run in bfloat16 rounds them, also where the loss compares with them, not only before the first
            layer, which rounds them anyway.
        encoder: the online encoder.
        config: settings of the run.
    """

    options: ClassVar[type | None] = None
    watched: ClassVar[str] = "latent"
    whole_batch: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    encoder: Encoder

    def __init__(self, model: RDJEPA, config: PretrainConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = model.encoder

    @classmethod
    def kept(cls, options: Any) -> tuple[str, ...]:
        """Return the networks of RD-JEPA whose weights go into the checkpoint; the others there are fresh."""
        return ("encoder",)

    @classmethod
    def summary(cls, options: Any) -> str | None:
        """Return what pretraining does where its settings say more than the objective's `summary`; None otherwise."""
        return None

    @abstractmethod
    def draw(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw what one sample is asked and which frames it needs, on a latent grid of `side` tokens a side."""

    def sample(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw one sample's queries from a stream of its own.

        The stream of the batch goes on as it does with the predictive latent objective, so that one seed gives every
        objective the same windows in the same order.
        """
        self.config.targets.sample(rng, side)
        return self.draw(rng.spawn(1)[0], side)

    @abstractmethod
    def forward(self, batch: Batch) -> Outcome:
        """Compute the loss of some samples."""

    def follow(self, step: int) -> dict[str, float]:
        """Do what comes after optimizer step number `step`, from 0, and return its numbers for the metrics."""
        return {}

    def watch(self) -> dict[str, Any]:
        """Measure quantities of the weights alone, for every line of metrics."""
        return {}

    @torch.no_grad()
    def diagnose(self, batches: list[Batch]) -> dict[str, float]:
        """Measure on held-out batches.

        Returns:
            held_out_loss: the mean loss of `batches`.
            latent_std, latent_rank, latent_cosine: `spread` of the encoder's tokens of the complete contexts.
        """
        loss = sum(float(self(batch).loss) for batch in batches) / len(batches)
        return {"held_out_loss": loss, **self.spread(batches)}

    @torch.no_grad()
    def spread(self, batches: list[Batch]) -> dict[str, float]:
        """Measure how much the encoder's tokens of complete contexts differ across samples."""
        latent = torch.cat([self.encoder(batch.context) for batch in batches])
        where = positions(latent.shape[1]).to(latent.device)
        return spread(normalized(latent[:, where]), "latent")

    def networks(self) -> list[nn.Module]:
        """Return the networks that may be compiled, each for itself; small heads are not worth it."""
        return [self.encoder]

    def trainable(self) -> list[nn.Parameter]:
        """Return the parameters that are trained, in a fixed order."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]
