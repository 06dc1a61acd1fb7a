import os

# One thread, in child processes too: the tests' arrays are small, and two threads that wait for each other on a busy
# machine take ten times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

from rdjepa.models.rdjepa import PRESETS, ModelConfig

TINY = ModelConfig(32, 1, (1, 1, 1, 1, 1), temporal_blocks=1, predictor_blocks=1, decoder_width=8)


@pytest.fixture
def tiny(monkeypatch):
    """A preset small enough to train inside a test."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    return TINY


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
