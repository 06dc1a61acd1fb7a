import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from noise import CONFIG, source

from rdjepa.errors import ArgumentError
from rdjepa.pretraining import objectives
from rdjepa.pretraining.engine import Engine, InsufficientMemoryError, explain_out_of_memory, fastest
from rdjepa.pretraining.state import TrainingState


def test_unknown_choices_are_refused():
    for wrong, sentence in (
        ({"compile": "maybe"}, "compile among no, yes, graphs, got 'maybe'"),
        ({"frames": "cloud"}, "frames among memory, mapped, device, got 'cloud'"),
        ({"accumulate": 0}, "accumulate to be a whole number of at least 1, got 0"),
        ({"accumulate": 1.5}, "accumulate to be a whole number, got 1.5"),
        ({"compile": "graphs", "accumulate": 2}, "one pass a step with CUDA graphs"),
    ):
        with pytest.raises(ArgumentError, match=f"expected {sentence}"):
            Engine(**wrong)


def test_a_gpu_gets_graphs_where_they_can_be_had_and_a_cpu_plain_kernels():
    assert fastest(torch.device("cpu")) == Engine()
    assert fastest(torch.device("cuda")) == Engine("graphs", 1, "device")
    assert fastest(torch.device("cuda"), 2) == Engine("no", 2, "device")


def test_targets_are_filled_up_to_few_shapes_where_each_shape_costs():
    for count in range(4, 17):
        frames = torch.randn(count, 2, 8, 8)
        for engine in (Engine("yes"), Engine("graphs")):
            filled = engine.futures(frames, 4)
            assert len(filled) in (4, 8, 12, 16)
            assert torch.equal(filled[:count], frames)
        assert Engine().futures(frames, 4) is frames


def test_replayed_passes_train_as_plain_ones(tiny):
    found = []
    for engine in (Engine(), Engine("graphs")):
        training = TrainingState("tiny", CONFIG, torch.device("cpu"), engine)
        for number in range(2):
            told = training.update([source().batch(0, number, 2, 8, training.objective)])
        found.append((told["loss"], told["gradient_norm"], len(training.queue.kept)))
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in objectives.names() if objectives.get(name).trained])
def test_networks_are_one_graph_each_and_train_as_the_plain_ones(name):
    # A process of its own, since the checks of shapes that tests/conftest.py adds to every function cannot be compiled.
    folder = Path(__file__).parent
    path = os.pathsep.join([str(folder.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, folder / "whole_graph.py", name]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    plain, compiled = json.loads(done.stdout)
    assert plain["loss"] == pytest.approx(compiled["loss"], rel=1e-4)
    assert plain["gradient_norm"] == pytest.approx(compiled["gradient_norm"], rel=1e-3)
    assert plain["tensors"] == compiled["tensors"]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"), RuntimeError("can't allocate memory")],
)
def test_too_little_memory_is_answered_with_what_to_lower(error):
    with pytest.raises(MemoryError, match="--accumulate"), explain_out_of_memory():
        raise error
    with pytest.raises(InsufficientMemoryError, match="its own"), explain_out_of_memory():
        raise InsufficientMemoryError("its own sentence")
    with pytest.raises(RuntimeError, match="something else"), explain_out_of_memory():
        raise RuntimeError("something else")
