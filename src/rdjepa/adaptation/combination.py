"""A network's forecast and a linear one combined: how much of each, as several trajectories tell.

    forecast[h, c] = w[h, c] network[h, c] + (1 - w[h, c]) linear[h, c],    0 <= w <= 1

Two forecasts whose errors differ are worth more together than the better one alone (Bates and Granger, The combination
of forecasts, 1969). The linear one, of every point from its own last four values (`rdjepa.forecasters.linear`), is hard
to beat where fields change slowly, and worth little where an excitation arrives. The shares w have the least error on
the support, each of whose trajectories is forecast by a linear one that is fitted to others, and by the network as it
is before any update: neither has seen it. One trajectory cannot tell how either does on others: the linear forecast
that is fitted to it looks far better there than it is (docs/results/left-out.md). Not part of the paper's protocol.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rdjepa.data.fields import channels_first
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.linear import Corrected, Linear
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster

TOGETHER = 8  # windows in memory
PARTS = 10  # of the support, at most, each forecast from the others; of no more trajectories each is a part


def fit_linear(support: Sequence[np.ndarray], normalizer: Normalizer) -> Linear:
    """Return the linear forecast that is fitted to trajectories (T, H, W, C) as a network sees them, standardized.

    Raises:
        ArgumentError: no trajectories, or one that is too short for a window.
    """
    return Linear.fit([_standardized(fields, normalizer) for fields in support])


def correcting(network: ForecastModel, support: Sequence[np.ndarray], normalizer: Normalizer) -> Corrected:
    """Return a network, in place, as what corrects the linear forecast that is fitted to trajectories (T, H, W, C).

    It sees frames as they are: its output is no field any more, whose motion could be magnified.

    Raises:
        ArgumentError: no trajectories, or one that is too short for a window.
    """
    if isinstance(network, RDJEPAForecaster):
        network.config = replace(network.config, motion=0.0)
    return Corrected(network, fit_linear(support, normalizer))


@torch.no_grad()
def shares(
    network: ForecastModel, support: Sequence[np.ndarray], normalizer: Normalizer, device: torch.device
) -> Tensor:
    """Return the shares w (5, C) of a network with the least error on trajectories (T, H, W, C), two or more.

    Args:
        network: on the device, before any update.
        support: in physical units.
        normalizer: their field statistics.
        device: of the computation, and of the result.

    Raises:
        ArgumentError: fewer than two trajectories, or one that is too short for a window.
    """
    products = torch.zeros(HORIZONS, network.components, dtype=torch.float64, device=device)
    squares = torch.zeros_like(products)
    standard = [_standardized(fields, normalizer) for fields in support]
    for part in range(min(PARTS, len(standard))):
        linear = Linear.fit([fields for i, fields in enumerate(standard) if i % PARTS != part]).to(device)
        for fields in standard[part::PARTS]:
            cut = FORECASTING.stack(fields.to(device))
            for context, targets in zip(cut.context.split(TOGETHER), cut.targets.split(TOGETHER), strict=True):
                other = linear(context)
                apart, missing = network(context).float() - other, targets - other
                products += (apart * missing).sum((0, 3, 4))
                squares += apart.square().sum((0, 3, 4))
    return (products / squares.clamp_min(torch.finfo(squares.dtype).tiny)).clamp(0, 1).float()


def _standardized(fields: np.ndarray, normalizer: Normalizer) -> Tensor:
    """Return (T, C, H, W)."""
    return torch.from_numpy(channels_first(normalizer.standardize(fields)))
