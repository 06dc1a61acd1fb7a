import hashlib
import platform
from pathlib import Path

import numpy as np
import torch

import rdjepa
from rdjepa.io.provenance import processor, software, source_of


class InFile:
    pass


def test_processor_is_named_and_recorded():
    assert processor()
    assert processor() != "x86_64" or platform.system() != "Linux"  # the architecture alone identifies no timing
    assert set(software()) == {"rdjepa", "source", "python", "torch", "numpy", "device", "threads"}


def test_the_device_of_a_result_is_the_one_that_it_was_computed_on(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device=None: f"GPU {device and device.index}")
    assert software()["device"] == "GPU None" and software(torch.device("cuda", 1))["device"] == "GPU 1"
    assert software(torch.device("cpu"))["device"] == processor()
    fields, model = np.random.default_rng(0).random((12, 64, 64, 2)), rdjepa.forecasters.build("fno", "nano")
    adapted = rdjepa.adapt(model, fields, steps=1, device="cpu")
    assert adapted.record["software"]["device"] == processor()


def test_a_class_has_the_source_of_its_file_unless_it_was_typed():
    assert source_of(InFile) == hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    for module in (__name__, "no_such_module", "builtins"):  # also where the module has a file, which is not its own
        typed: dict = {"__name__": module}
        exec("class Typed:\n    pass", typed)
        assert source_of(typed["Typed"]) == ""
