"""What a pretrained encoder knows a support by, and how far other contexts are from it.

Every context has a description, one vector (`ForecastModel.latent_summary`). Its novelty is the distance of this vector
from the nearest one of the support, in units of the largest distance that contexts of the same kind are known to have.
"""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from rdjepa.checks import NotNegative, checked
from rdjepa.errors import ArgumentError

SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Familiar:
    """The support as the encoder sees it.

    Attributes:
        latents: (n, d) one row for every context of the support, those at its end, which nothing follows, included.
        reach: largest distance from them of a window that is known to be of the same kind.
        missed: mean square of the network's errors on the support, by that of its fields; 0 where nobody asks.
    """

    latents: np.ndarray
    reach: float
    missed: float = 0.0

    def __post_init__(self) -> None:
        """Check the shape and the number, which may come from a file."""
        checked(self.reach, NotNegative, "the reach")
        checked(self.missed, NotNegative, "what is missed of the support")
        if np.ndim(self.latents) != 2 or not len(self.latents):
            raise ArgumentError(f"expected latents (n, d), got {np.shape(self.latents)}; adapt the forecaster again")

    def novelty(self, latents: np.ndarray) -> np.ndarray:
        """Return the distance of every row of (m, d) from the nearest of the support, in units of the reach, (m,)."""
        return distances(latents, self.latents).min(axis=1) / max(self.reach, SMALLEST)


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the Euclidean distances (n, m) between rows (n, d) and (m, d)."""
    from scipy.spatial.distance import cdist

    return cdist(a, b)


def novelty(latents: Tensor, known: Tensor, reach: Tensor) -> Tensor:
    """Return what `Familiar.novelty` does, (m,), as a tensor on a device.

    Args:
        latents: (m, d) descriptions of contexts.
        known: (n, d) those of the support.
        reach: of the support, a scalar.
    """
    apart = (latents.double()[:, None] - known.double()).square().sum(-1).amin(1).sqrt()
    return apart / reach.double().clamp(min=SMALLEST)
