"""Ridge regression in closed form, with the penalty chosen by cross-validation over whole groups."""

from dataclasses import dataclass, replace

import numpy as np

from rdjepa.errors import ArgumentError

PENALTIES = tuple(10.0**power for power in range(-4, 5))
FOLDS = 5


@dataclass(frozen=True)
class Ridge:
    """A linear map on standardized features.

    Attributes:
        mean, scale: (p,) mean and standard deviation of the features it was fitted on.
        weights: (p, q) weights of standardized features.
        offset: (q,) means of the targets.
        penalty: (q,) one per target; multiplied by the number of rows, the weight of ||w||^2 against the squared error.
    """

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    offset: np.ndarray
    penalty: np.ndarray

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return the predictions (n, q) from features (n, p)."""
        return (features - self.mean) / self.scale @ self.weights + self.offset


def fit_cross_validated(features: np.ndarray, targets: np.ndarray, groups: np.ndarray) -> Ridge:
    """Fit each target with the penalty of `PENALTIES` that predicts it best in groups that were left out.

    It minimizes ||Y - X W||^2 + n penalty ||W||^2 for standardized features X and centered targets Y.

    Args:
        features: (n, p).
        targets: (n, q).
        groups: (n,) group of each row; the windows of a trajectory are one group, since they resemble each other.

    Raises:
        ArgumentError: fewer than two groups.
    """
    names = np.unique(groups)
    if len(names) < 2:
        raise ArgumentError(f"expected at least two groups to validate on, got {len(names)}; give more trajectories")
    errors = np.zeros((len(PENALTIES), targets.shape[1]))
    for left_out in np.array_split(np.random.default_rng(0).permutation(names), min(FOLDS, len(names))):
        held = np.isin(groups, left_out)
        for number, ridge in enumerate(_fits(features[~held], targets[~held], PENALTIES)):
            errors[number] += ((ridge.predict(features[held]) - targets[held]) ** 2).sum(axis=0)
    best = errors.argmin(axis=0)
    ridges = _fits(features, targets, PENALTIES)
    weights = np.stack([ridges[number].weights[:, target] for target, number in enumerate(best)], axis=1)
    return replace(ridges[0], weights=weights, penalty=np.array(PENALTIES)[best])


def r_squared(predicted: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return the coefficients of determination 1 - SSE / SST, (q,), of predictions (n, q).

    A prediction of the mean has the value 0, a worse one a negative value.
    """
    residual = ((predicted - true) ** 2).sum(axis=0)
    return 1 - residual / np.maximum(((true - true.mean(axis=0)) ** 2).sum(axis=0), 1e-300)


def _fits(features: np.ndarray, targets: np.ndarray, penalties: tuple[float, ...]) -> list[Ridge]:
    """Return one map per penalty, all from a single singular value decomposition."""
    mean, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-8)
    offset = targets.mean(axis=0)
    u, s, vt = np.linalg.svd((features - mean) / scale, full_matrices=False)
    projected = u.T @ (targets - offset)
    return [
        Ridge(
            mean,
            scale,
            vt.T @ (projected * (s / (s**2 + len(features) * penalty))[:, None]),
            offset,
            np.full(len(offset), penalty),
        )
        for penalty in penalties
    ]
