"""A network's forecast combined with two simple ones, in shares of each horizon and component.

    forecast[h, c] = w[0, h, c] network + w[1, h, c] blend + w[2, h, c] autoregression + w[3, h, c] linear
    blend[h] = g[h] network + (1 - g[h]) autoregression,    g[h] = r[h] / (r[h] + s),    w >= 0, of sum 1

r[h] is the mean square of what the autoregression's fit leaves of the context around a point, from as far away as may
arrive there within h frames: where it leaves little, nothing but the fit is needed, and where an excitation arrives it
is of no use. g is the weight of two forecasts by their variances, if that of the autoregression grows as r and that of
the network is s. `rdjepa.adaptation.combination` finds the shares. Not part of the paper's protocol.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from rdjepa.forecasters.around import Around
from rdjepa.forecasters.autoregression import fitted
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.linear import Linear

COMBINED = 4  # forecasts
REACH = 4  # points on every side, for each frame ahead, over which what is left is averaged
SMALL = 1e-4  # s, in standardized units; both were chosen on random equations (docs/results/left-out.md)
RULE = {"forecasts": COMBINED, "reach": REACH, "small": SMALL}


class Combined(Around):
    """A network, its blend with the autoregression of each context, that alone, and a linear forecast of the support.

    Args:
        network: any forecaster; it is trained as it would be alone.
        linear: linear forecast fitted to the support; unfitted when None, to load weights into.
        shares: (4, N, C) of network, blend, autoregression and linear forecast; all the network's when None.

    Attributes:
        shares: (4, N, C).
    """

    shares: Tensor

    def __init__(self, network: ForecastModel, linear: Linear | None = None, shares: Tensor | None = None) -> None:
        super().__init__(network)
        self.linear = linear or Linear(network.components)
        if shares is None:
            shares = torch.zeros(COMBINED, HORIZONS, network.components)
            shares[0] = 1
        self.register_buffer("shares", shares)

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return the others' part of the forecast, the network's weight, both (B, 5, C, H, W), and its features."""
        alone, blended, own, linear = self.shares[:, :, :, None, None]
        autoregression, g = blending(context)
        rest = (blended * (1 - g) + own) * autoregression + linear * self.linear(context)
        return (rest, alone + blended * g, *self.network.features(context))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        rest, weight, *others = features
        return rest + weight * self.network.predict(*others)

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the description of the network."""
        return self.network.latent_summary(*features[2:])


def blending(context: Tensor) -> tuple[Tensor, Tensor]:
    """Return the autoregression (B, 5, C, H, W) of contexts, and the blend's weight g of a network, the same shape."""
    forecast, left = fitted(context, HORIZONS)
    reaches = [REACH * horizon for horizon in range(1, HORIZONS + 1)]
    around = torch.stack([_around(left, reach) for reach in reaches], dim=1)
    return forecast.to(context.dtype), (around / (around + SMALL)).to(context.dtype)


def _around(values: Tensor, reach: int) -> Tensor:
    """Return the mean of (B, C, H, W) over the points up to `reach` away along each side, one side after the other."""
    for kernel, padding in (((2 * reach + 1, 1), (reach, 0)), ((1, 2 * reach + 1), (0, reach))):
        values = F.avg_pool2d(values, kernel, 1, padding, count_include_pad=False)
    return values
