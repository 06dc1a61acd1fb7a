"""Masked reconstruction of fields: hide most patches in all frames, and paint them from what is left.

As masked autoencoders do (He et al., CVPR 2022; of clips, Tong et al., NeurIPS 2022: a patch is hidden in all frames,
or it could be copied from the frame before). The encoder takes hidden tokens itself, so that one affine map of its
tokens serves as the decoder (Xie et al., SimMIM, CVPR 2022).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from rdjepa.checks import BelowOne, check
from rdjepa.data.windows import PRETRAINING
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.objectives.base import ObjectiveModel, Outcome
from rdjepa.pretraining.targets import Queries


@dataclass(frozen=True)
class MaskOptions:
    """Settings of the masked reconstruction.

    Attributes:
        share: share of the patches that is hidden, in every frame of the context; at least one is, and one is not.
    """

    share: BelowOne = 0.75

    def __post_init__(self) -> None:
        """Check the values."""
        check(self)


def reconstruction_loss(
    painted: Float[Tensor, "B S T C P"], patches: Float[Tensor, "B T C S P"], hidden: Int[Tensor, "B M"]
) -> Float[Tensor, ""]:
    """Return the mean squared error of the hidden patches alone.

    Args:
        painted: (B, S, T, C, P) values of every patch in every frame, as reconstructed.
        patches: (B, T, C, S, P) values as they are, as the tokenizer cuts them.
        hidden: (B, M) indices of the patches that were hidden.
    """
    sample = torch.arange(len(hidden), device=hidden.device)[:, None]
    return F.mse_loss(painted[sample, hidden].float(), patches.permute(0, 3, 1, 2, 4)[sample, hidden].float())


class MaskedFields(ObjectiveModel):
    """Encoder with mask tokens, and an affine map from a token to the values of its patch in all frames."""

    options: ClassVar[type | None] = MaskOptions

    def __init__(self, model: RDJEPA, config: PretrainConfig) -> None:
        super().__init__(model, config)
        sizes = model.config
        self.shape = (PRETRAINING.context, sizes.components, sizes.patch**2)
        self.paint = nn.Sequential(nn.LayerNorm(sizes.width), nn.Linear(sizes.width, int(np.prod(self.shape))))

    def draw(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw the hidden patches; no later frame is needed."""
        count = min(max(round(self.config.options.share * side**2), 1), side**2 - 1)
        hidden = np.sort(rng.choice(side**2, size=count, replace=False))
        mask = np.zeros((PRETRAINING.context, side**2), dtype=bool)
        mask[:, hidden] = True
        return Queries("hidden patches", hidden, np.zeros(0, dtype=np.int64), mask)

    def forward(self, batch: Batch) -> Outcome:
        """Reconstruct the context; the watched latents are those of the masked one."""
        latent = self.encoder(batch.context, batch.mask)
        painted = self.paint(latent).unflatten(-1, self.shape)
        patches = self.encoder.tokenizer.patches(batch.context)
        return Outcome(reconstruction_loss(painted, patches, batch.patches), latent.detach())
