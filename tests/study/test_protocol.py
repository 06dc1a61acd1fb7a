from collections import Counter

import pytest

from rdjepa.data.splits import coinciding_seeds
from rdjepa.study import protocol
from rdjepa.systems import get, names, wall_names


def test_the_full_benchmark_has_the_papers_counts():
    keys = protocol.keys()
    assert len(keys) == len(set(keys)) == 11_625
    count = Counter((key.system, key.split) for key in keys)
    assert all(count[name, "test"] == 300 for name in protocol.SYSTEMS)
    assert [count[name, "pool"] for name in protocol.SYSTEMS] == [1000] * 8 + [20] * 3
    assert [count[name, "validation"] for name in protocol.SYSTEMS] == [50] * 5 + [0] * 3 + [5] * 3


def test_every_system_is_known_and_every_regime_exists():
    assert names() + wall_names() == protocol.SYSTEMS
    assert all(key.regime in get(key.system).regimes for key in protocol.keys(scale=0.01))


def test_a_scale_leaves_no_part_empty_and_gives_the_first_of_each():
    small, full = protocol.keys(scale=0.01), set(protocol.keys())
    parts = Counter((key.system, key.split, key.regime) for key in small)
    assert set(parts) == {(key.system, key.split, key.regime) for key in full} and set(small) <= full
    assert parts["barkley", "test", "id"] == 3 and parts["barkley-robin", "validation", "id"] == 1
    assert max(Counter((k.system, k.split, k.regime) for k in protocol.keys(count=2)).values()) == 2


@pytest.mark.parametrize(
    "arguments", [{"scale": 0}, {"scale": 1.5}, {"count": 0}, {"splits": ("train",)}, {"splits": ()}]
)
def test_empty_or_unknown_parts_are_refused(arguments):
    with pytest.raises(ValueError, match="expected"):
        protocol.keys(**arguments)


@pytest.mark.parametrize("system", protocol.SYSTEMS)
def test_no_two_seeds_of_a_study_select_the_same_single_trajectory(system):
    assert coinciding_seeds(protocol.counts(system)["pool", "id"], 1, protocol.support_seeds(system)) == ()


def test_a_users_system_has_the_counts_of_a_held_out_one():
    assert protocol.counts("mine") == protocol.counts("barkley")
