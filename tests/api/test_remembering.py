"""What an adaptation keeps of the pretraining: weights that are retained, trajectories that are rehearsed."""

from typing import Any

import numpy as np
import pytest
import torch

import rdjepa
from rdjepa.adaptation import retention
from rdjepa.adaptation.adapt import AdaptConfig
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.api.support import rehearsed_fields
from rdjepa.data.build import build
from rdjepa.data.trajectory import Key
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError, DataError
from rdjepa.pretraining.config import PretrainConfig
from tiny import TINY


def trajectory(frames=10, seed=0):
    return np.random.default_rng(seed).standard_normal((frames, TINY.grid, TINY.grid, 2)).astype(np.float32) * 3 + 1


def test_a_share_of_the_pretrained_weights_is_retained(tiny):
    model, seen = rdjepa.build("tiny", seed=1), []
    model.pretrained = ("encoder", "predictor", "decoder")

    def observe(updates, weights, forecaster):
        seen.append((weights, retention.weights(forecaster.model)))

    def adapted(**options: Any) -> Forecaster:
        kept = {"decoder": "pretrained", "base": "none", "retain": 0.0, "config": AdaptConfig(averaging=0.9, batch=1)}
        given: dict[str, Any] = {"steps": 2, "device": "cpu", **kept}
        return rdjepa.adapt(model, trajectory(), **(given | options))

    first, tuned = retention.weights(adapted(steps=0).model), adapted()
    half = adapted(retain=0.5, observe=observe, at=[2])
    assert (tuned.record["retained"], half.record["retained"]) == (0.0, 0.5) and tuned.losses == half.losses
    expected = {name: 0.5 * (tensor + first[name]) for name, tensor in retention.weights(tuned.model).items()}
    assert any(not torch.equal(expected[name], first[name]) for name in first)
    for found in (retention.weights(half.model), dict(seen)["averaged"]):
        assert all(torch.allclose(tensor, expected[name], atol=1e-6) for name, tensor in found.items())
    for options in ({"decoder": "fresh"}, {"base": "linear"}):
        with pytest.raises(ArgumentError, match="weights that were all pretrained where a share is retained"):
            adapted(retain=0.5, **options)
    with pytest.raises(ArgumentError, match="retain"):
        adapted(retain=1.0)


def test_what_is_retained_is_decided_by_the_error_without_an_update(tiny, monkeypatch):
    model, fields = rdjepa.build("tiny", seed=1), trajectory()
    model.pretrained = ("encoder", "predictor", "decoder")

    def adapted(steps: int | str = "auto", given: np.ndarray = fields, **options: Any) -> Forecaster:
        settings: dict[str, Any] = {"config": AdaptConfig(steps=2, batch=2), "base": "none"} | options
        return rdjepa.adapt(model, given, steps=steps, device="cpu", **settings)

    context, targets = FORECASTING.stack(fields)
    difference, spread = adapted(0).forecast(context) - targets, fields.std((0, 1, 2))
    error = np.linalg.norm(difference / spread) / np.linalg.norm((targets - fields.mean((0, 1, 2))) / spread)
    monkeypatch.setattr(retention, "UPDATES", 1)
    half = adapted(1, retain=retention.SHARE)
    for familiar, expected in ((error * 0.99, adapted(retain=0)), (error * 1.01, half)):
        monkeypatch.setattr(retention, "FAMILIAR", familiar)
        found = adapted()
        assert found.record["unadapted"] == pytest.approx(error, rel=1e-4) and "unadapted" not in expected.record
        assert (found.record["retained"], found.losses) == (expected.record["retained"], expected.losses)
        assert np.array_equal(found.forecast(fields[:4]), expected.forecast(fields[:4]))
    other = adapted(1, given=fields * np.float32(300) + np.float32(7_000))  # other units, another zero
    assert other.record["unadapted"] == pytest.approx(error, rel=1e-3)
    more = adapted(2)
    assert (len(more.losses), more.record["retained"]) == (2, 0.5)  # as many as are asked for
    rehearsing = adapted(rehearse=np.stack([fields, 2 * fields])).record
    assert "unadapted" not in rehearsing and rehearsing["rehearsed"] == 2
    with pytest.raises(ArgumentError, match="retain"):
        adapted(retain="half")


def test_trajectories_to_rehearse_are_on_the_grid_of_the_support_in_both_directions():
    fields = np.random.default_rng(0).standard_normal((9, 8, 16, 2)).astype(np.float32)
    assert rehearsed_fields([fields], (8, 16))[0] is fields
    with pytest.raises(DataError, match="to rehearse on a 16 x 16 grid, got 8 x 16"):
        rehearsed_fields([fields], (16, 16))


def test_what_pretraining_saw_is_rehearsed_as_it_was_seen(tiny, brief, tmp_path):
    names = ["schnakenberg", "family"]
    build(tmp_path / "data", [Key(name, split) for name in names for split in ("pool", "validation")])
    config = PretrainConfig(steps=1, batch=1, warmup=1)
    rdjepa.pretrain("tiny", tmp_path / "data", tmp_path / "run", config=config, systems=names, device="cpu")
    path = tmp_path / "run" / "model"
    read, simulated = rdjepa.rehearsal(path, data=tmp_path / "data"), rdjepa.rehearsal(path, 3)
    assert [each.shape for each in read] == 2 * [(40, tiny.grid, tiny.grid, 2)]
    for one, other in zip(read, simulated, strict=True):
        assert np.array_equal(one, other)  # one trajectory, so its own statistics in a family or not
        assert np.allclose(one.mean((0, 1, 2)), 0, atol=1e-3) and np.allclose(one.std((0, 1, 2)), 1, atol=1e-2)
    adapted = rdjepa.adapt(path, trajectory(12), steps=2, rehearse=read, device="cpu")
    assert adapted.record["rehearsed"] == 2 and adapted.record["frames"] == [12] and adapted.familiar is not None
    changed: tuple[tuple[dict, type[Exception], str], ...] = (
        ({"base": "linear"}, ArgumentError, "expected a linear base or others to rehearse, got both"),
        ({"rehearse": [trajectory()[:, :16, :16]]}, DataError, f"on a {TINY.grid} x {TINY.grid} grid, got 16 x 16"),
        ({"rehearse": [trajectory(5)]}, DataError, "got 5"),
    )
    for options, error, sentence in changed:
        with pytest.raises(error, match=sentence):
            rdjepa.adapt(path, trajectory(12), steps=1, **({"rehearse": read, "device": "cpu"} | options))
    with pytest.raises(ArgumentError, match="count to be"):
        rdjepa.rehearsal(path, 0)
    with pytest.raises(ArgumentError, match="whose systems are rehearsed, got the forecaster 'equation'"):
        rdjepa.rehearsal("equation")
