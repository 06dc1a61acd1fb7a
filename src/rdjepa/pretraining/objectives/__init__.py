"""The objectives of pretraining, one file each, all behind `rdjepa.pretraining.objectives.base.ObjectiveModel`.

Their names, titles and classes are in `rdjepa.pretraining.objectives.registry`, which is all that importing this
package loads. Windows, loop, states, resumption and checkpoints are the same for all of them.
"""

from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING

from rdjepa.checks import of_class
from rdjepa.errors import ArgumentError
from rdjepa.pretraining.objectives.registry import DEFAULT, Objective, get, names, register
from rdjepa.registry import class_of

if TYPE_CHECKING:
    from rdjepa.pretraining.config import PretrainConfig
    from rdjepa.pretraining.objectives.base import ObjectiveModel

NETWORKS = ("encoder", "predictor", "decoder")  # of RD-JEPA, whose weights an objective may train

__all__ = ["DEFAULT", "Objective", "get", "model_class", "names", "register", "resolved"]


def model_class(name: str) -> "type[ObjectiveModel]":
    """Import the class of a registered objective.

    Raises:
        ArgumentError: unknown name, or a class that cannot be imported or is no objective.
    """
    from rdjepa.pretraining.objectives.base import ObjectiveModel

    return class_of(get(name).model, ObjectiveModel)


def resolved(config: "PretrainConfig") -> "PretrainConfig":
    """Return settings with the objective's own ones written out: its defaults where `config` has none.

    Raises:
        ArgumentError: `config.options` are those of another objective, or its class has options that are no dataclass,
            or keeps networks that RD-JEPA does not have.
    """
    objective = model_class(config.objective)
    kind = objective.options
    if kind is None:
        if config.options is not None:
            raise ArgumentError(f"expected no options with the objective {config.objective}, got some; leave them out")
        settings = config
    elif not is_dataclass(kind):
        raise ArgumentError(
            f"expected a frozen dataclass as the options of {objective.__name__}, got {kind!r}; decorate it with "
            "@dataclass(frozen=True)"
        )
    else:
        own = kind() if config.options is None else of_class(config.options, kind, "options")
        settings = replace(config, options=own)
    kept = objective.kept(settings.options)
    if isinstance(kept, str) or not set(kept) <= set(NETWORKS):
        raise ArgumentError(
            f"expected a tuple of {', '.join(NETWORKS)} from `kept` of {objective.__name__}, got {kept!r}; name those "
            "that it trains"
        )
    return settings
