"""The base of the supervised forecasters: four frames stacked as input channels, five horizons as output channels."""

from abc import abstractmethod

import torch
from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import CONTEXT, HORIZONS, Configured


class JointForecaster(Configured):
    """A network from stacked context frames (B, 4 C, H, W) to stacked horizons (B, 5 C, H, W), trained as a whole.

    Input channels are frame-major, the components of the oldest frame first; output channels are horizon-major.

    Args:
        config: frozen dataclass as for `Configured`, with `rate`, the learning rate of every parameter.
    """

    needs = (*Configured.needs, "rate")

    @property
    def channels_in(self) -> int:
        """Input channels, 4 C."""
        return CONTEXT * self.components

    @property
    def channels_out(self) -> int:
        """Output channels, 5 C."""
        return HORIZONS * self.components

    @abstractmethod
    def network(self, stacked: Tensor) -> Tensor:
        """Map (B, 4 C, H, W) to (B, 5 C, H, W)."""

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W) from the context (B, 4, C, H, W).

        Raises:
            ArgumentError: another number of frames or components, or another grid than the model was built for, or an
                output of the network of another shape.
        """
        (context,) = features
        wanted = (CONTEXT, self.components, self.grid, self.grid)
        if context.ndim != 5 or tuple(context.shape[1:]) != wanted:
            raise ArgumentError(
                f"expected a context (B, 4, C, H, W) with the sizes (B, {', '.join(map(str, wanted))}), got "
                f"{tuple(context.shape)}; build the model for that grid and these components, or bring the fields to it"
            )
        stacked = self.network(context.flatten(1, 2))
        expected = (context.shape[0], self.channels_out, self.grid, self.grid)
        if not isinstance(stacked, Tensor) or tuple(stacked.shape) != expected:
            got = tuple(stacked.shape) if isinstance(stacked, Tensor) else f"a {type(stacked).__name__}"
            raise ArgumentError(
                f"expected {expected} (B, 5 C, H, W) from the network of {type(self).__name__}, got {got}; return "
                "channels_out channels on the grid of the input"
            )
        return stacked.unflatten(1, (HORIZONS, self.components))

    def parameter_groups(self) -> list[dict]:
        """Return one group of all parameters that require gradients."""
        return [{"params": [p for p in self.parameters() if p.requires_grad], "lr": self.config.rate}]


def coordinates(height: int, width: int) -> Tensor:
    """Return x = j / W and y = i / H at every point, (2, H, W); the end point, equal to 0 if periodic, is left out."""
    y, x = torch.meshgrid(torch.arange(height) / height, torch.arange(width) / width, indexing="ij")
    return torch.stack([x, y])
