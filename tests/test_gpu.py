"""What a lent GPU is used with (benchmarks/gpu.py, benchmarks/slices.py), as far as no GPU is needed."""

import random
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


def lent(work, *arguments):
    """Give a verb the arguments of a call."""
    return ["gpu.py", arguments[0], "--work", str(work), "--out", str(work / "out"), *arguments[1:]]


def test_what_is_to_be_kept_comes_back_after_a_failure(tmp_path, monkeypatch):
    def fail(arguments, recipe, work, ends):
        (work / "pretrain.log").write_text("why it failed")
        raise SystemExit("pretraining failed in every way")

    monkeypatch.setattr(gpu, "pretrain", fail)
    monkeypatch.setattr(sys, "argv", lent(tmp_path, "go"))
    with pytest.raises(SystemExit, match="every way"):
        gpu.main()
    slices.join(tmp_path / "out", tmp_path / "home")
    assert (tmp_path / "home" / "pretrain.log").read_text() == "why it failed"


def test_tracebacks_of_failed_cells_come_back(tmp_path, monkeypatch):
    (tmp_path / "study" / "failed").mkdir(parents=True)
    (tmp_path / "study" / "failed" / "0123.txt").write_text("a traceback")
    monkeypatch.setattr(gpu, "RDJEPA", [sys.executable, "-c", ""])
    monkeypatch.setattr(sys, "argv", lent(tmp_path, "study", "--", "decoder"))
    gpu.main()
    slices.join(tmp_path / "out", tmp_path / "home")
    assert (tmp_path / "home" / "study" / "failed" / "0123.txt").read_text() == "a traceback"


def test_what_a_study_made_comes_back_after_an_interrupt(tmp_path, monkeypatch):
    def until(command, ends, log):
        log.write_text("how far it came")
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "RDJEPA", [sys.executable, "-c", ""])
    monkeypatch.setattr(gpu, "until", until)
    monkeypatch.setattr(sys, "argv", lent(tmp_path, "study", "--", "decoder"))
    with pytest.raises(KeyboardInterrupt):
        gpu.main()
    slices.join(tmp_path / "out", tmp_path / "home")
    assert (tmp_path / "home" / "study.log").read_text() == "how far it came"


@pytest.mark.timeout(60)
def test_a_trial_ends_with_the_check_or_the_call_and_is_tried_again(tmp_path, monkeypatch):
    slow, quick = "import time; time.sleep(90)", 'print(\'{"losses": [1.0], "seconds": 0.1}\')'
    found = []
    monkeypatch.setattr(gpu, "pretrain", lambda arguments, *_: found.append(gpu.check(arguments, time.monotonic() + 5)))
    for text in (slow, quick):
        (tmp_path / "trial.py").write_text(text)
        monkeypatch.setattr(gpu, "__file__", str(tmp_path / "trial.py"))
        monkeypatch.setattr(sys, "argv", lent(tmp_path, "go", "--device", "cpu"))
        gpu.main()
    assert not found[0] and found[1]["nano bfloat16 no"]["works"]


def test_a_trial_that_had_its_time_has_failed(tmp_path, monkeypatch):
    (tmp_path / "trial.py").write_text("import time; time.sleep(90)")
    monkeypatch.setattr(gpu, "__file__", str(tmp_path / "trial.py"))
    monkeypatch.setattr(gpu, "PATIENCE", 0.5)
    assert "no result" in gpu.attempt(gpu.Trial("nano"), "cpu", time.monotonic() + 60)["error"]


@pytest.mark.parametrize("gpus", [1, 2])
def test_two_processes_are_tried_where_each_has_a_gpu(monkeypatch, gpus):
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    found = gpu.trials("nano", gpu.RECIPES["nano"], fused=False)
    assert [each.ranks for each in found if each.ranks > 1] == [2] * (gpus > 1)


def test_archives_replace_their_own_shards_alone_and_all_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "SHARD", 1_000)
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    for name, file, size in (("go", "long", 5_000), ("study", "rows", 50), ("go", "short", 50)):
        (work / file).write_bytes(random.Random(size).randbytes(size))
        slices.pack([work / file], work, out, name)
    slices.join(out, tmp_path / "home")
    assert {path.name for path in (tmp_path / "home").iterdir()} == {"short", "rows"}
    assert {path.name for path in out.iterdir()} == {"go.tar.gz.00", "study.tar.gz.00"}
