"""A network's forecast combined with simple ones: how much of each, as the trajectories tell.

Forecasts whose errors differ are worth more together than the best alone (Bates and Granger, The combination of
forecasts, 1969). Some are hard to beat: that of every context by what fits its own four frames, an equation
(`rdjepa.forecasters.equation`) or a map of every point (`rdjepa.forecasters.autoregression`), and with two trajectories
or more the linear one of every point from its last four values, fitted to all of them (`rdjepa.forecasters.linear`).
Whether it finds its own context again says where an equation is of no use, so there is a blend of network and equation
too. The shares (`rdjepa.forecasters.combined`) have the least error on the support, where nothing has seen what it
forecasts: the network is as it was before any update, a fit sees its context alone, and what each trajectory's equation
and linear forecast know of a support is of the others, or of a single trajectory the equation's of its other half,
where that has a window. Not part of the paper's protocol.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.combined import COMBINED, EVERY, PARTS, Combined, blending
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.linear import Corrected, Linear

TOGETHER = 8  # windows in memory
MOST = 64  # windows of a trajectory that tell the shares: each has an equation to be fitted; longer ones have no more
ROUNDING = 1e-12  # of second moments


def correcting(network: ForecastModel, support: Sequence[Tensor]) -> Corrected:
    """Return a network as what corrects the linear forecast that is fitted to standardized trajectories (T, C, H, W).

    Raises:
        ArgumentError: no trajectories, or one that is too short for a window.
    """
    return Corrected(network, Linear.fit(support)).to(support[0].device)


@torch.no_grad()
def combined(network: ForecastModel, support: Sequence[Tensor], domain: Domain = PLAIN) -> tuple[Combined, float]:
    """Combine a network, as it is before any update, with the simple forecasts, in the shares of least error.

    Args:
        network: it becomes part of what is returned.
        support: standardized trajectories (T, C, H, W), on the device of the network and of the result. Of a single one
            the linear forecast has no share.
        domain: how it ends, and how far points lie apart.

    Returns:
        The combination, and the norm of its errors over that of the standardized fields, where the shares were found.

    Raises:
        ArgumentError: no trajectories, or one that is too short for a window.
    """
    if not support:
        raise ArgumentError("expected at least one trajectory to find shares on, got none; give some")
    several, device = len(support) > 1, support[0].device
    pieces = support if several else _halves(support[0])
    count = COMBINED if several else COMBINED - 1  # without the linear forecast, which is the last
    moments = torch.zeros(HORIZONS, network.components, count, count, dtype=torch.float64, device=device)
    squares, of_points = 0.0, Autoregression(network.components)
    for part in range(min(PARTS, len(pieces))):
        others = [fields for i, fields in enumerate(pieces) if i % PARTS != part]
        fits = [Linear.fit(others).to(device)] if several else []
        equation = Equation.fit(others, domain) if others else Equation(network.components, domain).to(device)
        for fields in pieces[part::PARTS]:
            starts = FORECASTING.starts(len(fields))[::EVERY]
            few = np.linspace(0, len(starts) - 1, min(len(starts), MOST // (1 if several else len(pieces)))).astype(int)
            cut = FORECASTING.stack(fields, [starts[i] for i in few])
            for context, targets in zip(cut.context.split(TOGETHER), cut.targets.split(TOGETHER), strict=True):
                alone, (own, g) = network(context).float(), blending(context, equation)
                made = torch.stack(
                    [alone, torch.lerp(own, alone, g), own, *(fit(context) for fit in (of_points, *fits))]
                )
                errors = (made - targets).double()
                squares += float(targets.double().square().sum())
                moments += torch.einsum("ibnchw,jbnchw->ncij", errors, errors)
    found = np.zeros((COMBINED, HORIZONS, network.components))
    missed = 0.0
    for place in np.ndindex(found.shape[1:]):
        shares, inner = found[(slice(count), *place)], moments[place].cpu().numpy()
        shares[:] = least(inner)
        missed += shares @ inner @ shares
    linear = Linear.fit(support) if several else None
    equation = Equation.fit(support, domain)
    result = Combined(network, linear, torch.from_numpy(found).float(), equation).to(device)
    return result, math.sqrt(missed / squares) if squares else 0.0


def blended(network: ForecastModel, equation: Equation) -> Combined:
    """Return a network blended with the equation of each context, which takes no error to know the shares.

    What the equation misses of a context says how far to trust it, and that is known beside a network that has learned
    the trajectories too, whose errors on others are not.
    """
    shares = torch.zeros(COMBINED, HORIZONS, network.components)
    shares[1] = 1
    return Combined(network, None, shares, equation).to(equation.low.device)


def least(moments: np.ndarray) -> np.ndarray:
    """Return the shares w (n,) with the least w^T M w, where M (n, n) are second moments of errors.

    Shares are not negative, and of sum 1. Which of them are 0 is tried; for the others it is a linear system. The first
    has all where the moments are not finite. (`nnls` of SciPy 1.12 to 1.14 fails where two forecasts are nearly alike.)
    """
    best, shares = np.inf, np.eye(len(moments))[0]
    moments = moments + ROUNDING * (moments.trace() or 1.0) * np.eye(len(moments))  # forecasts may have no error
    for size in range(1, len(moments) + 1):
        for chosen in map(list, combinations(range(len(moments)), size)):
            inner = moments[np.ix_(chosen, chosen)]
            part = np.linalg.solve(inner, np.ones(size))
            if part.sum() <= 0 or (part < 0).any():
                continue
            part = part / part.sum()
            if (value := part @ inner @ part) < best:
                best, shares = value, np.zeros(len(moments))
                shares[chosen] = part
    return shares


def _halves(fields: Tensor) -> list[Tensor]:
    """Return the two halves of a trajectory (T, C, H, W), or all of it where a half has no window."""
    middle = len(fields) // 2
    return [fields] if middle < FORECASTING.length else [fields[:middle], fields[middle:]]
