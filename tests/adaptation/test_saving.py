"""The file of a forecaster: what is in it, what is refused."""

import numpy as np
import pytest

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.saving import RULES
from rdjepa.errors import ArgumentError, CheckpointError
from rdjepa.forecasters.anchored import Anchored
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.fno import Config
from rdjepa.forecasters.persistence import Persistence


def movie(seed):
    return np.random.default_rng(seed).standard_normal((20, 16, 16, 2)).astype(np.float32)


def adapt(support, **settings):
    model = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=0)
    return rdjepa.adapt(model, support, steps=1, device="cpu", **settings)


def test_the_calibration_is_in_it_and_under_its_checksum(tmp_path):
    calibrated = adapt(movie(0), calibrate=[movie(seed) for seed in (1, 2, 3)])
    path = calibrated.save(tmp_path / "f.safetensors")
    loaded, context = rdjepa.load_forecaster(path), movie(9)[:4]
    for mine, theirs in zip(calibrated.interval(context), loaded.interval(context), strict=True):
        assert np.array_equal(mine, theirs)
    assert loaded.calibration is not None
    assert (loaded.calibration.blocks, loaded.calibration.trajectories) == (3 * 16, 3)
    assert loaded.record["range"] == calibrated.record["range"]
    content = bytearray(path.read_bytes())
    place = content.find(np.float32(calibrated.calibration.scores[0, 0, 50]).tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum"):
        rdjepa.load_forecaster(path)


def test_one_without_a_calibration_is_read_and_gives_no_interval(tmp_path):
    loaded = rdjepa.load_forecaster(adapt(movie(0)).save(tmp_path / "f.safetensors"))
    assert loaded.calibration is None and loaded.novelty(movie(1)[:4]) is None
    with pytest.raises(ArgumentError, match=r"a forecaster with a calibration, got one without; adapt again"):
        loaded.interval(movie(1)[:4])


@pytest.mark.parametrize(("kind", "base"), [(Combined, "combined"), (Anchored, "anchored")])
def test_one_that_was_combined_or_anchored_by_another_rule_is_refused(tmp_path, monkeypatch, kind, base):
    normalizer = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0))
    path = rdjepa.Forecaster(kind(Persistence()), normalizer, {}).save(tmp_path / "made.safetensors")
    assert rdjepa.load_forecaster(path).base == base
    monkeypatch.setitem(RULES, base, {**RULES[base], "another": 3})
    with pytest.raises(CheckpointError, match=rf"that is {base} as this version does it, got .* adapt again"):
        rdjepa.load_forecaster(path)
