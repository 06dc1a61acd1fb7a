import subprocess
import sys

import torch

from rdjepa.models.compiling import constant


def test_a_constant_is_marked_as_torch_marks_it():
    theirs = torch.compiler.assume_constant_result(lambda: torch.zeros(1))
    assert constant(lambda: torch.zeros(1)).__dict__ == theirs.__dict__


def test_a_model_is_loaded_and_forecasts_without_the_compiler_and_matplotlib():
    code = """
import sys, numpy, rdjepa
forecaster = rdjepa.adapt("nano-wide", numpy.random.default_rng(0).standard_normal((9, 64, 64, 2)), steps=0)
forecaster.forecast(numpy.zeros((4, 64, 64, 2)))
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"torch._dynamo", "sympy", "matplotlib", "pandas", "numba"} & set(done.stdout.split()) == set()
