"""A network's forecast combined with simple ones, in shares of each horizon and component.

    forecast[h, c] = w[0, h, c] network + w[1, h, c] blend + w[2, h, c] own + w[3, h, c] linear,    w >= 0, of sum 1
    blend[h] = g[h] network + (1 - g[h]) own[h],    g[h] = r[h] / (r[h] + s)
    own[h] = r[h] (autoregression[h] / a[h] + equation[h] / e[h]),    1 / r[h] = 1 / a[h] + 1 / e[h]

a[h] and e[h] are the mean squares of what the fits of autoregression and equation leave of the context around a point,
from as far away as may arrive there within h frames: where they leave little, nothing but the fits is needed. The
weights are those of forecasts by their variances, if that of a fit's forecast grows as what it leaves and that of the
network is s. `rdjepa.adaptation.combination` finds the shares. Not part of the paper's protocol.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from rdjepa.forecasters import autoregression
from rdjepa.forecasters.around import Around
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.linear import Linear

COMBINED = 4  # forecasts
REACH = 4  # points on every side, for each frame ahead, over which what is left is averaged
SMALL = 1e-2  # s, in standardized units; both were chosen on random equations (docs/results/left-out.md)
LEAST = 1e-15  # of what is left: rounding
RULE = {"forecasts": COMBINED, "reach": REACH, "small": SMALL, "of": ["autoregression", "equation"]}


class Combined(Around):
    """A network, its blend with what a context tells of itself, that alone, and a linear forecast of the support.

    Args:
        network: any forecaster; it is trained as it would be alone.
        linear: linear forecast fitted to the support; unfitted when None, to load weights into.
        shares: (4, N, C) of network, blend, the context's own and linear forecast; all the network's when None.
        equation: what the support says of the terms of its equation; nothing when None.

    Attributes:
        shares: (4, N, C).
    """

    shares: Tensor

    def __init__(
        self,
        network: ForecastModel,
        linear: Linear | None = None,
        shares: Tensor | None = None,
        equation: Equation | None = None,
    ) -> None:
        super().__init__(network)
        self.linear = linear or Linear(network.components)
        self.equation = equation or Equation(network.components)
        if shares is None:
            shares = torch.zeros(COMBINED, HORIZONS, network.components)
            shares[0] = 1
        self.register_buffer("shares", shares)

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return the others' part of the forecast, the network's weight, both (B, 5, C, H, W), and its features."""
        alone, blended, of_context, linear = self.shares[:, :, :, None, None]
        own, g = blending(context, self.equation)
        rest = (blended * (1 - g) + of_context) * own + linear * self.linear(context)
        return (rest, alone + blended * g, *self.network.features(context))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        rest, weight, *others = features
        return rest + weight * self.network.predict(*others)

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the description of the network."""
        return self.network.latent_summary(*features[2:])


def blending(context: Tensor, equation: Equation) -> tuple[Tensor, Tensor]:
    """Return the own forecast (B, 5, C, H, W) of contexts, and the blend's weight g of a network, the same shape."""
    total = certainty = torch.zeros((), dtype=torch.float64, device=context.device)
    for forecast, left in (autoregression.fitted(context, HORIZONS), equation.fitted(context)):
        reaches = [REACH * horizon for horizon in range(1, HORIZONS + 1)]
        precision = 1 / (torch.stack([_around(left, reach) for reach in reaches], dim=1) + LEAST)
        total, certainty = total + precision * forecast, certainty + precision
    return (total / certainty).to(context.dtype), (1 / (1 + SMALL * certainty)).to(context.dtype)


def _around(values: Tensor, reach: int) -> Tensor:
    """Return the mean of (B, C, H, W) over the points up to `reach` away along each side, one side after the other."""
    for kernel, padding in (((2 * reach + 1, 1), (reach, 0)), ((1, 2 * reach + 1), (0, reach))):
        values = F.avg_pool2d(values, kernel, 1, padding, count_include_pad=False)
    return values
