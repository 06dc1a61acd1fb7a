"""What a lent GPU is used with (benchmarks/gpu.py, benchmarks/slices.py), as far as no GPU is needed."""

import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from rdjepa.io.tensors import save_tensors

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import gpu
import slices

DEAF = """
import signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


@pytest.mark.timeout(30)
def test_a_command_that_ignores_interrupts_ends_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "SIGNALS", ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, None)))
    command, log = [sys.executable, "-c", DEAF], tmp_path / "log"
    assert slices.until(command, time.monotonic() + 2, log) == -signal.SIGINT
    assert log.read_text() == "deaf\n"


def test_an_interrupt_is_heard_where_a_shell_had_it_ignored(monkeypatch):
    heard = []
    monkeypatch.setattr(gpu, "join", lambda *_: heard.append(signal.getsignal(signal.SIGINT)))
    monkeypatch.setattr(sys, "argv", ["gpu.py", "join", "out", "kept"])
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        gpu.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.default_int_handler]


def test_a_stage_without_the_last_file_of_its_model_goes_on(tmp_path):
    recipe, stage = gpu.RECIPES["nano"], tmp_path / "latent"
    state, model = stage / "state" / "step-000000100.safetensors", stage / "model"
    model.mkdir(parents=True)
    (model / "model.safetensors").touch()
    save_tensors(state, {"jepa.weight": torch.ones(2)}, {"kind": "state"})
    assert not gpu.finished(stage)
    assert gpu.kept(recipe, tmp_path)[-1] == tmp_path / "latent-step-000000100.safetensors"
    (model / "config.json").touch()
    assert gpu.finished(stage) and gpu.kept(recipe, tmp_path)[-1] == model
