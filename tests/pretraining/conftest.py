import pytest

from rdjepa.pretraining import loop


@pytest.fixture
def few(monkeypatch):
    """Two held-out batches of two samples."""
    monkeypatch.setattr(loop, "VALIDATION_BATCHES", 2)
    monkeypatch.setattr(loop, "VALIDATION_BATCH", 2)
