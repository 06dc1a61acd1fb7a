"""The architecture-matched control: RD-JEPA's three networks from random weights, all trained (S3.2)."""

from collections.abc import Mapping
from typing import ClassVar

from rdjepa.forecasters.rd_jepa import LearningRates, RDJEPAForecaster


class Scratch(RDJEPAForecaster):
    """RD-JEPA with an encoder that is trained as well."""

    name = "scratch"
    rates_of: ClassVar[Mapping[str, LearningRates]] = {
        "paper": LearningRates(encoder=1e-4, predictor=1e-4, decoder=2e-4),
        "small": LearningRates(3e-4, 3e-4, 5e-4),
        "nano": LearningRates(5e-4, 5e-4, 1e-3),
    }
