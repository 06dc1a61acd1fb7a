"""Support sets: which K trajectories of a pool adaptation uses (S3.1)."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rdjepa.errors import DataError


def support_order(pool_size: int, seed: int) -> tuple[int, ...]:
    """Permute the indices of a pool by a support seed: 777, 778 or 779 in the main study.

    The permutation is that of NumPy's RandomState, whose stream is frozen: it is the same in every version.

    Raises:
        DataError: the pool is empty.
    """
    if pool_size < 1:
        raise DataError(f"expected a pool of at least one trajectory, got {pool_size}; simulate or load some")
    return tuple(np.random.RandomState(seed).permutation(pool_size).tolist())


def support(pool_size: int, k: int, seed: int) -> tuple[int, ...]:
    """Return the k support trajectories that a seed selects from a pool: the first k indices of its order.

    Each smaller support set is contained in the larger ones.

    Raises:
        DataError: k is below 1 or above the size of the pool, or the pool is empty.
    """
    order = support_order(pool_size, seed)
    if not 1 <= k <= len(order):
        raise DataError(f"expected from 1 to {len(order)} support trajectories, got {k}; ask for fewer")
    return order[:k]


def coinciding_seeds(pool_size: int, k: int, seeds: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of seeds that select the same k trajectories, in any order.

    The paper left out seed 779 in its boundary study because it selected the trajectory of seed 778 at K = 1.
    """
    chosen = {seed: frozenset(support(pool_size, k, seed)) for seed in seeds}
    return tuple((a, b) for a, b in combinations(chosen, 2) if chosen[a] == chosen[b])
