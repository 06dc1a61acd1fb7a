import subprocess
import sys

import pytest
import torch
from torch._subclasses import FakeTensorMode

from rdjepa.models.compiling import constant, once
from rdjepa.models.embeddings import time_embedding
from rdjepa.models.spectral import matrices_on
from rdjepa.models.upsampling import _weights_once


def test_a_constant_is_marked_as_torch_marks_it():
    theirs = torch.compiler.assume_constant_result(lambda: torch.zeros(1))
    assert constant(lambda: torch.zeros(1)).__dict__ == theirs.__dict__


@pytest.mark.parametrize("first", [FakeTensorMode, torch.inference_mode])
def test_what_is_computed_once_has_values_and_is_trained_with_whoever_asked_first(first):
    asked = []

    def counted(count):
        asked.append(count)
        return torch.arange(count, dtype=torch.float32)

    kept = once(counted)
    with first():
        kept(3)
    weight = torch.ones(3, requires_grad=True)
    (weight * kept(3)).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [0.0, 1.0, 2.0] and asked == [3]


def test_the_constants_of_the_networks_have_values_although_a_trace_asked_first():
    """For sizes that no other test has, since they are kept."""
    device = torch.device("cpu")
    with FakeTensorMode():
        time_embedding(9, 12, device), matrices_on(13, 3, device), _weights_once(13, True, device)
    kept = (time_embedding(9, 12, device), *matrices_on(13, 3, device), _weights_once(13, True, device))
    assert all(type(each) is torch.Tensor and each.isfinite().all() for each in kept)


# The checks of shapes that tests/conftest.py adds to every function cannot be compiled, and both names of a precision
# in one process are an error of torch.
ALONE = """
import sys, numpy, rdjepa
forecaster = rdjepa.adapt("nano-wide", numpy.random.default_rng(0).standard_normal((9, 64, 64, 2)), steps=0)
forecaster.forecast(numpy.zeros((4, 64, 64, 2)))
print(*sys.modules)

import torch
from rdjepa.models.device import in_float32
from rdjepa.models.upsampling import double

def fourfold(fields):
    return double(double(fields, periodic=True), periodic=True)

x = torch.randn(2, 3, 4, 4)
compiled = torch.compile(fourfold, backend="aot_eager", dynamic=False, fullgraph=True)
print(torch.allclose(compiled(x), fourfold(x), atol=1e-6))

torch.backends.cudnn.conv.fp32_precision = torch.backends.cuda.matmul.fp32_precision = "tf32"
found = lambda: (torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision)
in_float32(found)()
print(*found())
"""


@pytest.fixture(scope="module")
def alone():
    """What a process of its own prints, and what it says of errors."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    return [*done.stdout.splitlines(), done.stderr[-2000:], "", ""]


def test_a_model_is_loaded_and_forecasts_without_the_compiler_and_matplotlib(alone):
    loaded = set(alone[0].split())
    assert "rdjepa" in loaded and not {"torch._dynamo", "sympy", "matplotlib", "pandas", "numba"} & loaded


def test_doubling_is_compiled_as_one_graph_at_several_sizes(alone):
    assert alone[1] == "True"


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="torch has the older names alone")
def test_what_was_set_by_the_newer_names_of_a_precision_is_no_error_and_stays(alone):
    assert alone[2] == "tf32 tf32"
