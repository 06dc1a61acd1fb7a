"""What stands around a network and makes another forecaster of it: tiles, a linear forecast, a combination."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import ForecastModel


class Around(ForecastModel):
    """A forecaster that is built around a network; its settings and what is trained are the network's.

    Args:
        network: any forecaster; it is trained as it would be alone.
    """

    def __init__(self, network: ForecastModel) -> None:
        super().__init__()
        self.network = network
        self.grid, self.components = network.grid, network.components
        self.name, self.preset = network.name, network.preset

    @classmethod
    def from_preset(cls, preset: Any) -> Self:
        """Refuse: what stands around a network has no presets.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(f"expected a network to put {cls.__name__} around, got a preset; build the network first")

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Refuse: it is built around a restored network.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(f"expected a network to put {cls.__name__} around, got settings; restore the network first")

    def settings(self) -> dict[str, Any]:
        """Return the settings of the network."""
        return self.network.settings()

    def parameter_groups(self) -> list[dict]:
        """Return the groups of the network."""
        return self.network.parameter_groups()


class Beside(Around):
    """A forecaster beside a network, from the same context; contexts are described as the network does.

    Attributes:
        own: how many of its features are not the network's; they come first.
    """

    own: ClassVar[int] = 1

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the description of the network."""
        return self.network.latent_summary(*features[self.own :])

    def description(self, context: Tensor) -> Tensor | None:
        """Return the description of the network, which takes nothing of its own."""
        return self.network.description(context)
