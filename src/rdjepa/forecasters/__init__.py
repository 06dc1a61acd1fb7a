"""The forecasters of the benchmark, one file each, all behind `rdjepa.forecasters.base.ForecastModel`.

Their names, titles and classes are in `rdjepa.forecasters.registry`, which is all that importing this package loads.
"""

from typing import TYPE_CHECKING, Any

from rdjepa.forecasters.registry import Baseline, get, names, register, usual
from rdjepa.registry import class_of

if TYPE_CHECKING:
    from rdjepa.forecasters.base import ForecastModel

__all__ = ["Baseline", "build", "get", "model_class", "names", "register", "usual"]


def build(name: str, preset: Any = "paper", seed: int | None = None) -> "ForecastModel":
    """Build a forecaster with fresh weights; a note says so of one whose name stands for pretrained ones.

    Args:
        name: one of `names()`.
        preset: "paper" or "nano" (RD-JEPA and its controls also "small"), or the forecaster's own configuration.
        seed: seeds the weights without touching the global random state.

    Raises:
        ArgumentError: unknown name or preset.
    """
    from rdjepa.checks import Seed, checked
    from rdjepa.errors import Note, warn
    from rdjepa.models.device import in_float32
    from rdjepa.models.seeds import seeded

    make = in_float32(model_class(name).from_preset)
    if seed is None:
        model = make(preset)
    else:
        with seeded(checked(seed, Seed, "seed")):
            model = make(preset)
    if get(name).pretrained:
        begins = 'rdjepa.adapt("nano-wide", ...) begins with pretrained ones'
        warn(f"{name} has random weights where it is built by name; {begins}", Note)
    model.name = name
    if isinstance(preset, str):
        model.preset = preset
    return model


def model_class(name: str) -> "type[ForecastModel]":
    """Import the class of a registered forecaster.

    Raises:
        ArgumentError: unknown name, or a class that cannot be imported or is no forecaster.
    """
    from rdjepa.forecasters.base import ForecastModel

    return class_of(get(name).model, ForecastModel)
