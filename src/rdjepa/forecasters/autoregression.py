"""A forecast that is fitted to its own context, and to nothing else: every point from its last two values.

    x[t + 1] - x[t] = A x[t] + B x[t - 1] + Q (products of two components of x[t]) + c

x has all components of one point. A, B, Q and c are the same at all points of one context, and are fitted to its own
four frames by least squares, which hold two steps of every point; the map is then applied five times. It needs no
trajectory to learn from, knows nothing of what is beside a point, and has no parameter. Of slow fields it is
nevertheless a forecast that few networks reach: there, what is beside a point changes as the point itself does.

Close relatives fit a linear map to a sequence (dynamic mode decomposition; Schmid, Journal of Fluid Mechanics 656,
2010), or the terms of an equation to its rates (Brunton, Proctor and Kutz, PNAS 113, 2016). Not part of the paper.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.simple import Simple

LAGS = 2
RIDGE = 1e-6  # weight of the squared coefficients against the mean squared error: two frames of slow fields are alike
MARGIN = 0.5  # of the range of a component in the context
CONSTANTS = {"lags": LAGS, "ridge": RIDGE, "margin": MARGIN}


class Autoregression(Simple):
    """The forecast of each context by the map that fits it, in standardized units."""

    name, constants = "autoregression", CONSTANTS

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W) from context (B, 4, C, H, W), in float64 within."""
        (context,) = features
        return continued(context, HORIZONS).to(context.dtype)


def continued(context: Float[Tensor, "B T C H W"], horizons: int) -> Float[Tensor, "B N C H W"]:
    """Fit the map of every context, T at least 3, and apply it `horizons` times, in float64.

    Where the map goes astray, as quadratic maps do, it is kept within the values of the context, continued by half of
    their range on either side.
    """
    frames = list(context.double().unbind(1))
    known = torch.stack(frames)
    steps = range(LAGS, len(frames))
    given = torch.cat([_terms(frames[step - 1], frames[step - 2]) for step in steps], dim=2)  # (B, n, points)
    wanted = torch.cat([(frames[step] - frames[step - 1]).flatten(2) for step in steps], dim=2)  # (B, C, points)
    points, transposed = given.shape[2], given.transpose(1, 2)
    penalty = RIDGE * torch.eye(given.shape[1], dtype=given.dtype, device=given.device)
    map = solved(given @ transposed / points + penalty, (wanted @ transposed / points).transpose(1, 2)).transpose(1, 2)
    lowest, highest = known.amin((0, 3, 4))[..., None, None], known.amax((0, 3, 4))[..., None, None]
    beyond = MARGIN * (highest - lowest)
    for _ in range(horizons):
        change = (map @ _terms(frames[-1], frames[-2])).view_as(frames[-1])
        frames.append(torch.minimum(torch.maximum(frames[-1] + change, lowest - beyond), highest + beyond))
    return torch.stack(frames[-horizons:], dim=1)


def _terms(newest: Float[Tensor, "B C H W"], before: Float[Tensor, "B C H W"]) -> Float[Tensor, "B n H*W"]:
    """Return what the change of every point is made of: its values, those before, products of two of them, and 1."""
    one, other = torch.triu_indices(newest.shape[1], newest.shape[1], device=newest.device)
    products = newest.index_select(1, one) * newest.index_select(1, other)
    return torch.cat([newest, before, products, torch.ones_like(newest[:, :1])], dim=1).flatten(2)


def solved(matrix: Float[Tensor, "B n n"], right: Float[Tensor, "B n m"]) -> Float[Tensor, "B n m"]:
    """Solve symmetric positive definite systems, by elimination without pivots: exporters have all it takes."""
    count = matrix.shape[1]
    unit = torch.eye(count, dtype=matrix.dtype, device=matrix.device)
    rows = torch.cat([matrix, right], dim=2)
    for i in range(count):
        pivot = rows[:, i : i + 1] / rows[:, i : i + 1, i : i + 1]
        rows = rows - (rows[:, :, i : i + 1] - unit[:, i : i + 1]) * pivot
    return rows[:, :, count:]
