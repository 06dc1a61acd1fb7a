import shutil
from dataclasses import replace

import pytest

from rdjepa import systems
from rdjepa.io import checkpoint
from rdjepa.study import leaks
from rdjepa.study.protocol import HELD_OUT, SOURCES, WALLS

GOOD = {f"{name}/pool/id/0000{i}": f"{name}{i}" for name in SOURCES for i in range(2)}


def test_the_pool_of_the_sources_is_no_leak_and_everything_else_is():
    assert leaks.leaks(GOOD) == []
    for name in HELD_OUT + WALLS:
        assert len(leaks.leaks(GOOD | {f"{name}/pool/id/00000": "x"})) == 1
    for part in ("validation/id", "test/id", "test/coeff-ood", "test/ic-ood"):
        assert len(leaks.leaks(GOOD | {f"schnakenberg/{part}/00000": "x"})) == 1


def test_a_run_may_use_systems_of_its_own_but_none_that_the_paper_holds_out():
    mine = GOOD | {"mine/pool/id/00000": "x"}
    assert leaks.leaks(mine) == ["mine/pool/id/00000: mine is held out"]
    assert leaks.leaks(mine, own=("mine",)) == []
    assert len(leaks.leaks(GOOD | {"barkley/pool/id/00000": "x"}, own=("barkley",))) == 1
    assert len(leaks.leaks(mine | {"mine/test/id/00000": "y"}, own=("mine",))) == 1


def test_a_registered_source_is_no_leak(monkeypatch):
    monkeypatch.setattr(systems, "_REGISTERED", dict(systems._REGISTERED))
    systems.register(replace(systems.get("barkley"), name="mine"), "source")
    assert leaks.leaks(GOOD | {"mine/pool/id/00000": "x"}) == []


def test_a_family_is_no_leak_while_its_recorded_distance_is_large_enough(tmp_path, edit_json):
    family = {"family/pool/id/00000": "x"}
    assert leaks.leaks(GOOD | family) == []
    assert len(leaks.leaks({"family/validation/id/00000": "x"})) == 1
    shutil.copytree(checkpoint.shipped()["nano"], tmp_path / "model")
    edit_json(tmp_path / "model" / "data.json", lambda data: data["trajectories"].update(family))
    mark = leaks.fingerprint(checkpoint.read_sources(tmp_path / "model").trajectories)
    for distance, found in ((0.21, 0), (0.19, 1), (None, 1)):
        near = {} if distance is None else {"family": {"distance": distance}}
        record = {"data": mark, "nearest": near}
        edit_json(
            tmp_path / "model" / "config.json", lambda config, record=record: config["pretraining"].update(record)
        )
        lines = leaks.audit(str(tmp_path / "model"))[1]
        assert len(lines) == found, lines
    assert "held out is 0, below 0.2" in lines[0]


def test_the_fingerprint_depends_on_the_data_and_not_on_their_order():
    assert leaks.fingerprint(GOOD) == leaks.fingerprint(dict(reversed(GOOD.items())))
    assert leaks.fingerprint(GOOD) != leaks.fingerprint(GOOD | {"schnakenberg/pool/id/00001": "other"})


@pytest.mark.parametrize("name", sorted(checkpoint.shipped()))
def test_shipped_checkpoints_have_no_leak(name):
    mark, found = leaks.audit(name)
    assert len(mark) == 64 and found == []


def test_a_changed_list_of_data_is_found(tmp_path, edit_json):
    shutil.copytree(checkpoint.shipped()["nano"], tmp_path / "model")
    mark, _ = leaks.audit("nano")
    edit_json(tmp_path / "model" / "config.json", lambda config: config["pretraining"].update(data=mark))
    assert leaks.audit(str(tmp_path / "model")) == (mark, [])
    edit_json(tmp_path / "model" / "data.json", lambda data: data["trajectories"].popitem())
    assert "fingerprint" in leaks.audit(str(tmp_path / "model"))[1][0]
    (tmp_path / "model" / "data.json").unlink()
    with pytest.raises(checkpoint.CheckpointError, match="list of its data"):
        leaks.audit(str(tmp_path / "model"))
