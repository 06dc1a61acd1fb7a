"""The one interface of everything that forecasts: four frames in, N horizons out, both in standardized units."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

CONTEXT = 4
HORIZONS = 5


class ForecastModel(nn.Module, ABC):
    """A direct forecaster: context (B, 4, C, H, W) to the next N fields (B, N, C, H, W), without rollout.

    Whatever adaptation leaves unchanged goes into `features`, so that a training loop may compute it once per
    window; the rest is `predict`. A model with nothing frozen keeps the default.
    """

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """The constant part: tensors (B, ...) that no training step changes."""
        return (context,)

    @abstractmethod
    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, N, C, H, W) from what `features` returned."""

    def forward(self, context: Tensor) -> Tensor:
        """Forecast (B, N, C, H, W) from context (B, 4, C, H, W)."""
        return self.predict(*self.features(context))

    @abstractmethod
    def parameter_groups(self) -> list[dict]:
        """Optimiser groups, `{"params": ..., "lr": ...}`, of everything that adaptation trains."""
