"""One pretraining step of an objective plain and compiled, each network as one graph; prints both results as JSON."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import torch
from noise import CONFIG, source
from torch import nn

from rdjepa.models.rdjepa import PRESETS, build
from rdjepa.pretraining import objectives
from rdjepa.pretraining.engine import Engine
from rdjepa.pretraining.state import TrainingState
from tiny import TINY

PRESETS["tiny"] = TINY


def prepare(engine: Engine, networks: Sequence[nn.Module]) -> None:
    """Compile the networks of a compiled engine without generating code."""
    for module in networks if engine.compiled else ():
        module.compile(backend="aot_eager", dynamic=False, fullgraph=True)


def main() -> None:
    """Print loss, gradient norm and names of the state of both."""
    setattr(Engine, "prepare", prepare)  # noqa: B010 - a method of a frozen class
    found, config, start = [], replace(CONFIG, objective=sys.argv[1]), None
    if objectives.get(config.objective).continues:
        start = build("tiny", seed=0)
        start.pretrained, start.fingerprint = ("encoder", "predictor"), "fresh"
    for engine in (Engine(), Engine("yes")):
        training = TrainingState("tiny", config, torch.device("cpu"), engine, start=start)
        batch = source().batch(0, 0, 2, training.side, training.objective)
        found.append(training.update([batch]) | {"tensors": sorted(training.tensors())})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
