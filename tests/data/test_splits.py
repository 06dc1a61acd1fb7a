from itertools import pairwise

import pytest

from rdjepa.data.splits import coinciding_seeds, support, support_order
from rdjepa.errors import DataError

SEEDS = (777, 778, 779)


@pytest.mark.parametrize("seed", SEEDS)
def test_smaller_support_sets_are_part_of_larger_ones(seed: int) -> None:
    chosen = [support(1000, k, seed) for k in (1, 5, 10, 20)]
    for small, large in pairwise(chosen):
        assert large[: len(small)] == small
    assert len(set(chosen[-1])) == 20 and all(0 <= i < 1000 for i in chosen[-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_is_a_permutation_of_the_pool(seed: int) -> None:
    assert sorted(support_order(50, seed)) == list(range(50))


def test_the_selection_is_the_same_everywhere() -> None:
    assert [support(1000, 1, seed) for seed in SEEDS] == [(678,), (120,), (455,)]
    assert support(20, 5, 777) == (14, 12, 11, 1, 3)


def test_the_seeds_of_the_study_select_differently() -> None:
    for size in (20, 1000):
        assert coinciding_seeds(size, 1, (777, 778, 779, 780)) == ()


def test_coinciding_selections_are_found() -> None:
    assert coinciding_seeds(1, 1, (1, 2, 3)) == ((1, 2), (1, 3), (2, 3))
    assert coinciding_seeds(4, 4, (1, 2)) == ((1, 2),)  # the whole pool in another order
    pairs = coinciding_seeds(3, 1, range(10))
    assert pairs and all(support(3, 1, a) == support(3, 1, b) for a, b in pairs)


@pytest.mark.parametrize("k", [0, 4])
def test_a_size_beyond_the_pool_is_refused(k: int) -> None:
    with pytest.raises(DataError, match="expected from 1 to 3 support trajectories"):
        support(3, k, 777)


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(DataError, match="at least one trajectory"):
        support_order(0, 777)
