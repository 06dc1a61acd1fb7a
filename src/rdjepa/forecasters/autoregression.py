"""A forecast that is fitted to its own context and to nothing else (`rdjepa.models.autoregression`).

It needs no trajectory to learn from, and has no parameter. Of slow fields it is nevertheless a forecast that few
networks reach. Not part of the paper.
"""

from collections.abc import Mapping
from typing import Any, Self

from torch import Tensor

from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.models.autoregression import fitted


class Autoregression(ForecastModel):
    """The forecast of each context by the map that fits it, in standardized units.

    Args:
        components: field components C.
    """

    grid = None
    name = "autoregression"

    def __init__(self, components: int = 2) -> None:
        super().__init__()
        self.components = components

    @classmethod
    def from_preset(cls, preset: Any) -> Self:
        """Build it; the preset has no influence."""
        return cls()

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build it from what `settings` returned."""
        return cls(**settings)

    def settings(self) -> dict[str, Any]:
        """Return the number of components."""
        return {"components": self.components}

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W) from context (B, 4, C, H, W), in float64 within."""
        (context,) = features
        return fitted(context, HORIZONS).forecast.to(context.dtype)

    def parameter_groups(self) -> list[dict]:
        """Return no group: adaptation trains nothing."""
        return []
