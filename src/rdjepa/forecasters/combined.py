"""A network's forecast combined with simple ones, in shares of each horizon and component.

    forecast = w[0] network + w[1] blend + w[2] equation + w[3] autoregression + w[4] linear,    w >= 0, of sum 1
    blend[h] = g[h] network + (1 - g[h]) equation[h],    g[h] = r[h] / (r[h] + s),    r[h] = v[h] + (h / 3)^2 m[h]

g is the weight of two forecasts by their variances, that of the equation r, that of the network s. v is how far the
equation's forecast moves, around a point, when parts of the context have no say in its coefficients. m is the mean
square of what it misses of the newest frame when it starts from the oldest, three frames before, around a point and
from as far away as may arrive there within h frames. Where the equation is sure and finds its own context again,
nothing else is needed. s is a tenth, and more where values are far from those that networks learn from. Where the
blend has all, s is less for contexts that are like those of the support, s n with the novelty n of a context below 1
(`rdjepa.forecasters.familiar`), but not less than the mean square of what the network misses of the support itself:
what a network has learned it may be trusted with, and the further from it, the less.
`rdjepa.adaptation.combination` finds the shares. Not part of the paper's protocol.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from rdjepa.forecasters.around import Beside
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import CONTEXT, HORIZONS, ForecastModel
from rdjepa.forecasters.equation import LONGEST, Equation
from rdjepa.forecasters.familiar import Familiar, novelty
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.squares import BANDS

COMBINED = 5  # forecasts
REACH = 4  # points on every side; for each frame ahead, of what is missed
SMALL = 0.1  # s, of the mean square of the newest frame, which is 1 or more in standardized units
POWER = 1  # of the novelty, by which s grows up to a novelty of 1
PARTS = 10  # of the support, at most, each forecast from the others; of no more trajectories each is a part
EVERY = 2  # windows of the support, of which the first tells the shares: the next has all of its frames but one
RULE = {
    "forecasts": COMBINED, "reach": REACH, "small": SMALL, "blend": "jackknife", "bands": BANDS, "one": "halves",
    "every": EVERY, "parts": PARTS,
    **{kind.name: dict(kind.constants) for kind in (Equation, Autoregression, Linear)},
}  # fmt: skip


class Combined(Beside):
    """A network, its blend with the equation of each context, that alone, its autoregression, and a linear forecast.

    Args:
        network: any forecaster; it is trained as it would be alone.
        linear: linear forecast fitted to the support; unfitted when None, to load weights into.
        shares: (5, N, C) of network, blend, equation, autoregression and linear forecast; all the network's when None.
        equation: what the support says of the terms of its equation; nothing when None.
        familiar: the support as the network describes it, by which the blend trusts the network; equally everywhere
            when None.

    Attributes:
        shares: (5, N, C).
        known: (n, d) descriptions of the support, or None.
        reach: of the support, a scalar, or None.
        missed: of the support by the network, a scalar, or None.
    """

    own = 2
    longest = LONGEST
    shares: Tensor
    known: Tensor | None
    reach: Tensor | None
    missed: Tensor | None

    def __init__(
        self,
        network: ForecastModel,
        linear: Linear | None = None,
        shares: Tensor | None = None,
        equation: Equation | None = None,
        familiar: Familiar | None = None,
    ) -> None:
        super().__init__(network)
        self.linear = linear or Linear(network.components)
        self.equation = equation or Equation(network.components)
        self.autoregression = Autoregression(network.components)
        if shares is None:
            shares = torch.zeros(COMBINED, HORIZONS, network.components)
            shares[0] = 1
        self.register_buffer("shares", shares)
        rows, reach, missed = (familiar.latents, familiar.reach, familiar.missed) if familiar else (None, None, None)
        self.register_buffer("known", None if rows is None else torch.as_tensor(rows, dtype=torch.float32))
        self.register_buffer("reach", None if reach is None else torch.tensor(reach, dtype=torch.float64))
        self.register_buffer("missed", None if missed is None else torch.tensor(missed, dtype=torch.float64))

    @property
    def familiar(self) -> Familiar | None:
        """The support as the network describes it, where the blend goes by it."""
        if self.known is None or self.reach is None or self.missed is None:
            return None
        return Familiar(self.known.cpu().numpy(), float(self.reach), float(self.missed))

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return the others' part of the forecast, the network's weight, both (B, 5, C, H, W), and its features.

        A context of more than four frames is forecast by the blend: the shares are those of four, but the blend finds
        its weights in the context. The equation alone sees the earlier frames.
        """
        alone, blended, own, map, linear = self.shares[:, :, :, None, None]
        newest = context[:, -CONTEXT:]
        features = self.network.features(newest)
        equation, g = blending(context, self.equation, self._novelty(*features), self.missed)
        if context.shape[1] > CONTEXT:
            return ((1 - g) * equation, g, *features)
        rest = (blended * (1 - g) + own) * equation
        rest = rest + map * self.autoregression(newest) + linear * self.linear(newest)
        return (rest, alone + blended * g, *features)

    def _novelty(self, *features: Tensor) -> Tensor | None:
        """Return how unlike the support contexts are, (B,), from the network's features; None where that has no say."""
        if self.known is None or self.reach is None:
            return None
        described = self.network.latent_summary(*features)
        return None if described is None else novelty(described, self.known, self.reach)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        rest, weight, *others = features
        return rest + weight * self.network.predict(*others)


def blending(
    context: Tensor, equation: Equation, unlike: Tensor | None = None, missed: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the forecast of the equation (B, 5, C, H, W), and the blend's weight g of a network, the same shape.

    Args:
        context: (B, T, C, H, W), standardized.
        equation: what the support says of its terms.
        unlike: (B,) novelty of each context; 1 of all when None.
        missed: mean square of what the network misses of the support, by that of its fields, a scalar; 0 when None.
    """
    forecast, variance, own = equation.fitted(context)
    square, last = own.square(), min(context.shape[1], CONTEXT) - 1
    errors = [
        _around(variance[:, lead - 1], REACH) + (lead / last) ** 2 * _around(square, REACH * lead)
        for lead in range(1, HORIZONS + 1)
    ]
    around = torch.stack(errors, dim=1)
    size = context[:, -1].double().square().mean((1, 2, 3)).clamp(min=1)
    network = SMALL * size
    if unlike is not None:
        network = network * unlike.clamp(max=1) ** POWER
    if missed is not None:
        network = torch.maximum(network, missed.clamp(max=SMALL) * size)
    return forecast.to(context.dtype), (around / (around + network[:, None, None, None, None])).to(context.dtype)


def _around(values: Tensor, reach: int) -> Tensor:
    """Return the mean of (B, C, H, W) over the points up to `reach` away along each side, one side after the other.

    Those beyond a border are left out, whether it is periodic or a wall.
    """
    for kernel, padding in (((2 * reach + 1, 1), (reach, 0)), ((1, 2 * reach + 1), (0, reach))):
        values = F.avg_pool2d(values, kernel, 1, padding, count_include_pad=False)
    return values
