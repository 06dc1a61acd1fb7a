"""The contenders of the benchmark, one file each, all behind `rdjepa.models.base.ForecastModel`."""

from collections.abc import Callable

from rdjepa.forecasters import rd_jepa, scratch
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.rdjepa import ModelConfig

_BUILDERS: dict[str, Callable[..., RDJEPAForecaster]] = {
    "rd-jepa": rd_jepa.build,
    "scratch": scratch.build,
}


def names() -> list[str]:
    """Names of the trainable contenders."""
    return list(_BUILDERS)


def build(name: str, preset: str | ModelConfig = "paper", seed: int | None = None) -> RDJEPAForecaster:
    """Build a contender with fresh weights.

    Args:
        name: one of `names()`.
        preset: "paper", "small" or "nano", or the model's own configuration.
        seed: seeds the weights without touching the global random state.

    Raises:
        ValueError: unknown name or preset.
    """
    if name not in _BUILDERS:
        raise ValueError(f"expected a forecaster among {', '.join(names())}, got {name!r}")
    return _BUILDERS[name](preset, seed)
