import json
import threading
from dataclasses import asdict, replace

import pytest

from rdjepa.data import identity as identities
from rdjepa.data import manifest, store
from rdjepa.data.manifest import Entry
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Key
from rdjepa.errors import DataError, OutputError
from rdjepa.io import sealed
from rdjepa.pde.distance import Nearest
from rdjepa.systems import get


def fill(base, make, count=3):
    keys = [Key("gray_scott", "pool", "id", i) for i in range(count)]
    for key in keys:
        store.write(base, make(key))
    manifest.write(base)
    return keys


def old_recipe(system):
    """A recipe as it was before systems had an identity: made of words."""
    return {
        "family": system.family or system.name,
        "equations": ["words"],
        "numerics": json.loads(json.dumps(asdict(system.numerics))),
        "screens": ["words"],
        "regimes": {},
        "notes": ["words"],
    }


@pytest.fixture(scope="module")
def small():
    """A system of two regimes that is simulated in milliseconds."""
    system = get("schnakenberg")
    numerics = replace(system.numerics, size=32, stored=32, first=0.0, last=0.02, frames=12)
    regimes = {name: system.regimes[name] for name in ("id", "ic-ood")}
    return replace(system, numerics=numerics, regimes=regimes, screens=())


@pytest.fixture
def old(tmp_path, small):
    """A directory of the time before identities, with two trajectories."""
    write_recipe(tmp_path, {small.name: old_recipe(small), "barkley": old_recipe(get("barkley"))})
    store.write(tmp_path, simulate(small, 3, "id"))
    store.write(tmp_path, simulate(small, 0, "ic-ood", "test"))
    return tmp_path


def test_what_another_process_stores_while_a_manifest_is_written_is_listed(tmp_path, make, monkeypatch):
    fill(tmp_path, make, 1)
    real, begun, other = manifest.nearest_of_all, threading.Event(), Key("barkley")

    def slow(nearest):
        if not begun.is_set():  # all was listed
            begun.set()
            writer.join(0.2)  # the other one waits
        return real(nearest)

    def write():
        begun.wait()
        store.write(tmp_path, make(other))
        manifest.write(tmp_path)

    monkeypatch.setattr(manifest, "nearest_of_all", slow)
    writer = threading.Thread(target=write)
    writer.start()
    manifest.write(tmp_path)
    writer.join()
    assert other in manifest.read(tmp_path) and manifest.verify(tmp_path).good


def test_a_manifest_is_written_where_there_are_no_locks(tmp_path, make, monkeypatch):
    monkeypatch.setattr(manifest.FileLock, "acquire", lambda self: (_ for _ in ()).throw(OSError(37, "No locks")))
    keys = fill(tmp_path, make, 2)
    assert set(manifest.read(tmp_path)) == set(keys)


def test_a_place_that_cannot_be_is_refused_before_anything_is_simulated(tmp_path, small, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(manifest, "confirm", lambda _: pytest.fail("simulated"))
    with pytest.raises(OutputError, match="a file where a directory is needed"):
        manifest.claim(tmp_path / "file" / "data", [small])


def test_a_file_of_something_else_with_the_name_of_a_manifest_is_kept(tmp_path, small):
    (tmp_path / manifest.MANIFEST).write_text('{"name": "a page"}')
    with pytest.raises(DataError, match=r"manifest.json, got a damaged or foreign one .*; choose another directory"):
        manifest.claim(tmp_path, [small])
    assert [path.name for path in tmp_path.iterdir()] == [manifest.MANIFEST]


def write_recipe(base, content):
    (base / manifest.RECIPE).write_text(json.dumps(content))


def read_recipe(base):
    return sealed.read(base / manifest.RECIPE, dict, "")


def test_another_configuration_is_refused_and_its_keys_are_named(tmp_path):
    system = get("schnakenberg")
    manifest.claim(tmp_path, [system])
    before = (tmp_path / manifest.RECIPE).read_bytes()
    manifest.claim(tmp_path, [replace(system, notes=("Other words.",), title="Other")])
    other = replace(system, numerics=replace(system.numerics, dt=0.9e-3))
    for refuse in (manifest.claim, manifest.check):
        with pytest.raises(DataError, match=r"schnakenberg\.fingerprint, schnakenberg\.numerics;"):
            refuse(tmp_path, [other])
    with pytest.raises(DataError, match=r"for schnakenberg\.revision;"):
        manifest.claim(tmp_path, [replace(system, revision=2)])
    assert (tmp_path / manifest.RECIPE).read_bytes() == before
    manifest.check(tmp_path, [system, get("barkley")])
    assert set(read_recipe(tmp_path)) == {"schnakenberg"}
    manifest.claim(tmp_path, [get("barkley")])
    assert set(read_recipe(tmp_path)) == {"schnakenberg", "barkley"}


def test_what_two_processes_claim_at_once_is_written(tmp_path, monkeypatch):
    both, names = threading.Barrier(2), ("schnakenberg", "brusselator")
    monkeypatch.setattr(manifest, "confirm", lambda _: both.wait(60))  # each has read that there is no recipe yet
    claims = [threading.Thread(target=manifest.claim, args=(tmp_path, [get(name)])) for name in names]
    for claim in claims:
        claim.start()
    for claim in claims:
        claim.join(60)
    assert set(read_recipe(tmp_path)) == set(names)


def test_trajectories_that_no_recipe_lists_are_compared(tmp_path, small):
    write_recipe(tmp_path, {"barkley": identities.identity(get("barkley"))})
    store.write(tmp_path, simulate(small, 3, "id"))
    other = replace(small, numerics=replace(small.numerics, dt=small.numerics.dt / 2))
    with pytest.raises(DataError, match="got another trajectory schnakenberg/pool/id/00003; choose"):
        manifest.check(tmp_path, [other])
    manifest.check(tmp_path, [small])
    assert set(read_recipe(tmp_path)) == {"barkley", small.name}


def test_a_system_that_makes_other_numbers_may_not_begin(tmp_path, monkeypatch):
    monkeypatch.setattr(identities, "fingerprint", lambda system: "0" * 16)
    with pytest.raises(DataError, match=r"raise its revision and run: python -m rdjepa\.data\.identity"):
        manifest.claim(tmp_path, [get("schnakenberg")])
    assert not (tmp_path / manifest.RECIPE).exists()


@pytest.mark.parametrize("agree", [manifest.claim, manifest.check])
def test_an_old_directory_is_recognized_by_its_trajectories(old, small, agree):
    agree(old, [small])
    after = read_recipe(old)
    assert after[small.name] == identities.identity(small)
    assert after["barkley"] == old_recipe(get("barkley"))  # not asked for, so not looked at
    agree(old, [small])
    assert read_recipe(old) == after


@pytest.mark.parametrize("agree", [manifest.claim, manifest.check])
@pytest.mark.parametrize(("regime", "split", "index"), [("id", "pool", 3), ("ic-ood", "test", 0)])
def test_an_old_directory_of_other_trajectories_is_refused(old, small, agree, regime, split, index):
    other = simulate(small, 7, regime, split)
    assert other.key is not None
    store.write(old, replace(other, key=replace(other.key, index=index)))
    before = (old / manifest.RECIPE).read_bytes()
    with pytest.raises(DataError, match=f"got another trajectory schnakenberg/{split}/{regime}/0000{index}; choose"):
        agree(old, [small])
    assert (old / manifest.RECIPE).read_bytes() == before


def test_an_old_directory_of_another_system_or_numerics_is_refused(old, small):
    recipe = old_recipe(small)
    recipe["numerics"]["dt"] = 2e-3
    write_recipe(old, {small.name: recipe | {"family": "other"}})
    with pytest.raises(DataError, match=r"schnakenberg\.family, schnakenberg\.numerics;"):
        manifest.claim(old, [small])


def test_a_cut_file_is_no_witness(old, small):
    path = store.path_of(old, Key(small.name, "pool", "id", 0))
    path.write_bytes(b"cut")
    manifest.claim(old, [small])
    assert read_recipe(old)[small.name] == identities.identity(small)


def test_what_was_written_verifies(tmp_path, make):
    keys = fill(tmp_path, make)
    entries = manifest.read(tmp_path)
    assert list(entries) == keys
    assert entries[keys[0]].rejected == ("stationary", "spread below 0.02")
    seen = []
    verdict = manifest.verify(tmp_path, lambda *done: seen.append(done))
    assert verdict.good and verdict.whole == 3 and seen[-1] == (3, 3, str(keys[-1]))


@pytest.mark.parametrize("recipes", [{}, {"schnakenberg": {}}, {"another": {"source": [None]}}])
def test_entries_that_are_no_recipes_are_refused(tmp_path, recipes):
    sealed.write(tmp_path / "recipe.json", recipes)
    for take in (manifest.check, manifest.claim):
        with pytest.raises(DataError, match="expected the recipes of systems"):
            take(tmp_path, [get("schnakenberg")])


def test_versions_that_differ_are_named(tmp_path, make):
    for index, version in enumerate(("0.61.0", "0.62.1", "0.62.1")):
        store.write(tmp_path, make(key=Key("gray_scott", index=index), software={"numba": version, "numpy": "2.4.6"}))
    with pytest.warns(UserWarning, match=r"got numba 0\.61\.0 and 0\.62\.1; their numbers agree up to rounding"):
        manifest.write(tmp_path)
    assert manifest.verify(tmp_path).good


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


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", r"got a damaged or foreign one \(Input data was truncated\)"),
        ("[]", r"got a damaged or foreign one \(Expected object, got array\)"),
        ('{"format": 99}', r"got a damaged or foreign one \(Object missing required field"),
        (None, "got no file; make the data"),
    ],
)
def test_a_missing_damaged_or_other_manifest_is_refused(tmp_path, text, sentence):
    if text is not None:
        (tmp_path / manifest.MANIFEST).write_text(text)
    with pytest.raises(DataError, match=sentence):
        manifest.read(tmp_path)


def test_reasons_are_counted_without_their_numbers():
    entries = [
        Entry("", "", ("change 0.1 below 0.2", "a value is not finite")),
        Entry("", "", ("change 0.3 below 0.4",)),
    ]
    assert manifest.reasons(entries) == {"change below its bound": 2, "a value is not finite": 1}


@pytest.mark.parametrize("text", ["a/pool/id/00012", "my-system/test/ic-ood/00000"])
def test_keys_survive_as_text(text):
    assert str(Key.parse(text)) == text


@pytest.mark.parametrize("text", ["a/pool/id", "a/train/id/3", "a/pool/other/3", "a/pool/id/-3"])
def test_other_texts_are_no_keys(text):
    with pytest.raises(ValueError, match="expected a key"):
        Key.parse(text)


def test_kinds_and_distances_are_listed_and_counted(tmp_path, make):
    parts: list[tuple[str, Nearest | None, tuple[str, ...]]]
    parts = [("excitable", Nearest("barkley", 0.4), ("dull 0.1",)), ("bistable", Nearest("oregonator", 0.3), ())]
    parts += [("excitable", Nearest("barkley", 0.25), ("dull 0.2", "blown")), ("", None, ("dull 1",))]
    keys = [Key("family" if kind else "other", "pool", "id", i) for i, (kind, _, _) in enumerate(parts)]
    for key, (kind, nearest, rejected) in zip(keys, parts, strict=True):
        path = store.write(tmp_path, replace(make(key), kind=kind, nearest=nearest, rejected=rejected))
        assert (store.read(path).kind, store.read(path).nearest) == (kind, nearest)
    content = json.loads(manifest.write(tmp_path).read_text())
    assert content["nearest"] == {"family": {"trajectory": str(keys[2]), "held_out": "barkley", "distance": 0.25}}
    assert set(content["trajectories"][str(keys[3])]) == {"checksum", "initial_condition", "rejected"}
    entries = manifest.read(tmp_path).values()
    assert [entry.nearest for entry in entries] == [nearest for _, nearest, _ in parts]
    assert manifest.acceptance(entries) == {"excitable": (2, 5), "bistable": (1, 1)}
    assert manifest.closest(entries) == {"barkley": 0.25, "oregonator": 0.3}


def test_a_manifest_without_families_has_no_distances(tmp_path, make):
    fill(tmp_path, make)
    assert set(sealed.read(tmp_path / manifest.MANIFEST, dict, "")) == {"format", "software", "trajectories"}
