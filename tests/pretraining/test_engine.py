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


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_replayed_passes_train_as_plain_ones(tiny, device):
    """Which are replayed on a GPU alone; on a CPU only the padding differs."""
    found, weights, shapes = [], [], set()
    for engine in (Engine(), Engine("graphs")):
        training = TrainingState("tiny", CONFIG, torch.device(device), engine)
        for number in range(4):
            batch = source().batch(0, number, 2, 8, training.objective).to(training.device)
            told = training.update([batch])
            shapes.add(len(batch.futures))
        found.append((told["loss"], told["gradient_norm"], len(training.queue.kept)))
        weights.append(torch.cat([each.flatten() for each in training.objective.trainable()]))
    assert training.replayed and not training.replayed.plain
    assert len(shapes) > 1 and (device == "cpu" or 1 < len(training.replayed.captured) <= len(shapes))
    assert found[0] == pytest.approx(found[1], rel=1e-5 if device == "cpu" else 1e-3)
    assert torch.allclose(weights[0], weights[1], atol=1e-5 if device == "cpu" else 1e-3)


def test_targets_are_filled_up_only_where_passes_are_replayed(tiny):
    training = TrainingState("tiny", CONFIG, torch.device("cpu"), Engine("graphs"))
    batch = next(
        each
        for each in (source().batch(0, number, 2, 8, training.objective) for number in range(20))
        if len(each.futures) % 2
    )
    assert len(training._filled(batch)[1]) == len(batch.futures) + 1
    training.replayed = None  # as with several processes
    assert len(training._filled(batch)[1]) == len(batch.futures)


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
