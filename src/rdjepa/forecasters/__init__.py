"""The forecasters of the benchmark, one file each, all behind `rdjepa.forecasters.base.ForecastModel`."""

from collections.abc import Mapping
from typing import Any

import torch

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.cnext_unet import CNextUNet
from rdjepa.forecasters.fno import FNO
from rdjepa.forecasters.lno import LNO
from rdjepa.forecasters.no_latent import NoLatent
from rdjepa.forecasters.persistence import Extrapolation, Persistence
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.forecasters.revit import ReViT
from rdjepa.forecasters.riesz_no import RieszNO
from rdjepa.forecasters.scratch import Scratch

_FORECASTERS: dict[str, type[ForecastModel]] = {
    "rd-jepa": RDJEPAForecaster,
    "scratch": Scratch,
    "no-latent": NoLatent,
    "fno": FNO,
    "lno": LNO,
    "riesz-no": RieszNO,
    "revit": ReViT,
    "cnext-unet": CNextUNet,
    "persistence": Persistence,
    "extrapolation": Extrapolation,
}


def names() -> list[str]:
    """Names of the forecasters."""
    return list(_FORECASTERS)


def build(name: str, preset: Any = "paper", seed: int | None = None) -> ForecastModel:
    """Build a forecaster with fresh weights.

    Args:
        name: one of `names()`.
        preset: "paper" or "nano" (RD-JEPA and its controls also "small"), or the forecaster's own configuration.
        seed: seeds the weights without touching the global random state.

    Raises:
        ArgumentError: unknown name or preset.
    """
    if seed is None:
        model = _forecaster(name).from_preset(preset)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _forecaster(name).from_preset(preset)
    model.name = name
    if isinstance(preset, str):
        model.preset = preset
    return model


def restore(name: str, settings: Mapping[str, Any]) -> ForecastModel:
    """Build a forecaster with fresh weights from what its `settings` returned, to load saved weights into.

    Raises:
        ArgumentError: unknown name.
    """
    model = _forecaster(name).from_settings(settings)
    model.name = name
    return model


def _forecaster(name: str) -> type[ForecastModel]:
    if name not in _FORECASTERS:
        raise ArgumentError(f"expected a forecaster among {', '.join(names())}, got {name!r}")
    return _FORECASTERS[name]
