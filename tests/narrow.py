"""The shipped model with few weights, for documents and notebooks whose tests do not ask what it can do."""

import shutil
from pathlib import Path

from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import ModelConfig, build


def narrow(folder: Path) -> Path:
    """Save it below a folder and return where."""
    path, record = checkpoint.read_config("nano")
    few = {"width": 32, "heads": 1, "depths": (1, 1, 1, 1, 1), "temporal_blocks": 1, "predictor_blocks": 1}
    model = build(ModelConfig.from_dict(record.model | few | {"decoder_width": 8}))
    model.name = "nano"
    copy = shutil.copytree(path, folder / "nano")
    checkpoint.save(model, copy, record.pretraining, "card")
    return copy
