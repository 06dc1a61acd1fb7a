"""Parts of the method that a pretraining can do without: of the predictor, masks, tubes, same-time targets.

Each is a setting of the model or of the targets; their names here are for commands and studies.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from rdjepa.checks import among
from rdjepa.errors import ArgumentError
from rdjepa.models.predictor import BRANCHES, LAPLACIAN
from rdjepa.models.rdjepa import ModelConfig
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.objectives import DEFAULT
from rdjepa.pretraining.targets import BLOCK, KINDS, SAME_TIME, TUBE, TargetConfig

Settings = tuple[ModelConfig, PretrainConfig]


def _of_predictor(name: str) -> Callable[[ModelConfig, PretrainConfig], Settings]:
    return lambda model, config: (replace(model, without=tuple(dict.fromkeys((*model.without, name)))), config)


def _targets(change: Callable[[TargetConfig], TargetConfig]) -> Callable[[ModelConfig, PretrainConfig], Settings]:
    def of_targets(model: ModelConfig, config: PretrainConfig) -> Settings:
        if config.objective != DEFAULT:
            raise ArgumentError(
                f"expected the objective {DEFAULT} where masks or targets are left out, got {config.objective}, which "
                "has none of them; leave out parts of the predictor alone"
            )
        return model, replace(config, targets=change(config.targets))

    return of_targets


def _unmasked(targets: TargetConfig) -> TargetConfig:
    """Mask no context at random; a region that is asked for at the same time stays hidden, or it could be copied."""
    return replace(targets, mask_probability=0.0)


def _never(kind: str) -> Callable[[TargetConfig], TargetConfig]:
    """Return a function that gives the probability of a kind of target to the others, in their proportions."""

    def change(targets: TargetConfig) -> TargetConfig:
        kept = [0.0 if each == kind else p for each, p in zip(KINDS, targets.probabilities, strict=True)]
        if not sum(kept):
            raise ArgumentError(f"expected a kind of target to be left, got none without {kind}; keep one")
        first, second, third = (p / sum(kept) for p in kept)
        return replace(targets, probabilities=(first, second, third))

    return change


PARTS: Mapping[str, Callable[[ModelConfig, PretrainConfig], Settings]] = {
    **{name: _of_predictor(name) for name in (*BRANCHES, LAPLACIAN)},
    "masks": _targets(_unmasked),
    "blocks": _targets(_never(BLOCK)),
    "tubes": _targets(_never(TUBE)),
    "same-time": _targets(_never(SAME_TIME)),
}


def without(names: Collection[str], model: ModelConfig, config: PretrainConfig) -> Settings:
    """Return the settings of a model and of its pretraining without some parts.

    Args:
        names: of the parts, each once, among `PARTS`.
        model: sizes of the model.
        config: settings of the pretraining.

    Raises:
        ArgumentError: an unknown part, with the known ones; a part named twice; no kind of target left; or a part that
            the objective of `config` does not have.
    """
    for name in names:
        among(name, PARTS, "parts")
    if len(set(names)) < len(names):
        raise ArgumentError(f"expected each part once, got {', '.join(names)}; name each once")
    for name in names:
        model, config = PARTS[name](model, config)
    return model, config
