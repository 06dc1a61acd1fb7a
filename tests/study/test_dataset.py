"""The benchmark's data from the command line: build, verify, card, sample, and what is refused."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from rdjepa import systems
from rdjepa.cli import main as cli
from rdjepa.data import manifest, store
from rdjepa.data.recorded import add_recordings, recorded
from rdjepa.errors import ArgumentError
from rdjepa.io import sealed
from rdjepa.study import dataset
from rdjepa.study.cell import Cell
from rdjepa.systems import get, register


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["rdjepa", "data", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code or 0


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Two systems at a thousandth of the counts."""
    path = tmp_path_factory.mktemp("data")
    dataset.build_dataset(path, systems_=("schnakenberg", "barkley-robin"), scale=0.002)
    return path


def test_a_build_leaves_everything_a_reader_needs(base):
    assert len(manifest.read(base)) == 2 + 1 + 3 + 1 + 1 + 1
    assert set(sealed.read(base / manifest.RECIPE, dict, "")) == {"schnakenberg", "barkley-robin"}
    assert (base / "schnakenberg" / "stats.yaml").is_file()
    support = json.loads((base / "schnakenberg" / "support.json").read_text())
    assert support["pool"] == 1000 and set(support["order"]) == {"777", "778", "779"}
    for seed, order in support["order"].items():  # whatever part of the pool is stored, as a study takes it
        taken = [key.index for key in Cell("source", "schnakenberg", 20, int(seed), "fno").support()]
        assert order == taken
    assert set(json.loads((base / "barkley-robin" / "support.json").read_text())["order"]) == {"777", "778", "780"}
    assert manifest.verify(base).good


def test_verify_speaks_through_its_exit_status(base, monkeypatch, capsys):
    assert run(monkeypatch, "verify", base) == 0
    path = next((base / "schnakenberg").rglob("id-00000.hdf5"))
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[: len(whole) // 2])
        assert run(monkeypatch, "verify", base) == 1
        assert "1 wrong" in capsys.readouterr().out
    finally:
        path.write_bytes(whole)


def test_cards_say_what_is_there(base, monkeypatch):
    assert run(monkeypatch, "card", base, "--systems", "schnakenberg") == 0
    card = (base / "schnakenberg" / "card.md").read_text()
    assert (base / "schnakenberg" / "contact.png").stat().st_size > 10_000
    for part in (r"\partial_t u", "pool/id | 2 |", "test/ic-ood | 1 |", "h = 5", "| 777 |", "contact.png", "rejected"):
        assert part in card, part


def test_a_family_is_built_continued_verified_and_described(monkeypatch, capsys, tmp_path):
    arguments = ("build", "--systems", "family", "--splits", "pool", "--out", tmp_path)
    assert run(monkeypatch, *arguments, "--count", "1") == 0
    assert run(monkeypatch, *arguments, "--count", "2") == 0
    output = capsys.readouterr().out
    assert "1 made, 1 kept" in output
    assert "excitable: 1 of " in output and "smallest distance to " in output
    content = json.loads((tmp_path / manifest.MANIFEST).read_text())
    assert content["nearest"]["family"]["distance"] >= 0.2
    assert not (tmp_path / "family" / "support.json").exists()
    assert run(monkeypatch, "verify", tmp_path) == 0
    assert run(monkeypatch, "card", tmp_path) == 0
    card = (tmp_path / "family" / "card.md").read_text()
    for part in (
        "| damped cubic | 1 |",
        "## Distance to what is held out",
        "nearer than 0.2",
        "`slowness` 0.01 to 0.06",
    ):
        assert part in card, part
    assert (tmp_path / "family" / "contact.png").stat().st_size > 10_000
    assert len(dataset.sample(tmp_path, tmp_path / "sample", 0.5)) == 1


def test_a_users_system_has_tests_of_every_regime_that_it_defines(registrations):
    own = replace(get("schnakenberg"), name="mine")  # unlike a source it has no place in the paper's lists
    keys = dataset._keys(own, ("pool", "test"), 1.0, 2)
    assert {(key.split, key.regime, key.index) for key in keys} == {
        *(("pool", "id", i) for i in range(2)),
        *(("test", regime, i) for regime in ("id", "coeff-ood", "ic-ood") for i in range(2)),
    }
    assert {key.regime for key in dataset._keys(get("barkley"), ("test",), 1.0, 2)} == {"id"}
    register(own, role="source")  # whose lists have all regimes already
    assert len(dataset._keys(own, ("test",), 1.0, 2)) == len({*dataset._keys(own, ("test",), 1.0, 2)}) == 6


def test_a_card_that_needs_a_file_says_so(tmp_path, monkeypatch, capsys, registrations):
    register(replace(get("schnakenberg"), name="mine"))
    dataset.build_dataset(tmp_path, systems_=("mine",), splits=("pool",), count=1)
    systems._REGISTERED.pop("mine")
    assert run(monkeypatch, "card", tmp_path) == 0
    assert (
        "no card of mine, whose equation is unknown here; if a file defines it, name that with --systems"
        in capsys.readouterr().err
    )


def test_a_sample_is_a_small_data_set_of_its_own(base, tmp_path):
    chosen = dataset.sample(base, tmp_path, 0.01)
    assert len(chosen) == len({(k.system, k.split, k.regime) for k in manifest.read(base)})
    assert manifest.verify(tmp_path).good
    theirs, mine = manifest.read(base), manifest.read(tmp_path)
    assert all(mine[key] == theirs[key] for key in chosen)
    before = (tmp_path / "recipe.json").read_bytes()
    with pytest.raises(ArgumentError, match="expected a directory without data for the sample"):
        dataset.sample(base, tmp_path, 1.0)
    assert (tmp_path / "recipe.json").read_bytes() == before and set(manifest.read(tmp_path)) == set(chosen)


def test_a_sample_of_recordings_is_one_of_recordings(tmp_path):
    fields = np.random.default_rng(0).normal(size=(5, 12, 8, 8, 2)).astype("float32")
    add_recordings(fields, "mine", tmp_path / "data", validation=2)
    chosen = dataset.sample(tmp_path / "data", tmp_path / "some", 0.5)
    assert [str(key) for key in chosen] == [
        "mine/pool/id/00000",
        "mine/validation/id/00000",
        "mine/validation/id/00001",
    ]
    assert recorded(tmp_path / "some") == ("mine",) and manifest.verify(tmp_path / "some").good
    assert {path.name for path in (tmp_path / "some" / "mine").iterdir()} == {"data", "recordings.json", "stats.yaml"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--systems", "heat"), "gray-scott"),
        (("--systems", "barkley", "--scale", "0"), "above 0"),
        (("--systems", "barkley", "--count", "0"), "at least one"),
        (("--systems", "barkley", "--splits", "train"), "pool, validation, test"),
        (("--systems", "barkley", "--count", "1", "--workers", "0"), "at least one worker"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_no_trajectory(monkeypatch, capsys, tmp_path, arguments, sentence):
    assert run(monkeypatch, "build", "--out", tmp_path / "out", *arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error
    assert not store.keys(tmp_path / "out")


def test_a_directory_of_another_configuration_is_refused(base, monkeypatch, capsys, tmp_path):
    recipe = sealed.read(base / manifest.RECIPE, dict, "")
    recipe["barkley-robin"]["numerics"]["boundary"]["kappa"] = 0.3
    (tmp_path / manifest.RECIPE).write_text(json.dumps(recipe))
    assert run(monkeypatch, "build", "--out", tmp_path, "--systems", "barkley-robin", "--count", "1") == 2
    assert "barkley-robin.numerics" in capsys.readouterr().err


def test_no_data_has_no_card(monkeypatch, capsys, tmp_path):
    assert run(monkeypatch, "card", tmp_path) == 2
    assert "rdjepa data build" in capsys.readouterr().err
