"""A network's forecast combined with two simple ones, in shares of each horizon and component.

    forecast[h, c] = w[0, h, c] network + w[1, h, c] autoregression + w[2, h, c] linear,    w >= 0, of sum 1

`rdjepa.adaptation.combination` finds the shares. Not part of the paper's protocol.
"""

import torch
from torch import Tensor

from rdjepa.forecasters.around import Around
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.linear import Linear

COMBINED = 3  # forecasts


class Combined(Around):
    """A network, the autoregression of each context, and a linear forecast that was fitted to the support.

    Args:
        network: any forecaster; it is trained as it would be alone.
        linear: linear forecast fitted to the support; unfitted when None, to load weights into.
        shares: (3, N, C) of network, autoregression and linear forecast; all the network's when None.

    Attributes:
        shares: (3, N, C).
    """

    shares: Tensor

    def __init__(self, network: ForecastModel, linear: Linear | None = None, shares: Tensor | None = None) -> None:
        super().__init__(network)
        self.linear = linear or Linear(network.components)
        self.autoregression = Autoregression(network.components)
        if shares is None:
            shares = torch.zeros(COMBINED, HORIZONS, network.components)
            shares[0] = 1
        self.register_buffer("shares", shares)

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return what the two others have of the forecast (B, 5, C, H, W), then the network's features."""
        _, own, fitted = self.shares[:, :, :, None, None]
        rest = own * self.autoregression(context) + fitted * self.linear(context)
        return (rest, *self.network.features(context))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        rest, *others = features
        return rest + self.shares[0, :, :, None, None] * self.network.predict(*others)

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the description of the network."""
        return self.network.latent_summary(*features[1:])
