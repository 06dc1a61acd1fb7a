"""The base of the forecasters that no update trains: they need no fit, or one in closed form."""

from collections.abc import Mapping
from typing import Any, Self

from rdjepa.forecasters.base import ForecastModel


class Simple(ForecastModel):
    """A forecaster of any grid and without trained parameters, built from the number of field components alone.

    Args:
        components: field components C.
    """

    grid = None

    def __init__(self, components: int = 2) -> None:
        super().__init__()
        self.components = components

    @classmethod
    def from_preset(cls, preset: Any) -> Self:
        """Build it; the preset has no influence."""
        return cls()

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build it from what `settings` returned; what it was fitted to is in its state."""
        return cls(**settings)

    def settings(self) -> dict[str, Any]:
        """Return the number of components."""
        return {"components": self.components}

    def parameter_groups(self) -> list[dict]:
        """Return no group: adaptation trains nothing."""
        return []
