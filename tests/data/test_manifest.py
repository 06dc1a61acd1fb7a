import json
from dataclasses import replace

import pytest

from rdjepa.data import manifest, store
from rdjepa.data.manifest import Entry
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError
from rdjepa.systems import get, names, wall_names


def fill(base, make, count=3):
    keys = [Key("gray_scott", "pool", "id", i) for i in range(count)]
    for key in keys:
        store.write(base, make(key))
    manifest.write(base)
    return keys


@pytest.mark.parametrize("name", [*names(), *wall_names()])
def test_a_recipe_is_plain_json_and_repeatable(name):
    recipe = manifest.recipe_of(get(name))
    assert json.loads(json.dumps(recipe)) == json.loads(json.dumps(manifest.recipe_of(get(name))))
    assert "0x" not in json.dumps(recipe)  # no address of an object


def test_another_configuration_is_refused_and_its_keys_are_named(tmp_path):
    system = get("schnakenberg")
    mine = {system.name: manifest.recipe_of(system)}
    manifest.claim(tmp_path, mine)
    before = (tmp_path / manifest.RECIPE).read_bytes()
    manifest.claim(tmp_path, mine)
    other = replace(system, numerics=replace(system.numerics, dt=1e-4))
    with pytest.raises(DataError, match=r"schnakenberg\.numerics;"):
        manifest.claim(tmp_path, {system.name: manifest.recipe_of(other)})
    assert (tmp_path / manifest.RECIPE).read_bytes() == before
    manifest.claim(tmp_path, {"barkley": manifest.recipe_of(get("barkley"))})
    assert set(json.loads((tmp_path / manifest.RECIPE).read_text())) == {"schnakenberg", "barkley"}


def test_what_was_written_verifies(tmp_path, make):
    keys = fill(tmp_path, make)
    entries = manifest.read(tmp_path)
    assert list(entries) == keys
    assert entries[keys[0]].rejected == ("stationary", "spread below 0.02")
    seen = []
    verdict = manifest.verify(tmp_path, lambda *done: seen.append(done))
    assert verdict.good and verdict.whole == 3 and seen[-1] == (3, 3, str(keys[-1]))


def test_damage_is_found_in_both_directions(tmp_path, make):
    keys = fill(tmp_path, make)
    first, second = (store.path_of(tmp_path, key) for key in keys[:2])
    content = bytearray(first.read_bytes())
    place = content.find(store.read(first).fields[..., 0].swapaxes(1, 2).tobytes())
    content[place + 5] ^= 1
    first.write_bytes(content)
    second.unlink()
    store.write(tmp_path, make(Key("gray_scott", "test", "id", 9)))
    verdict = manifest.verify(tmp_path)
    assert not verdict.good and verdict.whole == 1
    assert "checksum" in verdict.wrong[keys[0]] and "got none" in verdict.wrong[keys[1]]
    assert verdict.unlisted == (Key("gray_scott", "test", "id", 9),)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 99}', None])
def test_a_missing_damaged_or_other_manifest_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / manifest.MANIFEST).write_text(text)
    with pytest.raises(DataError, match="expected"):
        manifest.read(tmp_path)


def test_reasons_are_counted_without_their_numbers():
    entries = [
        Entry("", "", ("change 0.1 below 0.2", "a value is not finite")),
        Entry("", "", ("change 0.3 below 0.4",)),
    ]
    assert manifest.reasons(entries) == {"change below": 2, "a value is not finite": 1}


@pytest.mark.parametrize("text", ["a/pool/id/00012", "my-system/test/ic-ood/00000"])
def test_keys_survive_as_text(text):
    assert str(Key.parse(text)) == text


@pytest.mark.parametrize("text", ["a/pool/id", "a/train/id/3", "a/pool/other/3", "a/pool/id/-3"])
def test_other_texts_are_no_keys(text):
    with pytest.raises(ValueError, match="expected a key"):
        Key.parse(text)
