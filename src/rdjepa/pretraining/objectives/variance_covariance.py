"""Variance, invariance and covariance of features of two windows of a trajectory (VICReg).

Bardes, Ponce, LeCun, ICLR 2022. The two views are the context and the four frames a few intervals later. Tokens are
averaged over cells of the grid and pass a projector, which is thrown away. A cell counts as a sample, and features are
centered over the batch cell by cell: otherwise a network that only says where it looks would have varied, decorrelated
features that agree in both views.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from rdjepa.checks import Count, NotNegative, check
from rdjepa.data.windows import PRETRAINING
from rdjepa.errors import ArgumentError
from rdjepa.models.attention import mlp
from rdjepa.models.encoder import to_grid, to_tokens
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.objectives.base import ObjectiveModel, Outcome
from rdjepa.pretraining.targets import Queries

SPREAD, FLOOR = 1.0, 1e-4  # gamma and epsilon of the variance term


@dataclass(frozen=True)
class VarianceOptions:
    """Settings of the variance-covariance objective; the weights of the terms are those of VICReg.

    Attributes:
        invariance, variance, covariance: weights of the terms.
        cells: cells a side that tokens are averaged over; it divides the tokens a side, and 1 averages the whole field.
        expansion: features of the projector, in widths of the encoder.
    """

    invariance: NotNegative = 25.0
    variance: NotNegative = 25.0
    covariance: NotNegative = 1.0
    cells: Count = 4
    expansion: Count = 4

    def __post_init__(self) -> None:
        """Check the values."""
        check(self)


def centered(features: Float[Tensor, "B P D"]) -> tuple[Tensor, int]:
    """Subtract the mean over the batch, position by position; return (B P, D) and the degrees of freedom (B - 1) P."""
    batch, positions, _ = features.shape
    return (features - features.mean(0, keepdim=True)).flatten(0, 1), (batch - 1) * positions


def variance_term(features: Float[Tensor, "B P D"]) -> Float[Tensor, ""]:
    """Return v(Z), the mean over features of max(0, 1 - sqrt(Var + 1e-4)) (VICReg, equation 1)."""
    deviations, freedom = centered(features)
    return F.relu(SPREAD - (deviations.square().sum(0) / freedom + FLOOR).sqrt()).mean()


def covariance_term(features: Float[Tensor, "B P D"]) -> Float[Tensor, ""]:
    """Return c(Z), the sum of the squared covariances of different features over their number (equation 4)."""
    deviations, freedom = centered(features)
    squares = (deviations.T @ deviations / freedom).square()
    return (squares.sum() - squares.diagonal().sum()) / features.shape[-1]


class VarianceCovariance(ObjectiveModel):
    """Encoder and projector of two windows, with the weighted terms; the invariance is a mean over features too."""

    options: ClassVar[type | None] = VarianceOptions
    whole_batch: ClassVar[bool] = True

    def __init__(self, model: RDJEPA, config: PretrainConfig) -> None:
        super().__init__(model, config)
        cells, side = config.options.cells, model.config.side
        if side % cells:
            raise ArgumentError(f"expected cells a side that divide {side} tokens, got {cells}; change the cells")
        if config.batch < 2:
            raise ArgumentError(f"expected a batch of at least 2 to take variances of, got {config.batch}; raise it")
        width = model.config.width
        self.projector = mlp(width, config.options.expansion * width, config.options.expansion * width)
        self.encoder.mask_token.requires_grad_(False)  # no token is hidden

    def draw(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw how much later the second window is, and name its frames."""
        later = rng.integers(1, self.config.targets.max_offset, endpoint=True)
        return Queries.of_frames(np.arange(later - PRETRAINING.context + 1, later + 1), side)

    def features(self, latent: Float[Tensor, "B S d"]) -> Float[Tensor, "B P D"]:
        """Average tokens over cells, and project them."""
        grid = to_grid(latent.float())
        return self.projector(to_tokens(F.avg_pool2d(grid, grid.shape[-1] // self.config.options.cells))).float()

    def forward(self, batch: Batch) -> Outcome:
        """Encode both windows at once, and weigh the terms."""
        options = self.config.options
        latent = self.encoder(torch.cat([batch.context, batch.futures[batch.frame_of_query]]))
        one, other = self.features(latent).chunk(2)
        loss = options.invariance * F.mse_loss(one, other)
        loss = loss + options.variance * (variance_term(one) + variance_term(other))
        with torch.autocast(one.device.type, enabled=False):  # products of small deviations need their digits
            loss = loss + options.covariance * (covariance_term(one) + covariance_term(other))
        return Outcome(loss, latent.detach().chunk(2)[0])
