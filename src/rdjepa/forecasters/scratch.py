"""The architecture-matched control: RD-JEPA's three networks from random weights, all trained (S3.2)."""

from rdjepa.forecasters.rd_jepa import LearningRates, RDJEPAForecaster
from rdjepa.models.rdjepa import ModelConfig
from rdjepa.models.rdjepa import build as build_model

PAPER_RATES = LearningRates(encoder=1e-4, predictor=1e-4, decoder=2e-4)
RATES = {"small": LearningRates(3e-4, 3e-4, 5e-4), "nano": LearningRates(5e-4, 5e-4, 1e-3)}


def build(preset: str | ModelConfig = "paper", seed: int | None = None) -> RDJEPAForecaster:
    """Fresh weights and a trained encoder."""
    model = build_model(preset, seed)
    return RDJEPAForecaster(model, RATES.get(model.name, PAPER_RATES))
