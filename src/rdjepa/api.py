"""The public functions: each is one arrow of the pipeline, and one verb of the command line."""

import dataclasses
from pathlib import Path

from rdjepa.training import pretrain as _pretrain
from rdjepa.training.source import Source


def pretrain(preset, data, out, *, steps=None, precision=None, resuming=False):
    """Draft."""
    config = _pretrain.PROFILES[preset]
    if steps:
        config = _pretrain.scaled(config, steps)
    if precision:
        config = dataclasses.replace(config, precision=precision)
    source = Source.open(data, _pretrain.SOURCES)
    validation = Source.open(data, _pretrain.SOURCES, "validation")
    return _pretrain.pretrain(preset, source, Path(out), config, validation=validation, resuming=resuming)
