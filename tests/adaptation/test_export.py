"""An exported program gives the forecaster's numbers for any number of contexts, or is not left."""

import errno
import json
import os
import sys
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation import export as exports
from rdjepa.adaptation.export import RECORD, TOLERANCE, export
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.errors import ArgumentError, OutputError
from rdjepa.forecasters.cnext_unet import Config as Convolutions
from rdjepa.forecasters.fno import Config
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from tiny import TINY

RNG = np.random.default_rng(0)
FIELDS = (3 + 2 * RNG.standard_normal((12, 16, 16, 2))).astype(np.float32)
SMALL = Config(width=4, layers=1, modes=4, readout=4, grid=16)


@pytest.fixture(scope="module")
def forecaster():
    return rdjepa.adapt(forecasters.build("fno", SMALL), FIELDS, steps=1, base="linear", device="cpu")


@pytest.fixture(scope="module")
def linear():
    model = Linear.fit([torch.from_numpy(FIELDS).movedim(-1, 1)])
    return Forecaster(model, rdjepa.Normalizer((1.0, 2.0), (3.0, 0.5)))


def contexts(count):
    return (3 + 2 * np.random.default_rng(count).standard_normal((count, 4, 16, 16, 2))).astype(np.float32)


def test_torch_program_is_the_forecaster_for_any_number_of_contexts(forecaster, tmp_path):
    written = export(forecaster, tmp_path / "f.pt2")
    assert written.difference < TOLERANCE and written.path == tmp_path / "f.pt2"
    extra = {RECORD: ""}
    with written.path.open("rb") as file:
        module = torch.export.load(file, extra_files=extra).module()
    for count in (1, 2, 7):
        given = contexts(count)
        assert np.abs(module(torch.from_numpy(given)).numpy() - forecaster.forecast(given)).max() < 1e-3
    record = json.loads(extra[RECORD])
    assert record["base"] == "linear" and record["record"]["checksums"] == forecaster.record["checksums"]


def test_a_forecaster_of_one_measured_component_is_compared_on_any_two():
    alone = rdjepa.adapt(Linear(), FIELDS[..., 0], device="cpu")
    assert exports._difference(Forecaster(alone.model, alone.normalizer).forecast, alone, 2) == 0


def test_a_forecaster_of_any_grid_stays_one(linear, tmp_path):
    with export(linear, tmp_path / "f.pt2").path.open("rb") as file:
        module = torch.export.load(file).module()
    given = RNG.standard_normal((2, 4, 10, 36, 2)).astype(np.float32)
    assert np.allclose(module(torch.from_numpy(given)).numpy(), linear.forecast(given), atol=1e-4)


def test_a_program_replaces_no_file_unasked(linear, tmp_path):
    path = tmp_path / "mine.npz"
    path.write_bytes(b"measured for weeks")
    with pytest.raises(OutputError, match="no other file in the place of the program, got one at"):
        export(linear, path)
    assert path.read_bytes() == b"measured for weeks"
    assert export(linear, path, force=True).path == path and path.read_bytes() != b"measured for weeks"


def test_a_full_disk_is_not_the_fault_of_the_network(linear, tmp_path, monkeypatch):
    def refuse(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OutputError, match="a full disk; free some space"):
        export(linear, tmp_path / "f.pt2")
    assert list(tmp_path.iterdir()) == []


def test_an_anchored_forecaster_is_exported_with_its_anchor(tmp_path):
    network = forecasters.build("fno", SMALL)
    anchored = rdjepa.adapt(network, FIELDS, steps=1, base="anchored", device="cpu")
    with export(anchored, tmp_path / "f.pt2").path.open("rb") as file:
        module = torch.export.load(file).module()
    given = FIELDS[None, 3:7].repeat(2, 0)
    assert np.abs(module(torch.from_numpy(given)).numpy() - anchored.forecast(given)).max() < 1e-3


class Branching(Linear):
    def predict(self, *features):
        (context,) = features
        return super().predict(context) if context.sum() > 0 else super().predict(-context)


def test_what_cannot_be_exported_leaves_no_file(linear, tmp_path, monkeypatch):
    unit = rdjepa.Normalizer((0.0, 0.0), (1.0, 1.0))
    with pytest.raises(ArgumentError, match="a network that can be exported to torch") as caught:
        export(Forecaster(Branching(), unit), tmp_path / "f.pt2")
    assert "\n" not in str(caught.value)
    with pytest.raises(ArgumentError, match=r"a file ending on \.pt2 for torch, got f\.onnx; change one"):
        export(linear, tmp_path / "f.onnx", "torch")
    with pytest.raises(ArgumentError, match="format among torch, onnx"):
        export(linear, tmp_path / "f.pt2", "tflite")
    with pytest.raises(ArgumentError, match="on every grid, got the equation alone"):
        export(rdjepa.adapt("equation", FIELDS), tmp_path / "f.pt2")
    monkeypatch.setattr(exports, "TOLERANCE", -1.0)
    with pytest.raises(ArgumentError, match="the forecaster's numbers up to"):
        export(linear, tmp_path / "f.pt2")
    assert list(tmp_path.iterdir()) == []


def test_onnx_program_is_the_forecaster(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `export` is not installed")
    pytest.importorskip("onnxscript")
    config = Convolutions(width=4, scales=1, blocks=1, grid=16)
    small = rdjepa.adapt(forecasters.build("cnext-unet", config), FIELDS, steps=1, device="cpu")
    written = export(small, tmp_path / "f.onnx", "onnx")
    session = onnxruntime.InferenceSession(written.path, providers=["CPUExecutionProvider"])
    assert RECORD in session.get_modelmeta().custom_metadata_map
    for count in (1, 5):
        (found,) = session.run(None, {"context": contexts(count)})
        assert np.abs(found - small.forecast(contexts(count))).max() < 1e-3


def test_missing_packages_of_onnx_are_named(linear, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ArgumentError, match=r"no onnxscript; install them with: pip install 'rdjepa\[export\]'"):
        export(linear, tmp_path / "f.onnx", "onnx")


def test_rd_jepa_is_exported(tmp_path, capfd, recwarn):
    """Without the checked shapes of its layers, which cannot be traced."""
    network = RDJEPAForecaster(rdjepa.build(TINY, seed=0))
    forecaster = Forecaster(network, rdjepa.Normalizer((1.0, 2.0), (3.0, 0.5)))
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        assert export(forecaster, tmp_path / "f.pt2").difference < TOLERANCE
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    assert not capfd.readouterr().err.strip() and not recwarn.list
    context = np.zeros((4, TINY.grid, TINY.grid, 2), np.float32)
    assert np.isfinite(forecaster.forecast(context)).all()  # the caches hold real matrices
