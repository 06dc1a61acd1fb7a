import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from noise import CONFIG, source

from rdjepa.errors import ArgumentError
from rdjepa.io.tensors import load_tensors
from rdjepa.pretraining.engine import Engine
from rdjepa.pretraining.loop import pretrain
from rdjepa.pretraining.processes import Ranks, environment, joined
from rdjepa.pretraining.state import TrainingState, saved_states

SCRIPT = """
import sys; sys.path[:0] = sys.argv[1].split(':')
from pathlib import Path
import torch
from noise import CONFIG, source
from tiny import TINY
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining.processes import joined
from rdjepa.pretraining.loop import pretrain
PRESETS["tiny"] = TINY
with joined(torch.device('cpu')) as ranks:
    data = source()
    if len(sys.argv) > 4 and ranks.rank == 1:
        data.frames.table[:] = torch.nan
    pretrain('tiny', data, Path(sys.argv[2]), CONFIG, validation=source(1), ranks=ranks, resuming=True,
             stop_at=int(sys.argv[3]))
"""

MEETING = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}


def launch(folder, run, stop_at, *more):
    script = folder / "ranks.py"
    script.write_text(SCRIPT)
    here = Path(__file__).parent
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    command += [f"{here}:{here.parent}", str(run), str(stop_at), *more]
    return subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300, check=False
    )


def weights(run):
    tensors, record = load_tensors(saved_states(run)[0])
    return {name: tensor for name, tensor in tensors.items() if name.startswith("jepa.")}, record


def furthest(a, b):
    return max(float((a[name] - b[name]).abs().max()) for name in a)


@pytest.mark.parametrize(("size", "accumulate"), [(1, 1), (2, 1), (4, 1), (1, 4), (2, 2)])
def test_parts_of_all_processes_are_the_batch_once(size, accumulate):
    parts = [part for rank in range(size) for part in Ranks(rank, size).parts(8, accumulate)]
    assert sorted(i for part in parts for i in range(8)[part]) == list(range(8))
    assert len({part.stop - part.start for part in parts}) == 1


def test_a_batch_that_cannot_be_divided_is_refused():
    for size, accumulate in ((3, 1), (2, 4), (8, 1)):
        with pytest.raises(ValueError, match="divide"):
            Ranks(0, size).parts(4, accumulate)


def test_a_part_of_a_plan_is_that_part_of_the_whole_batch():
    data = source()
    whole = data.batch(3, 7, 4, 16, CONFIG.targets)
    for first in range(4):
        part = data.cut(data.plan(3, 7, 4, 16, CONFIG.targets, slice(first, first + 1)))
        assert part.systems == whole.systems[first : first + 1]
        for name in ("context", "patches", "offsets", "mask"):
            assert torch.equal(getattr(part, name)[0], getattr(whole, name)[first])
        assert torch.equal(part.futures[part.frame_of_query[0]], whole.futures[whole.frame_of_query[first]])


def test_environment_of_torchrun_is_read(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert environment() == Ranks(0, 1, 0)
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", **MEETING}.items():
        monkeypatch.setenv(name, value)
    assert environment() == Ranks(5, 8, 1)
    assert not environment().leads
    assert environment().device(torch.device("cuda")) == torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"WORLD_SIZE": "2"}, "expected RANK and MASTER_ADDR and MASTER_PORT beside WORLD_SIZE=2"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "expected MASTER_ADDR and MASTER_PORT beside WORLD_SIZE=2"),
        ({"WORLD_SIZE": "x", "RANK": "0", **MEETING}, "expected numbers in RANK, .* got 0, x, 0"),
    ],
)
def test_an_environment_that_no_launcher_wrote_is_refused(given, said, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", *MEETING):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentError, match=f"{said}.*unset"):
        environment()


@pytest.fixture
def second_of_two(monkeypatch):
    """Be process 1 of two; return what the connection of processes is asked for."""
    asked: list = []
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", **MEETING}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("torch.cuda.set_device", asked.append)
    monkeypatch.setattr("torch.distributed.init_process_group", lambda *given, **named: asked.append((given, named)))
    return asked


def test_more_processes_than_gpus_are_refused(second_of_two, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(ArgumentError, match="got 1 and process 1; lower --nproc"), joined(torch.device("cuda")):
        pass
    assert not second_of_two


@pytest.mark.parametrize(("kind", "backend", "own"), [("cpu", "gloo", None), ("cuda", "nccl", torch.device("cuda", 1))])
def test_processes_know_their_gpu_and_wait_for_data_to_be_read(second_of_two, monkeypatch, kind, backend, own):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with joined(torch.device(kind)):
        ((given, named),) = (each for each in second_of_two if isinstance(each, tuple))
    assert given == (backend,) and named["device_id"] == own and named["timeout"].total_seconds() >= 3600


def test_accumulated_passes_make_the_step_of_the_whole_batch(tiny):
    whole, divided = (
        TrainingState("tiny", CONFIG, torch.device("cpu"), Engine(accumulate=passes)) for passes in (1, 2)
    )
    data, plan = source(), (1, 0, 2, 8, CONFIG.targets)
    a = whole.update([data.batch(*plan)])
    b = divided.update([data.cut(data.plan(*plan, part)) for part in Ranks().parts(2, 2)])
    assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
    assert a["gradient_norm"] == pytest.approx(b["gradient_norm"], rel=1e-4)
    for x, y in zip(whole.objective.trainable(), divided.objective.trainable(), strict=True):
        assert x.grad is not None and y.grad is not None and torch.allclose(x.grad, y.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_two_processes_do_what_one_does_and_one_goes_on_where_two_stopped(tiny, tmp_path):
    pretrain("tiny", source(), tmp_path / "one", CONFIG, validation=source(1))
    done = launch(tmp_path, tmp_path / "two", 6)
    assert done.returncode == 0, done.stderr
    (one, record), (two, other) = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert record == other | {"sha256": record["sha256"], "curves": record["curves"]}  # curves name seconds
    moved = furthest(one, weights_at_start())
    assert furthest(one, two) < 0.05 * moved
    losses = [
        [json.loads(line)["loss"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert launch(tmp_path, tmp_path / "mixed", 3).returncode == 0
    pretrain("tiny", source(), tmp_path / "mixed", CONFIG, validation=source(1), resuming=True)
    assert furthest(one, weights(tmp_path / "mixed")[0]) < 0.05 * moved


def weights_at_start():
    training = TrainingState("tiny", CONFIG, torch.device("cpu"))
    return {name: value.clone() for name, value in training.tensors().items() if name.startswith("jepa.")}


@pytest.mark.slow
def test_what_fails_in_one_process_ends_all(tmp_path):
    done = launch(tmp_path, tmp_path / "run", 6, "poisoned")
    assert done.returncode != 0
    assert "expected a finite loss" in done.stderr
    assert not saved_states(tmp_path / "run")


LOST = """
import os, sys, time
import torch
from rdjepa.errors import ProcessError
from rdjepa.pretraining.processes import joined
print('ready', flush=True)
try:
    with joined(torch.device('cpu')) as ranks:
        ranks.wait()
        if ranks.rank == 1:
            os._exit(9)
        for _ in range(100):
            ranks.mean(torch.ones(1000))
except ProcessError as error:
    print(error)
"""


def start(rank, port, script=LOST):
    group = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return subprocess.Popen([sys.executable, "-c", script], env=os.environ | group, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def test_those_that_are_left_say_that_one_was_lost(port):
    left, lost = start(0, port), start(1, port)
    assert lost.wait(100) == 9
    said, _ = left.communicate(timeout=100)
    assert "expected 2 processes until the end of the run, got fewer in process 0" in said and "--resume" in said


def test_a_signal_ends_a_process_that_waits_for_the_others(port):
    waiting = start(0, port)
    assert waiting.stdout is not None and waiting.stdout.readline() == "ready\n"
    time.sleep(1)
    waiting.terminate()
    assert waiting.wait(20) == -signal.SIGTERM
    waiting.stdout.close()
