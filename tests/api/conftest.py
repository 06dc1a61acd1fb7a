import pytest

from rdjepa.api import pretraining
from rdjepa.pretraining import loop


@pytest.fixture(scope="module")
def brief():
    """Two samples in the one held-out batch and in the recorded error, and no curves are drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "VALIDATION_BATCHES", 1)
        patch.setattr(loop, "VALIDATION_BATCH", 2)
        patch.setattr(pretraining, "SAMPLES", 2)
        patch.setattr("rdjepa.viz.figures.curves", lambda metrics, path: path.write_bytes(b"curves"))
        yield
