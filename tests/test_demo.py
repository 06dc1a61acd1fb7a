import contextlib
import json
from dataclasses import replace

import pytest

from rdjepa import demo
from rdjepa.demo import DemoConfig
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import build


@contextlib.contextmanager
def silent(label):
    yield lambda *arguments: None


def brief(trajectory):
    return replace(trajectory, fields=trajectory.fields[:14], times=trajectory.times[:14])


def test_demonstration_leaves_figure_animation_result_and_forecaster(tiny, tmp_path, monkeypatch):
    model = build("tiny", seed=0)
    model.name = "tiny"
    parts = {"pretrained": ["encoder", "predictor", "decoder"]}
    checkpoint.save(model, tmp_path / "model", parts, "card")
    config = DemoConfig("schnakenberg", str(tmp_path / "model"), updates=2, test=1, device="cpu")
    simulated = demo._simulated
    monkeypatch.setattr(demo, "_simulated", lambda *given: [brief(each) for each in simulated(*given)])
    result = demo.run(config, tmp_path / "out", silent)
    stored = json.loads((tmp_path / "out" / "result.json").read_text())
    assert set(result["errors"]) == {"RD-JEPA", "from scratch", "persistence"}
    assert set(stored["errors"]["RD-JEPA"]["relative_l2"]) == set("12345")
    assert stored["fingerprint"] == checkpoint.read_config(tmp_path / "model")[1].sha256
    assert stored["support"][0].startswith("schnakenberg/pool/id/")
    assert all(key.startswith("schnakenberg/test/id/") for key in stored["test"])
    persistence = result["errors"]["persistence"]["relative_l2"]
    assert persistence[1] < persistence[5]
    assert list(result["curve"]) == ["RD-JEPA", "from scratch"]
    assert [record.get("decoder") for record in stored["training"].values()] == ["pretrained", None]
    for name, found in result["curve"].items():
        assert list(found) == [1, 2]
        assert found[2] == pytest.approx(sum(result["errors"][name]["relative_l2"].values()) / 5)
    for name in ("curve.png", "forecast.png", "forecast.gif", "forecaster.safetensors"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "data").rglob("*.hdf5")}
    simulated(config, 64, tmp_path / "out", silent)
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "data").rglob("*.hdf5")}
