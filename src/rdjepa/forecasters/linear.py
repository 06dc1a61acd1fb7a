"""A linear forecast of every point from its own last four values, and a trained correction of it.

    forecast[h, c] = sum_k a[h, c, k] frame[k, c] + b[h, c] + s[h, c] network[h, c]

a and b are the least-squares solution on the support set, s is the root mean square of its residual, all in
standardized units; only the network is trained. Where fields change little from frame to frame, the linear part
explains nearly all, and a network that starts from random weights would have to learn it first. Not part of the paper's
protocol.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.around import Beside
from rdjepa.forecasters.base import CONTEXT, HORIZONS, ForecastModel
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.simple import Simple

# Weight of ||a||^2 + b^2 against the mean squared error: four frames of slow fields are nearly collinear.
RIDGE = 1e-6
SMALLEST_SCALE = 1e-6
CONSTANTS = {"ridge": RIDGE}


class Linear(Simple):
    """The linear forecast alone: four weights and an offset per horizon and component.

    Args:
        components: field components C.

    Attributes:
        weights: (N, C, 4) of the context frames, oldest first.
        offset: (N, C).
        scale: (N, C) root mean square error on the data it was fitted to.
    """

    name, constants = "linear", CONSTANTS
    weights: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(self, components: int = 2) -> None:
        super().__init__(components)
        self.register_buffer("weights", torch.zeros(HORIZONS, components, CONTEXT))
        self.register_buffer("offset", torch.zeros(HORIZONS, components))
        self.register_buffer("scale", torch.ones(HORIZONS, components))

    @classmethod
    def fit(cls, support: Sequence[Tensor]) -> Self:
        """Fit least squares over all windows of standardized trajectories (T, C, H, W), in float64.

        Raises:
            ArgumentError: no trajectories, or one that is too short for a window.
        """
        shortest = min((len(fields) for fields in support), default=0)
        if shortest < CONTEXT + HORIZONS:
            raise ArgumentError(
                f"expected trajectories of at least {CONTEXT + HORIZONS} frames, got {shortest}; give longer"
            )
        model = cls(support[0].shape[1])
        for component in range(model.components):
            # Only second moments are accumulated, so the windows of one trajectory at a time are in memory. Rows: the
            # frames of a window, then a constant 1 for the offset.
            rows = CONTEXT + HORIZONS + 1
            products, count = torch.zeros(rows, rows, dtype=torch.float64, device=support[0].device), 0
            for fields in support:
                flat = fields[:, component].flatten(1).double()
                lags = flat.unfold(0, rows - 1, 1).permute(2, 0, 1).flatten(1)  # (9, windows x points)
                lags = torch.cat([lags, torch.ones_like(lags[:1])])
                products, count = products + lags @ lags.T, count + lags.shape[1]
            moments = products / count
            known = [*range(CONTEXT), CONTEXT + HORIZONS]
            future = list(range(CONTEXT, CONTEXT + HORIZONS))
            gram, cross = moments[known][:, known], moments[known][:, future]
            penalty = RIDGE * torch.eye(len(known), dtype=gram.dtype, device=gram.device)
            solution = torch.linalg.solve(gram + penalty, cross)
            residual = moments.diagonal()[future] - (2 * cross * solution - solution * (gram @ solution)).sum(0)
            model.weights[:, component] = solution[:CONTEXT].T
            model.offset[:, component] = solution[CONTEXT]
            model.scale[:, component] = residual.clamp(min=0).sqrt().clamp(min=SMALLEST_SCALE)
        return model

    def fitted_to(self, support: Sequence[Tensor], domain: Domain = PLAIN) -> Self:
        """Return `fit` of the support; the domain changes nothing."""
        return self.fit(support)

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W) from context (B, 4, C, H, W), in the precision of the weights."""
        (context,) = features
        with torch.autocast(context.device.type, enabled=False):  # weights of slow fields cancel but for a few digits
            made = torch.einsum("nck,bkchw->bnchw", self.weights, context.to(self.weights.dtype))
            return made + self.offset[:, :, None, None]


class Corrected(Beside):
    """A linear forecast plus a network's correction, which is in units of the linear forecast's error.

    Args:
        network: any forecaster; it is trained as it would be without the linear part.
        linear: linear forecast fitted on the same support set; unfitted when None, to load weights into.
    """

    def __init__(self, network: ForecastModel, linear: Linear | None = None) -> None:
        super().__init__(network)
        self.linear = linear or Linear(network.components)

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return the linear forecast (B, 5, C, H, W), then the network's features."""
        return (self.linear(context), *self.network.features(context))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        linear, *rest = features
        return linear + self.linear.scale[:, :, None, None] * self.network.predict(*rest)
