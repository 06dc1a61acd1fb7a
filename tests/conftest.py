import json
import os
import shutil
import signal

# One thread, in child processes too: the tests' arrays are small, and two threads that wait for each other on a busy
# machine take ten times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from beartype import beartype
from jaxtyping import install_import_hook, jaxtyped

# Every test checks the array shapes that these modules declare, so nothing of rdjepa may be imported before.
install_import_hook(
    ["rdjepa.models", "rdjepa.pretraining.loss", "rdjepa.forecasters.loss"],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

from rdjepa import systems
from rdjepa.evaluation import metrics
from rdjepa.forecasters import cubic, equation
from rdjepa.forecasters import registry as forecaster_registry
from rdjepa.forecasters.base import ForecastModel
from rdjepa.io import checkpoint
from rdjepa.io.sealed import SEAL
from rdjepa.models.rdjepa import PRESETS, ModelConfig, build
from rdjepa.study import changes
from rdjepa.study import registry as study_registry
from tiny import TINY

# The hook would refuse the `Self` of this class, and only `forward` is never overridden.
ForecastModel.forward = jaxtyped(typechecker=beartype)(ForecastModel.forward)  # type: ignore[method-assign]


def pytest_collection_modifyitems(items):
    """Begin with the longest, which would run alone at the end."""
    items.sort(key=lambda item: item.path.name != "test_campaign.py")


@pytest.fixture(autouse=True)
def short_fits(request, monkeypatch):
    """A rough equation of each context, but in the tests of forecasters: it takes half a second otherwise."""
    tested = request.path.parent.name
    if tested != "forecasters":
        monkeypatch.setattr(equation, "ITERATIONS", 1)
        monkeypatch.setattr(equation, "STRETCHES", 4)
    if tested not in ("forecasters", "adaptation"):
        monkeypatch.setattr(cubic, "STEPS", 2)


@pytest.fixture
def tiny(monkeypatch):
    """A preset small enough to train inside a test."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    return TINY


@pytest.fixture(scope="session")
def narrow(tmp_path_factory):
    """A folder with the shipped model of few weights, for tests that do not ask what it can do."""
    path, record = checkpoint.read_config("nano")
    few = {"width": 32, "heads": 1, "depths": (1, 1, 1, 1, 1), "temporal_blocks": 1, "predictor_blocks": 1}
    model = build(ModelConfig.from_dict(record.model | few | {"decoder_width": 8}))
    model.name = "nano"
    folder = shutil.copytree(path, tmp_path_factory.mktemp("checkpoints") / "nano")
    checkpoint.save(model, folder, record.pretraining, "card")
    return folder


@pytest.fixture
def edit_json():
    """Changes a JSON file by hand, as one who leaves its seal off."""

    def edit(path, change):
        values = json.loads(path.read_text())
        values.pop(SEAL, None)
        change(values)
        path.write_text(json.dumps(values))

    return edit


@pytest.fixture
def registrations():
    """Undoes what a test registers: systems, forecasters, studies, changes and metrics."""
    tables: list[dict] = [
        systems._REGISTERED,
        forecaster_registry._REGISTERED.entries,
        study_registry._REGISTERED.entries,
        changes._REGISTERED.entries,
        metrics.METRICS,
    ]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


@pytest.fixture
def double():
    """Torch whose numbers are of 64 bits by default, as another library in the same program may ask for."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(autouse=True, scope="session")
def _interruptible():
    """Answer interrupts as a program in the foreground does: a shell starts what runs behind it deaf to them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
