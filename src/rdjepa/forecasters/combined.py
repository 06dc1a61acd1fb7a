"""A network's forecast combined with simple ones, in shares of each horizon and component.

    forecast = w[0] network + w[1] blend + w[2] equation + w[3] autoregression + w[4] linear,    w >= 0, of sum 1
    blend[h] = g[h] network + (1 - g[h]) equation[h],    g[h] = r[h] / (r[h] + s[h])
    r[h] = v[h] + h^2 max(0, m_3[h] - m_1[h]) / 8,       s[h] = max(h s_1, 0.03)

g is the weight of two forecasts by their variances, that of the equation r, that of the network s.

v is how far the equation's forecast moves, around a point, when parts of the context have no say in its coefficients.
m_k is the mean square of what it misses of the newest frame when it starts k frames before, around a point and from as
far away as may arrive there within h frames. What is wrong with the equation grows with k, its square like k^2, while
the noise of the frames is in m_1 and m_3 alike. Where the equation is sure and finds its own context again, nothing
else is needed.

s_1 is the mean square of what the network's first frame misses of the equation's, over all points, weighted by
1 / r[1]: where the equation is sure, that is the error of the network. s is at least 0.03, and more where values are
far from those that networks learn from. `rdjepa.adaptation.combination` finds the shares. Not part of the paper's
protocol.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from rdjepa.forecasters.around import Beside
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import CONTEXT, HORIZONS, ForecastModel
from rdjepa.forecasters.cubic import BANDS
from rdjepa.forecasters.equation import LONGEST, Equation, back_of
from rdjepa.forecasters.linear import Linear

COMBINED = 5  # forecasts
REACH = 4  # points on every side; for each frame ahead, of what is missed
LEAST = 0.03  # s, of the mean square of the fields, which is taken as 1 or more in standardized units
SURE = 1e-6  # added to r in the weights of s_1
PARTS = 10  # of the support, at most, each forecast from the others; of no more trajectories each is a part
EVERY = 2  # windows of the support, of which the first tells the shares: the next has all of its frames but one
RULE = {
    "forecasts": COMBINED, "reach": REACH, "least": LEAST, "sure": SURE, "blend": "jackknife, first frame",
    "bands": BANDS, "one": "halves", "every": EVERY, "parts": PARTS,
    **{kind.name: dict(kind.constants) for kind in (Equation, Autoregression, Linear)},
}  # fmt: skip


class Combined(Beside):
    """A network, its blend with the equation of each context, that alone, its autoregression, and a linear forecast.

    Args:
        network: any forecaster; it is trained as it would be alone.
        linear: linear forecast fitted to the support; unfitted when None, to load weights into.
        shares: (5, N, C) of network, blend, equation, autoregression and linear forecast; all the network's when None.
        equation: what the support says of the terms of its equation; nothing when None.

    Attributes:
        shares: (5, N, C).
    """

    own = 5
    longest = LONGEST
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
        self.autoregression = Autoregression(network.components)
        if shares is None:
            shares = torch.zeros(COMBINED, HORIZONS, network.components)
            shares[0] = 1
        self.register_buffer("shares", shares)

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return what needs no network, and the network's features.

        These are the equation's forecast, r, and the sum of the forecasts without the network in their shares, all
        (B, 5, C, H, W), and the shares of network and blend, (B, 5, C, 1, 1).

        A context of more than four frames is forecast by the blend: the shares are those of four, but the blend finds
        its weights in the context. The equation alone sees the earlier frames.
        """
        equation, r = judged(context, self.equation)
        newest, shares = context[:, -CONTEXT:], self.shares[:, None, :, :, None, None]
        if context.shape[1] > CONTEXT:
            shares = torch.zeros_like(shares)
            shares[1] = 1
        alone, blended, own, map, linear = shares.expand(-1, len(context), -1, -1, -1, -1)
        rest = own * equation + map * self.autoregression(newest) + linear * self.linear(newest)
        return (equation, r, rest, alone, blended, *self.network.features(newest))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        equation, r, rest, alone, blended, *others = features
        network = self.network.predict(*others)
        return rest + alone * network + blended * torch.lerp(equation, network, weight(network, equation, r))


def judged(context: Tensor, equation: Equation) -> tuple[Tensor, Tensor]:
    """Return the forecast of the equation (B, 5, C, H, W), and r, the mean square of its errors there, in float64."""
    forecast, variance, missed = equation.fitted(context)
    near, far = missed.square().unbind(1)
    growth = (far - near) / (back_of(context) ** 2 - 1)
    errors = [
        _around(variance[:, lead - 1], REACH) + lead**2 * _around(growth, REACH * lead).clamp(min=0)
        for lead in range(1, HORIZONS + 1)
    ]
    return forecast.to(context.dtype), torch.stack(errors, dim=1)


def weight(network: Tensor, equation: Tensor, r: Tensor) -> Tensor:
    """Return the blend's weight g of a network, of two forecasts and r of the equation, all (B, 5, C, H, W)."""
    one, other, sure = network[:, 0].double(), equation[:, 0].double(), 1 / (r[:, 0] + SURE)
    first = (sure * (one - other).square()).mean((1, 2, 3)) / sure.mean((1, 2, 3))
    least = LEAST * other.square().mean((1, 2, 3)).clamp(min=1)
    leads = torch.arange(1, HORIZONS + 1, device=r.device)
    s = torch.maximum(leads * first[:, None], least[:, None])[:, :, None, None, None]
    return (r / (r + s)).to(network.dtype)


def _around(values: Tensor, reach: int) -> Tensor:
    """Return the mean of (B, C, H, W) over the points up to `reach` away along each side, one side after the other.

    Those beyond a border are left out, whether it is periodic or a wall.
    """
    for kernel, padding in (((2 * reach + 1, 1), (reach, 0)), ((1, 2 * reach + 1), (0, reach))):
        values = F.avg_pool2d(values, kernel, 1, padding, count_include_pad=False)
    return values
