"""How unlike the support a context is: its distance from the support in the latent space of the pretrained encoder.

A window is described by the standard deviation of every latent number over the grid of its tokens, which does not
depend on where things are. A context is compared with the nearest window of
the support, in units of the largest distance that windows known to be of the same kind have: those of the calibration
from the support, or where nothing was calibrated those of the support from each other, windows of one trajectory apart.
"""

from collections.abc import Sequence

import numpy as np
import torch

from rdjepa.adaptation.adapt import Windows
from rdjepa.data.fields import channels_first
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.familiar import Familiar, distances
from rdjepa.models.device import device_of

AT_ONCE = 4


def familiar(
    latents: np.ndarray, counts: Sequence[int], others: np.ndarray | None = None, ends: np.ndarray | None = None
) -> Familiar:
    """Describe a support set.

    Args:
        latents: (n, d) one row for every window, trajectory by trajectory.
        counts: number of windows of each trajectory.
        others: (m, d) rows of windows that are known to be of the same kind; those of the support itself when None.
        ends: (e, d) rows of contexts that no window begins with, as the next five frames are not known.
    """
    every = latents if ends is None else np.concatenate([latents, ends])
    if others is not None:
        return Familiar(every, float(distances(others, every).min(axis=1).max()))
    between = distances(latents, latents)
    whose, start = np.repeat(np.arange(len(counts)), counts), np.concatenate([np.arange(count) for count in counts])
    near = whose[:, None] == whose
    if len(counts) == 1:
        near &= np.abs(start[:, None] - start) < FORECASTING.length
    apart = np.where(near, np.inf, between).min(axis=1)
    known = apart[np.isfinite(apart)]  # none where all windows of a single trajectory overlap
    return Familiar(every, float(known.max() if len(known) else between.max()))


@torch.no_grad()
def summarize(model: ForecastModel, data: Windows) -> np.ndarray | None:
    """Return the rows (n, d) of the windows of the support; None for a forecaster without a pretrained encoder."""
    few = zip(*(part[: data.own].split(AT_ONCE) for part in data.features), strict=True)
    return _rows([model.latent_summary(*parts) for parts in few])


@torch.no_grad()
def embed(model: ForecastModel, contexts: np.ndarray, normalizer: Normalizer) -> np.ndarray | None:
    """Return the rows (B, d) of contexts (B, 4, H, W, C); None for a forecaster without a pretrained encoder."""
    device = device_of(model)
    standard = torch.from_numpy(channels_first(normalizer.standardize(contexts.astype(np.float32))))
    return _rows([model.description(part.to(device)) for part in standard.split(AT_ONCE)])


def described(model: ForecastModel, trajectories: Sequence[np.ndarray], normalizer: Normalizer) -> np.ndarray | None:
    """Return the rows (n, d) of all windows of trajectories (T, H, W, C), as `embed` those of contexts."""
    contexts = [FORECASTING.stack(fields).context for fields in trajectories]
    return embed(model, np.concatenate(contexts), normalizer)


def last_contexts(fields: np.ndarray) -> np.ndarray:
    """Return the contexts (5, 4, H, W, C) at the end of a trajectory (T, H, W, C) that no whole window begins with."""
    starts = range(FORECASTING.count(len(fields)), len(fields) - FORECASTING.context + 1)
    return np.stack([fields[start : start + FORECASTING.context] for start in starts])


def _rows(parts: Sequence[torch.Tensor | None]) -> np.ndarray | None:
    found = [part.float().cpu().numpy() for part in parts if part is not None]
    return np.concatenate(found) if found else None
