"""Weights between those that adaptation started from and those that it found.

A network that is tuned to one trajectory forgets how to forecast others. Between the weights before and after, on a
straight line, networks may be better than both: after Wortsman et al., Robust fine-tuning of zero-shot models, CVPR
2022. It costs nothing, and means something only where all weights were pretrained.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of all parameters of a model by name."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def retain(model: nn.Module, first: Mapping[str, Tensor], share: float) -> None:
    """Move the parameters of a model, in place, from what they are to `first` by a share of the way, from 0 to 1."""
    with torch.no_grad():
        for name, parameter in model.named_parameters() if share else ():
            parameter.lerp_(first[name], share)


@contextmanager
def retaining(model: nn.Module, first: Mapping[str, Tensor], share: float) -> Iterator[None]:
    """Give a model the weights of `retain` for the time of a block."""
    if not share:
        yield
        return
    own = weights(model)
    retain(model, first, share)
    try:
        yield
    finally:
        retain(model, own, 1.0)
