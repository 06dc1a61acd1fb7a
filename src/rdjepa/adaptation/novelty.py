"""How unlike the support a context is: its distance from the support in the latent space of the pretrained encoder.

A window is described by the standard deviation of every latent number over the grid of its tokens, which does not
depend on where things are. A context is compared with the nearest window of
the support, in units of the largest distance that windows known to be of the same kind have: those of the calibration
from the support, or where nothing was calibrated those of the support from each other, windows of one trajectory apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rdjepa.checks import NotNegative, checked
from rdjepa.data.fields import channels_first
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import ForecastModel

AT_ONCE = 4


@dataclass(frozen=True)
class Familiar:
    """The support as the encoder sees it.

    Attributes:
        latents: (n, d) one row for every window of the support.
        reach: largest distance from them of a window that is known to be of the same kind.
    """

    latents: np.ndarray
    reach: float

    def __post_init__(self) -> None:
        """Check the shape and the number, which may come from a file."""
        checked(self.reach, NotNegative, "the reach")
        if np.ndim(self.latents) != 2 or not len(self.latents):
            raise ArgumentError(f"expected latents (n, d), got {np.shape(self.latents)}; adapt the forecaster again")

    def novelty(self, latents: np.ndarray) -> np.ndarray:
        """Return the distance of every row of (m, d) from the nearest of the support, in units of the reach, (m,)."""
        return distances(latents, self.latents).min(axis=1) / max(self.reach, np.finfo(np.float32).tiny)


def familiar(
    model: ForecastModel,
    support: Sequence[np.ndarray],
    normalizer: Normalizer,
    others: Sequence[np.ndarray] = (),
) -> Familiar | None:
    """Describe a support set; None for a forecaster without a pretrained encoder.

    Args:
        model: the forecaster.
        support: trajectories (T, H, W, C) that it was adapted to.
        normalizer: of the forecaster.
        others: trajectories that it was calibrated on.
    """
    rows = [_windows(model, fields, normalizer) for fields in support]
    if rows[0] is None:
        return None
    latents = np.concatenate([row for row in rows if row is not None])
    if others:
        more = np.concatenate([row for row in (_windows(model, f, normalizer) for f in others) if row is not None])
        return Familiar(latents, float(distances(more, latents).min(axis=1).max()))
    between = distances(latents, latents)
    whose = np.repeat(np.arange(len(rows)), [len(row) for row in rows if row is not None])
    start = np.concatenate([np.arange(len(row)) for row in rows if row is not None])
    near = whose[:, None] == whose if len(rows) > 1 else np.abs(start[:, None] - start) < FORECASTING.length
    between[near] = np.inf
    nearest = between.min(axis=1)
    if not np.isfinite(nearest).any():  # a trajectory so short that all its windows overlap
        between = distances(latents, latents)
        return Familiar(latents, float(between.max()))
    return Familiar(latents, float(nearest[np.isfinite(nearest)].max()))


@torch.no_grad()
def embed(model: ForecastModel, contexts: np.ndarray, normalizer: Normalizer) -> np.ndarray | None:
    """Return the rows (B, d) of contexts (B, 4, H, W, C); None for a forecaster without a pretrained encoder."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    standard = torch.from_numpy(channels_first(normalizer.standardize(contexts.astype(np.float32))))
    parts = [model.embed(part.to(device)) for part in standard.split(AT_ONCE)]
    found = [part.float().cpu().numpy() for part in parts if part is not None]
    return np.concatenate(found) if found else None


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the Euclidean distances (n, m) between rows (n, d) and (m, d)."""
    from scipy.spatial.distance import cdist

    return cdist(a, b)


def _windows(model: ForecastModel, fields: np.ndarray, normalizer: Normalizer) -> np.ndarray | None:
    return embed(model, FORECASTING.stack(fields).context, normalizer)
