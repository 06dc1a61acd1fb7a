from dataclasses import replace

import pytest
from noise import CONFIG, source

from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining import loop
from rdjepa.pretraining.loop import pretrain
from tiny import TINY


@pytest.fixture
def few(monkeypatch):
    """Two held-out batches of two samples."""
    monkeypatch.setattr(loop, "VALIDATION_BATCHES", 2)
    monkeypatch.setattr(loop, "VALIDATION_BATCH", 2)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The model of a run that was neither stopped nor watched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        seldom = replace(CONFIG, log_every=100, diagnose_every=100)
        return pretrain("tiny", source(), tmp_path_factory.mktemp("whole"), seldom)
