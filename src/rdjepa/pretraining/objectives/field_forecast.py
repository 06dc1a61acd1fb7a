"""Direct forecast of fields: encoder, predictor and decoder learn from the later frames themselves.

The supervised way in which MPP (McCabe et al., NeurIPS 2024), Poseidon (Herde et al., NeurIPS 2024) and DPOT (Hao et
al., ICML 2024) pretrain, here with the networks and the leads of RD-JEPA.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from rdjepa.checks import Count, check
from rdjepa.errors import ArgumentError
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.monitor import gates
from rdjepa.pretraining.objectives.base import ObjectiveModel, Outcome
from rdjepa.pretraining.targets import Queries


@dataclass(frozen=True)
class ForecastOptions:
    """Settings of the direct forecast.

    Attributes:
        leads: distinct leads that each sample is asked for. One asks the predictor for as many tokens as the predictive
            latent objective does.
        keep_decoder: whether the checkpoint has the decoder, which is thrown away otherwise.
    """

    leads: Count = 1
    keep_decoder: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        check(self)


class FieldForecast(ObjectiveModel):
    """Mean squared error of D(P(E(context), h), newest frame) against the standardized field h frames later."""

    options: ClassVar[type | None] = ForecastOptions

    def __init__(self, model: RDJEPA, config: PretrainConfig) -> None:
        super().__init__(model, config)
        if config.options.leads > config.targets.max_offset:
            raise ArgumentError(
                f"expected at most {config.targets.max_offset} leads, the largest offset of the targets, got "
                f"{config.options.leads}; lower them"
            )
        self.predictor, self.decoder = model.predictor, model.decoder
        self.encoder.mask_token.requires_grad_(False)  # no token is hidden

    @classmethod
    def kept(cls, options: ForecastOptions) -> tuple[str, ...]:
        """Return encoder and predictor, and the decoder if the settings keep it."""
        return ("encoder", "predictor", "decoder") if options.keep_decoder else ("encoder", "predictor")

    def draw(self, rng: np.random.Generator, side: int) -> Queries:
        """Draw distinct leads, of 1 to the largest offset of the targets."""
        among = np.arange(1, self.config.targets.max_offset + 1)
        leads = np.sort(rng.choice(among, size=self.config.options.leads, replace=False))
        return Queries.of_frames(leads, side)

    def forward(self, batch: Batch) -> Outcome:
        """Forecast the whole field at every drawn lead."""
        latent = self.encoder(batch.context)
        tokens = torch.arange(latent.shape[1], device=latent.device)
        leads = batch.offsets[..., None].expand(-1, -1, len(tokens))
        predicted = self.decoder(self.predictor(latent, tokens.expand(leads.shape), leads), batch.context[:, -1])
        return Outcome(F.mse_loss(predicted.float(), batch.futures[batch.frame_of_query]), latent.detach())

    def networks(self) -> list[nn.Module]:
        """Return encoder and predictor; torch 2.13 cannot compile the decoder, which meets a constant repeatedly."""
        return [self.encoder, self.predictor]

    def watch(self) -> dict[str, Any]:
        """Measure the predictor's gates."""
        return {"gates": gates(self.predictor)}
