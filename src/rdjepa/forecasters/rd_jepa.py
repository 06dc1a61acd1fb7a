"""RD-JEPA as a forecaster: frozen pretrained encoder, trained predictor and decoder (S2.6).

Learning rates of the paper preset are the paper's. Narrower presets need larger ones: those of nano were chosen on
validation trajectories of sources that pretraining left out (docs/baselines.md), those of small are not yet measured.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.models.rdjepa import RDJEPA, ModelConfig
from rdjepa.models.rdjepa import build as build_model


@dataclass(frozen=True)
class LearningRates:
    """Constant learning rates of the three modules; an encoder rate of 0 freezes the encoder."""

    encoder: float
    predictor: float
    decoder: float


class RDJEPAForecaster(ForecastModel):
    """Encoder, predictor and decoder as one direct forecaster.

    A frozen encoder gives each window a constant latent grid, so `features` returns it.
    """

    name = "rd-jepa"
    rates_of: ClassVar[Mapping[str, LearningRates]] = {
        "paper": LearningRates(encoder=0.0, predictor=1e-5, decoder=2e-4),
        "small": LearningRates(0.0, 1e-4, 5e-4),
        "nano": LearningRates(0.0, 3e-4, 1e-3),
    }

    def __init__(self, model: RDJEPA, rates: LearningRates | None = None) -> None:
        super().__init__()
        self.encoder, self.predictor, self.decoder = model.encoder, model.predictor, model.decoder
        self.preset, self.config, self.pretrained = model.name, model.config, model.pretrained
        self.grid, self.components = model.config.grid, model.config.components
        self.rates = rates or self.rates_of.get(model.name, self.rates_of["paper"])
        if not self.rates.encoder:
            self.encoder.requires_grad_(False)

    @classmethod
    def from_preset(cls, preset: str | ModelConfig) -> Self:
        """Build with fresh weights; for pretrained ones, wrap `rdjepa.load(...)` in this class."""
        return cls(build_model(preset))

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build with fresh weights from what `settings` returned."""
        return cls(RDJEPA(ModelConfig.from_dict(settings["model"])), LearningRates(**settings["rates"]))

    def settings(self) -> dict[str, Any]:
        """Return sizes and learning rates."""
        return {"model": self.config.to_dict(), "rates": asdict(self.rates)}

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return latent grid (B, S, d) and newest frame (B, C, H, W), or the context if the encoder is trained."""
        if self.rates.encoder:
            return (context,)
        with torch.no_grad():
            return self.encoder(context), context[:, -1]

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the standard deviations (B, d) over the latent grid of a frozen encoder; None for one from scratch."""
        return None if self.rates.encoder else features[0].std(dim=1)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        latent, frame = (self.encoder(features[0]), features[0][:, -1]) if self.rates.encoder else features
        return self.decoder(self.predictor.full_grid(latent, HORIZONS), frame)

    def parameter_groups(self) -> list[dict]:
        """Return one group per trained module."""
        modules = (
            (self.encoder, self.rates.encoder),
            (self.predictor, self.rates.predictor),
            (self.decoder, self.rates.decoder),
        )
        return [{"params": list(module.parameters()), "lr": rate} for module, rate in modules if rate]


class DecoderKept(RDJEPAForecaster):
    """RD-JEPA whose decoder was pretrained too, after encoder and predictor; it is adapted with the same rates.

    The paper has no such forecaster: there the decoder of every system is a fresh one.
    """

    name = "rd-jepa-decoder"


class EncoderTuned(DecoderKept):
    """RD-JEPA whose encoder is tuned with the predictor's learning rate instead of frozen.

    The paper has no such forecaster. It sees what the control from scratch sees, and starts from pretrained weights.
    """

    name = "rd-jepa-tuned"
    rates_of: ClassVar[Mapping[str, LearningRates]] = {
        preset: replace(rates, encoder=rates.predictor) for preset, rates in RDJEPAForecaster.rates_of.items()
    }

    def __init__(self, model: RDJEPA, rates: LearningRates | None = None) -> None:
        super().__init__(model, rates)
        self.encoder.requires_grad_(True)  # that of a loaded model may be frozen

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the standard deviations (B, d) over the latent grid of the encoder as it is."""
        with torch.no_grad():
            return self.encoder(features[0]).std(dim=1)


class ZeroShot(RDJEPAForecaster):
    """RD-JEPA with a pretrained decoder and no adaptation at all; of a system it is told the field statistics alone.

    The paper has no such forecaster. Beside the adapted ones it says what adaptation adds.
    """

    name = "rd-jepa-zero-shot"
    rates_of: ClassVar[Mapping[str, LearningRates]] = {"paper": LearningRates(0.0, 0.0, 0.0)}
