import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from rdjepa.cli import main as cli
from rdjepa.data import manifest, store
from rdjepa.data.identity import identity
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.evaluation.probe import FEATURES, LEADS, PATCH_LEADS, ProbeConfig, probe
from rdjepa.evaluation.probe_table import probe_markdown
from rdjepa.io import sealed
from rdjepa.models.rdjepa import build
from rdjepa.systems import get

CONFIG = ProbeConfig(("gray-scott", "barkley"), train=12, test=6, windows=2)
PLACE = {"gray-scott": ("feed", 0.0), "barkley": ("excitability", 4.0)}


def wave(system, split, regime, index):
    """A trajectory whose wave number is its coefficient and whose shape tells its system."""
    rng = np.random.default_rng([index, len(split), len(regime)])
    value = rng.uniform(1, 3) if regime == "id" else rng.uniform(3, 4)
    name, turn = PLACE[system]
    y, x = np.meshgrid(*[np.linspace(0, 2 * np.pi, 64, endpoint=False)] * 2, indexing="ij")
    phase = rng.uniform(0, 2 * np.pi) + np.arange(10)[:, None, None] / 5
    u = np.sin(value * x + turn * y + phase)
    fields = np.stack([u, np.cos(value * x + phase) ** 2], axis=-1).astype(np.float32)
    return Trajectory(fields, np.arange(10.0), {name: value, "fixed": 1.0}, Key(system, split, regime, index))


def write(folder, train, test, coefficients=None):
    """Waves of both systems; with other coefficients those of Gray-Scott."""
    for system in PLACE:
        for split, regime, count in (("pool", "id", train), ("test", "id", test), ("test", "coeff-ood", test)):
            if system == "gray-scott" or regime == "id":
                for index in range(count):
                    made = wave(system, split, regime, index)
                    other = coefficients if system == "gray-scott" else None
                    store.write(folder, replace(made, coefficients=other or made.coefficients))
    sealed.write(folder / manifest.RECIPE, {name: identity(get(name)) for name in PLACE})
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data"), 12, 6)


def test_a_single_test_trajectory_is_refused():
    with pytest.raises(ArgumentError, match="at least two test trajectories"):
        ProbeConfig(test=1)


def test_data_of_another_equation_are_refused(tiny, tmp_path):
    sealed.write(tmp_path / manifest.RECIPE, {"gray-scott": identity(get("gray-scott")) | {"revision": 0}})
    with pytest.raises(DataError, match=r"for gray-scott\.revision; choose another directory"):
        probe(build("tiny", seed=0), tmp_path, ProbeConfig(systems=("gray-scott",), train=1, test=2))


def test_probe_covers_systems_regimes_and_features_and_reads_what_is_there(tiny, base):
    rows = probe(build("tiny", seed=0), base, CONFIG)
    places = {(row.system, row.target, row.regime) for row in rows}
    assert places == {
        ("gray-scott", "feed", "id"),
        ("gray-scott", "feed", "coeff-ood"),
        ("barkley", "excitability", "id"),
        *((name, f"change h={lead}", "id") for name in PLACE for lead in LEADS),
        *(("gray-scott", f"change h={lead}", "coeff-ood") for lead in LEADS),
        *((name, f"patch h={lead}", "id") for name in PLACE for lead in PATCH_LEADS),
        *(("gray-scott", f"patch h={lead}", "coeff-ood") for lead in PATCH_LEADS),
        ("all", "system", "id"),
        ("all", "system", "coeff-ood"),
    }
    assert len(rows) == len(places) * len(FEATURES)
    named = {row.features: row.value for row in rows if (row.target, row.regime) == ("system", "id")}
    assert named["pretrained"] > 0.9
    read = {row.features: row.value for row in rows if (row.target, row.regime) == ("feed", "id")}
    assert read["pretrained"] > 0.5
    waves = {row.features: row.value for row in rows if row.target == "change h=1" and row.regime == "id"}
    assert waves["pca"] > 0.95  # four frames of a travelling wave say linearly how it goes on
    own = {row.features: row.value for row in rows if row.target == "patch h=0" and row.regime == "id"}
    assert own["pca"] > 0.95  # the principal components of a patch hold the patch
    markdown = probe_markdown([vars(row) for row in rows])
    assert len(markdown.splitlines()) == 2 + len(places)


def test_command_line_writes_the_rows_and_the_table(tiny, base, tmp_path, monkeypatch, capsys):
    from rdjepa.io import checkpoint

    checkpoint.save(build("tiny", seed=0), tmp_path / "model", {}, "card")
    options = ["--data", base, "--out", tmp_path / "out", "--systems", "gray-scott,barkley", "--train", 5, "--test", 2]
    monkeypatch.setattr(sys, "argv", ["rdjepa", "probe", *map(str, [tmp_path / "model", *options])])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    result = json.loads((tmp_path / "out" / "probes.json").read_text())
    assert {row["features"] for row in result["rows"]} == set(FEATURES)
    assert (tmp_path / "out" / "probes.md").read_text().startswith("| system | target | regime |")
    assert "coeff-ood" in capsys.readouterr().out


def test_what_a_data_set_lacks_is_simulated_and_listed_and_said(tiny, tmp_path, monkeypatch, capsys):
    from rdjepa.data.acquire import Acquirer
    from rdjepa.io import checkpoint

    write(tmp_path, 4, 2)
    manifest.write(tmp_path)
    checkpoint.save(build("tiny", seed=0), tmp_path / "model", {}, "card")
    monkeypatch.setattr(Acquirer, "_simulate", lambda _, key: wave(key.system, key.split, key.regime, key.index))
    arguments = [tmp_path / "model", "--data", tmp_path, "--train", 5, "--test", 2]
    monkeypatch.setattr(sys, "argv", ["rdjepa", "probe", *map(str, arguments)])  # of the systems that it has
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    said = " ".join(capsys.readouterr().out.split())
    assert f"2 trajectories of gray-scott, barkley are simulated into {tmp_path}, 0." in said
    assert manifest.verify(tmp_path).unlisted == () and len(manifest.read(tmp_path)) == 16


def test_a_system_whose_coefficients_are_all_fixed_has_the_other_targets(tiny, tmp_path):
    base, few = write(tmp_path, 2, 2, {"feed": 1.0}), replace(CONFIG, train=2, test=2)
    targets = {(row.system, row.target) for row in probe(build("tiny", seed=0), base, few)}
    assert ("gray-scott", "feed") not in targets
    assert {("gray-scott", "patch h=0"), ("barkley", "excitability")} <= targets
