"""The interface of all forecasters: four context frames to N horizons, both in standardized units."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.checks import among, of_class
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.domain import PLAIN, Domain

CONTEXT = 4
HORIZONS = 5


def require_forecast(made: Any, context: Sequence[int], model: "ForecastModel") -> Tensor:
    """Return what a forecaster predicted, or refuse another shape than that of a forecast.

    Args:
        made: what it returned.
        context: shape (B, T, C, H, W) of the context.
        model: the forecaster.

    Raises:
        ArgumentError: it is none.
    """
    batch, _, *fields = context
    wanted = (batch, HORIZONS, *fields)
    if not isinstance(made, Tensor) or tuple(made.shape) != wanted:
        got = f"shape {tuple(made.shape)}" if isinstance(made, Tensor) else f"a {type(made).__name__}"
        raise ArgumentError(
            f"expected a tensor {wanted}, (B, {HORIZONS}, C, H, W), from `predict` of {type(model).__name__}, got "
            f"{got}; return all horizons of every context, channels first"
        )
    return made


class ForecastModel(nn.Module, ABC):
    """A direct forecaster: context (B, 4, C, H, W) to the next N fields (B, N, C, H, W), without rollout.

    Whatever adaptation leaves unchanged goes into `features`, so that a training loop may compute it once per
    window; the rest is `predict`. A model with nothing frozen keeps the default.

    Attributes:
        grid: points per side that it takes; None for any grid.
        components: field components C that it takes.
        name: as in `rdjepa.forecasters.names()`.
        preset: name of its sizes; adaptation takes the settings of that name.
        pretrained: names of the networks in it that were pretrained.
        longest: frames of a context that it makes use of, the newest; the network of none sees more than four.
        constants: numbers besides settings and weights that decide its forecasts, where a later release may change
            them; a cell of a study keeps them.
    """

    grid: int | None = 128
    components: int = 2
    name: str = "custom"
    preset: str = "custom"
    pretrained: Collection[str] = ()
    longest: int = CONTEXT
    constants: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    @abstractmethod
    def from_preset(cls, preset: Any) -> Self:
        """Build with fresh weights from the name of a preset or from a configuration.

        Raises:
            ArgumentError: unknown preset.
        """

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build with fresh weights from what `settings` returned."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return JSON values that describe the architecture completely."""

    def features(self, context: Float[Tensor, "B T C H W"]) -> tuple[Float[Tensor, "B ..."], ...]:
        """Compute what no training step changes, as tensors (B, ...)."""
        return (context,)

    def fitted_to(self, support: Sequence[Float[Tensor, "T C H W"]], domain: Domain = PLAIN) -> "ForecastModel":
        """Return the forecaster fitted to standardized trajectories, as far as that takes no update.

        Adaptation calls it before the updates. The default, of what learns by updates alone, is the forecaster itself.

        Args:
            support: trajectories (T, C, H, W), on one device.
            domain: how it ends, and how far points lie apart.

        Raises:
            ArgumentError: trajectories that are too short.
        """
        return self

    def in_physical_units(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return a function from context (B, 4, H, W, C) to forecast (B, 5, H, W, C) in physical units, or None.

        A study evaluates such a function directly, without rounding from standardizing and restoring. None, the
        default, says that the forecast needs standardized fields.
        """
        return None

    def latent_summary(self, *features: Float[Tensor, "B ..."]) -> Float[Tensor, "B d"] | None:
        """Describe each context, from what `features` returned, by one vector; None, the default, where none is known.

        The vector is of the encoder of a pretrained network.
        """
        return None

    def description(self, context: Float[Tensor, "B T C H W"]) -> Float[Tensor, "B d"] | None:
        """Describe contexts (B, 4, C, H, W) as `latent_summary` does."""
        return self.latent_summary(*self.features(context))

    @abstractmethod
    def predict(self, *features: Float[Tensor, "B ..."]) -> Float[Tensor, "B N C H W"]:
        """Forecast (B, N, C, H, W) from what `features` returned.

        On a GPU adaptation captures it once, as a CUDA graph: what Python decides in it is decided once, and one that
        moves anything between processor and GPU is run as it is.
        """

    def forward(self, context: Float[Tensor, "B T C H W"]) -> Float[Tensor, "B N C H W"]:
        """Forecast (B, N, C, H, W) from context (B, 4, C, H, W)."""
        return self.predict(*self.features(context))

    @abstractmethod
    def parameter_groups(self) -> list[dict]:
        """Return optimizer groups, `{"params": ..., "lr": ...}`, of all that adaptation trains; empty for none."""


class Configured(ForecastModel):
    """A forecaster that is built from a configuration alone.

    Args:
        config: frozen dataclass with at least `grid` and `components`.

    Attributes:
        presets: name -> configuration, that of "paper" among them.
        needs: what a configuration has.
    """

    presets: ClassVar[Mapping[str, Any]]
    needs: ClassVar[tuple[str, ...]] = ("grid", "components")

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse presets without that of "paper", whose class reads saved settings.

        Raises:
            ArgumentError: it is missing.
        """
        super().__init_subclass__(**options)
        if "paper" not in getattr(cls, "presets", {"paper": None}):
            raise ArgumentError(
                f'expected a configuration "paper" among the presets of {cls.__name__}, got {", ".join(cls.presets)}; '
                "add one, its class reads saved settings"
            )

    def __init__(self, config: Any) -> None:
        if missing := [name for name in self.needs if not hasattr(config, name)]:
            raise ArgumentError(
                f"expected a configuration of {type(self).__name__} with {', '.join(self.needs)}, got one without "
                f"{', '.join(missing)}; add what is missing"
            )
        super().__init__()
        self.config, self.grid, self.components = config, config.grid, config.components

    @classmethod
    def from_preset(cls, preset: Any) -> Self:
        """Build with fresh weights from the name of a preset or from a configuration."""
        return cls(preset_of(cls.presets, preset))

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build with fresh weights from what `settings` returned."""
        return cls(type(cls.presets["paper"])(**settings))

    def settings(self) -> dict[str, Any]:
        """Return the configuration as JSON values."""
        return asdict(self.config)


def preset_of(presets: Mapping[str, Any], preset: Any) -> Any:
    """Return the configuration of a preset, or the configuration that was given instead of a name.

    Raises:
        ArgumentError: unknown preset; the known ones are listed.
    """
    if not isinstance(of_class(preset, str | type(next(iter(presets.values()))), "a preset"), str):
        return preset
    return presets[among(preset, presets, "a preset")]
