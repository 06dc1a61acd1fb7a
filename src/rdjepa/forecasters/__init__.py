"""The forecasters of the benchmark, one file each, all behind `rdjepa.forecasters.base.ForecastModel`.

Their names, titles and classes are in `rdjepa.forecasters.registry`, which is all that importing this package loads.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.registry import Baseline, get, names, register, usual

if TYPE_CHECKING:
    from rdjepa.forecasters.base import ForecastModel

__all__ = ["Baseline", "build", "get", "model_class", "names", "register", "usual"]


def build(name: str, preset: Any = "paper", seed: int | None = None) -> "ForecastModel":
    """Build a forecaster with fresh weights.

    Args:
        name: one of `names()`.
        preset: "paper" or "nano" (RD-JEPA and its controls also "small"), or the forecaster's own configuration.
        seed: seeds the weights without touching the global random state.

    Raises:
        ArgumentError: unknown name or preset.
    """
    import torch

    from rdjepa.checks import Seed, checked

    if seed is None:
        model = model_class(name).from_preset(preset)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(checked(seed, Seed, "seed"))
            model = model_class(name).from_preset(preset)
    model.name = name
    if isinstance(preset, str):
        model.preset = preset
    return model


def model_class(name: str) -> "type[ForecastModel]":
    """Import the class of a registered forecaster.

    Raises:
        ArgumentError: unknown name, or a class that cannot be imported.
    """
    model = get(name).model
    return model if isinstance(model, type) else import_class(model)


def import_class(path: str) -> "type[ForecastModel]":
    """Import the forecaster class that "module:Class" names.

    Raises:
        ArgumentError: no such module, no such class in it, or a class of another kind.
    """
    from rdjepa.forecasters.base import ForecastModel

    module, _, qualified = path.partition(":")
    try:
        found: Any = import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise ArgumentError(
            f"expected to import {path}, got no module {missing}; install it or put its folder on PYTHONPATH"
        ) from error
    for part in qualified.split("."):
        if not hasattr(found, part):
            raise ArgumentError(
                f"expected to import {path}, got no {part} in {module} ({getattr(found, '__file__', module)}); "
                "define it there, or use the version of the file that has it"
            )
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, ForecastModel)):
        raise ArgumentError(f"expected {path} to be a subclass of ForecastModel, got {found!r}; name another class")
    return found
