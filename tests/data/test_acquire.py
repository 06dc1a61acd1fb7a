import os

import numpy as np
import pytest

from rdjepa.data import acquire, store
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError


@pytest.fixture
def counted(monkeypatch, make):
    """Replace the simulation by a cheap one that counts its calls."""
    calls = []

    def simulate(source, seed, regime, split):
        calls.append(seed)
        return make(Key(source, split, regime, seed))

    monkeypatch.setattr(acquire, "simulate", simulate)
    return calls


def keys(count):
    return [Key("gray_scott", "pool", "id", i) for i in range(count)]


def test_what_was_made_is_read_again(tmp_path, counted):
    store_of = Acquirer(tmp_path)
    first = store_of.get(keys(1)[0])
    assert np.array_equal(store_of.get(keys(1)[0]).fields, first.fields) and counted == [0]


def test_the_limit_holds_and_the_least_recently_used_goes_first(tmp_path, counted):
    Acquirer(tmp_path).get(keys(1)[0])
    limit = int(store.path_of(tmp_path, keys(1)[0]).stat().st_size * 2.5)
    held = Acquirer(tmp_path, limit=limit)
    for number, key in enumerate(keys(2)):
        held.get(key)
        os.utime(store.path_of(tmp_path, key), ns=(number, number))
    held.get(keys(1)[0])  # makes the first the most recent
    held.get(keys(3)[2])
    assert [key.index for key in store.keys(tmp_path)] == [0, 2]
    assert sum(store.path_of(tmp_path, key).stat().st_size for key in store.keys(tmp_path)) <= limit
    assert counted == [0, 1, 2]


def test_one_larger_than_the_limit_is_returned_and_not_kept(tmp_path, counted):
    trajectory = Acquirer(tmp_path, limit=1).get(keys(1)[0])
    assert trajectory.fields.size and store.keys(tmp_path) == []


def test_a_damaged_file_is_made_again(tmp_path, counted):
    held = Acquirer(tmp_path)
    held.get(keys(1)[0])
    store.path_of(tmp_path, keys(1)[0]).write_bytes(b"damaged")
    held.get(keys(1)[0])
    assert counted == [0, 0] and store.has(tmp_path, keys(1)[0], verify=True)


def test_no_room_is_refused(tmp_path):
    with pytest.raises(DataError, match="at least one byte"):
        Acquirer(tmp_path, limit=0)


def test_what_is_not_to_be_kept_is_simulated_and_not_stored_but_read_where_it_lies(tmp_path, counted):
    acquirer, (key,) = Acquirer(tmp_path), keys(1)
    acquirer.get(key, keep=False)
    assert store.keys(tmp_path) == [] and acquirer.lacks([key]) == [key]
    acquirer.get(key)
    acquirer.get(key, keep=False)
    assert counted == [0, 0] and acquirer.lacks([key]) == []


def test_a_data_set_is_read_first_never_written_and_loud_when_damaged(tmp_path, counted, make):
    key, other = keys(2)
    store.write(tmp_path / "given", make(key))
    acquirer = Acquirer(tmp_path / "own", tmp_path / "given")
    for each in (key, other):
        acquirer.get(each)
    assert counted == [1] and store.keys(tmp_path / "given") == [key] and store.keys(tmp_path / "own") == [other]
    store.path_of(tmp_path / "given", key).write_bytes(b"damaged")
    with pytest.raises(DataError, match="damaged"):
        acquirer.get(key)


def test_a_system_of_the_user_is_simulated_from_its_file(tmp_path, monkeypatch, make):
    seen = []

    def simulate(source, seed, regime, split):
        seen.append(source)
        return make(Key("mine", split, regime, seed))

    monkeypatch.setattr(acquire, "simulate", simulate)
    Acquirer(tmp_path, sources={"mine": "mine.py"}).get(Key("mine"))
    assert seen == ["mine.py"] and store.keys(tmp_path) == [Key("mine")]
