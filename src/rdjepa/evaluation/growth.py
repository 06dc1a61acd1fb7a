"""Growth of the error of a long forecast, beside forecasts that need no model."""

from typing import NamedTuple

import numpy as np

from rdjepa.errors import DataError
from rdjepa.evaluation.metrics import relative_l2


class Growth(NamedTuple):
    """Relative L2 error of every frame, (n,) each.

    Attributes:
        forecast: of the rollout; not finite where that is not.
        persistence: of the newest given frame, repeated.
        climatology: of the mean of every component over the support, everywhere and always: its error is the spread
            of the fields.
    """

    forecast: np.ndarray
    persistence: np.ndarray
    climatology: np.ndarray

    @property
    def skilful(self) -> int:
        """Number of frames, from the first, at which the forecast is better than both others."""
        better = (self.forecast < self.persistence) & (self.forecast < self.climatology)
        return len(better) if better.all() else int(better.argmin())


def growth(made: np.ndarray, reference: np.ndarray, newest: np.ndarray, mean: np.ndarray) -> Growth:
    """Compare a rollout with the frames that followed.

    Args:
        made: (N, H, W, C), the rollout.
        reference: (n, H, W, C), what followed; frames beyond the shorter of the two are left out.
        newest: (H, W, C), the last given frame.
        mean: (C,) mean of every component over the support.

    Raises:
        DataError: there is no frame to compare with.
    """
    count = min(len(made), len(reference))
    if not count:
        raise DataError("expected at least one frame after the context, got none; start earlier")
    truth = np.asarray(reference[:count], dtype=np.float64)
    others = (np.asarray(made[:count], dtype=np.float64), newest, mean)
    return Growth(*(relative_l2(np.broadcast_to(other, truth.shape), truth) for other in others))
