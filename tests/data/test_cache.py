import os

import numpy as np
import pytest

from rdjepa.data import cache, store
from rdjepa.data.cache import Cache
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError


@pytest.fixture
def counted(monkeypatch, make):
    """Replace the simulation by a cheap one that counts its calls."""
    calls = []

    def simulate(source, seed, regime, split):
        calls.append(seed)
        return make(Key(source, split, regime, seed))

    monkeypatch.setattr(cache, "simulate", simulate)
    return calls


def keys(count):
    return [Key("gray_scott", "pool", "id", i) for i in range(count)]


def test_what_was_made_is_read_again(tmp_path, counted):
    store_of = Cache(tmp_path, 10**9)
    first = store_of.get(keys(1)[0])
    assert np.array_equal(store_of.get(keys(1)[0]).fields, first.fields) and counted == [0]


def test_the_limit_holds_and_the_least_recently_used_goes_first(tmp_path, counted):
    one = Cache(tmp_path, 10**9)
    one.get(keys(1)[0])
    limit = int(one.size() * 2.5)
    held = Cache(tmp_path, limit)
    for number, key in enumerate(keys(2)):
        held.get(key)
        os.utime(store.path_of(tmp_path, key), ns=(number, number))
    held.get(keys(1)[0])  # makes the first the most recent
    held.get(keys(3)[2])
    assert held.size() <= limit
    assert [key.index for key in store.keys(tmp_path)] == [0, 2]
    assert counted == [0, 1, 2]


def test_one_larger_than_the_limit_is_returned_and_not_kept(tmp_path, counted):
    trajectory = Cache(tmp_path, 1).get(keys(1)[0])
    assert trajectory.fields.size and store.keys(tmp_path) == []


def test_a_damaged_file_is_made_again(tmp_path, counted):
    held = Cache(tmp_path, 10**9)
    held.get(keys(1)[0])
    store.path_of(tmp_path, keys(1)[0]).write_bytes(b"damaged")
    held.get(keys(1)[0])
    assert counted == [0, 0] and store.is_complete(store.path_of(tmp_path, keys(1)[0]), verify=True)


def test_no_room_is_no_cache(tmp_path):
    with pytest.raises(DataError, match="at least one byte"):
        Cache(tmp_path, 0)
