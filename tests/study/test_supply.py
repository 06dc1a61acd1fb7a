"""Statistics and trajectories: read where there are some, made otherwise, and the same for every cell."""

import json
from dataclasses import asdict, replace

import pytest

from rdjepa import systems
from rdjepa.data import store
from rdjepa.data.build import trajectory_bytes
from rdjepa.data.identity import identity
from rdjepa.data.statistics import Normalizer
from rdjepa.data.store import checksum
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError
from rdjepa.io import sealed
from rdjepa.io.checkpoint import Sources
from rdjepa.study import supply as supplying
from rdjepa.study.fingerprints import recipe_fingerprint
from rdjepa.study.supply import Supply, keys_of, pool_keys
from rdjepa.systems import get, register


def test_statistics_are_those_of_the_first_pool_trajectories(tmp_path, brief, two_cells, simulate_once):
    supply = Supply(tmp_path)
    supply.prepare(two_cells, replace(brief, statistics=3))
    recipe = sealed.read(tmp_path / "data" / "recipe.json", dict, "")
    assert recipe == {"lambda-omega": identity(get("lambda-omega"))}
    expected = Normalizer.fit([simulate_once("lambda-omega", i).fields for i in range(3)])
    assert supply.normalizer("lambda-omega", 3) == expected
    with pytest.raises(DataError, match="start the study again"):
        supply.normalizer("lambda-omega", 4)
    # trajectories that only the statistics needed are not kept
    assert set(store.keys(tmp_path / "data")) == set(keys_of(two_cells, brief))


def test_an_interrupt_loses_the_statistics_of_one_system_alone(tmp_path, brief, two_cells, monkeypatch):
    cells = [two_cells[0], replace(two_cells[0], system="schnakenberg")]
    take = supplying.moments

    def interrupted(acquirer, key, grid):
        if key.system == "schnakenberg":
            raise KeyboardInterrupt
        return take(acquirer, key, grid)

    monkeypatch.setattr(supplying, "moments", interrupted)
    supply = Supply(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        supply.prepare(cells, brief)
    assert supply.has_statistics("lambda-omega", 1) and not supply.has_statistics("schnakenberg", 1)


def test_statistics_are_those_of_the_pretraining_where_it_saw_the_same_pool(tmp_path, simulate_once):
    names, first = ("schnakenberg", "lambda-omega"), simulate_once("schnakenberg")
    own = Normalizer((1.0, 2.0), (3.0, 4.0), "pool")
    checksums = dict.fromkeys(map(str, pool_keys("schnakenberg", 2)), "0" * 64) | {
        str(first.key): checksum(first.fields)
    }
    seen = Sources({"schnakenberg": asdict(own)}, checksums)
    supply = Supply(tmp_path)
    supply.take_pretraining_statistics(replace(seen, trajectories=checksums | {str(first.key): "1" * 64}), names, 2)
    supply.take_pretraining_statistics(seen, names, 3)
    supply.take_pretraining_statistics(seen, names, 1)
    supply.take_pretraining_statistics(replace(seen, counts={"schnakenberg": 1}), names, 2)
    assert not any(supply.has_statistics("schnakenberg", count) for count in (1, 2, 3))
    supply.take_pretraining_statistics(seen, names, 2)
    assert supply.normalizer("schnakenberg", 2) == own and not supply.has_statistics("lambda-omega", 2)
    assert not store.keys(tmp_path / "data")  # what only the comparison needed is not kept


def test_the_statistics_of_a_small_pool_take_all_of_it():
    assert len(pool_keys("barkley-robin", 1000)) == 20 and len(pool_keys("barkley", 1000)) == 1000
    assert {key.split for key in pool_keys("barkley", 50)} == {"pool"}


def test_a_data_set_is_read_first(tmp_path, simulate_once):
    key = Key("lambda-omega", "test", "id", 0)
    marked = replace(simulate_once("lambda-omega", 1, split="test"), key=key)
    assert marked.fields.nbytes == trajectory_bytes(get("lambda-omega"))
    store.write(tmp_path / "given", marked)
    supply = Supply(tmp_path / "root", tmp_path / "given")
    assert (supply.get(key).fields == marked.fields).all() and not supply.lacks([key])
    other = Key("lambda-omega", "test", "id", 1)
    assert supply.lacks([key, other]) == [other]
    assert (supply.get(other).fields == marked.fields).all()
    assert store.keys(tmp_path / "root" / "data") == [other]


def test_data_of_another_recipe_have_statistics_of_their_own(tmp_path, registrations):
    """A user edits an equation, deletes the data as the refusal says, and runs the study again."""
    register(replace(get("lambda-omega"), name="mine"))
    supply = Supply(tmp_path)
    supply._write_statistics("mine", 1, Normalizer((1.0, 2.0), (3.0, 4.0), "pool"))
    assert supply.has_statistics("mine", 1)
    systems._REGISTERED.pop("mine")
    recipe_fingerprint.cache_clear()  # as a new process
    register(replace(get("lambda-omega"), name="mine", revision=7))
    assert not supply.has_statistics("mine", 1)
    recipe_fingerprint.cache_clear()


def test_no_more_is_kept_than_the_limit(tmp_path, brief, two_cells):
    supply = Supply(tmp_path, limit=int(1.5 * trajectory_bytes(get(two_cells[0].system))))
    supply.prepare(two_cells, brief)
    assert len(store.keys(tmp_path / "data")) == 1
    for key in keys_of(two_cells, brief):
        assert supply.get(key).key == key
        assert len(store.keys(tmp_path / "data")) == 1


def test_what_earlier_cells_left_makes_room(tmp_path, brief, two_cells):
    supply = Supply(tmp_path, limit=int(2.5 * trajectory_bytes(get(two_cells[0].system))))
    for index in range(2):
        supply.get(Key("lambda-omega", "pool", "id", 900 + index))
    supply.prepare(two_cells, brief)
    stored = store.keys(tmp_path / "data")
    assert len(stored) == 2 and set(stored) == set(keys_of(two_cells, brief))


def test_rehearsed_systems_are_part_of_the_recipe(tmp_path, brief, two_cells, monkeypatch):
    monkeypatch.setattr("rdjepa.study.supply.rehearsed_keys", lambda *_: [Key("schnakenberg")])
    Supply(tmp_path).prepare(two_cells, brief)
    recipe = sealed.read(tmp_path / "data" / "recipe.json", dict, "")
    assert set(recipe) == {"lambda-omega", "schnakenberg"}
    assert Key("schnakenberg") in store.keys(tmp_path / "data")


def test_a_data_set_of_another_recipe_is_refused(tmp_path, simulate_once):
    (tmp_path / "recipe.json").write_text(json.dumps({"barkley": {"family": "other", "numerics": {}}}))
    supply = Supply(tmp_path / "root", tmp_path)
    supply.check(["oregonator"])
    with pytest.raises(DataError, match=r"barkley\.family"):
        supply.check(["barkley"])
    marked = replace(simulate_once("schnakenberg", 1), key=Key("schnakenberg"))
    store.write(tmp_path / "bare", marked)  # whose recipe was not copied
    with pytest.raises(DataError, match=r"expected data in .*bare that this version of schnakenberg makes"):
        Supply(tmp_path / "root", tmp_path / "bare").check(["schnakenberg"])


def test_kept_trajectories_of_another_revision_are_refused(tmp_path):
    other = identity(get("barkley")) | {"revision": 0}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "recipe.json").write_text(json.dumps({"barkley": other}))
    with pytest.raises(DataError, match=r"for barkley\.revision;"):
        Supply(tmp_path).check(["barkley"])
