"""Weights between those that adaptation started from and those that it found.

A network that is tuned to one trajectory forgets how to forecast others. Between the weights before and after, on a
straight line, networks may be better than both: after Wortsman et al., Robust fine-tuning of zero-shot models, CVPR
2022. It costs nothing, and means something only where all weights were pretrained.

On random equations it was safe where the pretrained network can forecast a system before any update; elsewhere it was
anything from 40 % better to a third worse. Which case it is shows on the trajectories that one has: `share_for` decides
by the error on them (docs/results/random-equations.md), of the network or of its combination with simple forecasts.
Several trajectories have several sets of coefficients, and are no danger of this kind: with these nothing is retained,
and the encoder is tuned too.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from rdjepa.adaptation.adapt import Windows
from rdjepa.forecasters.base import ForecastModel

SHARE, UPDATES = 0.5, 100
FAMILIAR = 0.3  # error of the network without an update, below which it knows a system
KNOWN = 0.1  # that of its combination with simple forecasts, below which long training would be of no use
SEVERAL = 5  # trajectories
MOST = 1_000  # windows that the error is measured on
RULE = {"share": SHARE, "updates": UPDATES, "familiar": FAMILIAR, "known": KNOWN, "several": SEVERAL}


def knows(error: float, together: float | None = None) -> bool:
    """Return whether a system is known without an update, by `relative_error` or by the error together with others."""
    return error < FAMILIAR or (together is not None and together < KNOWN)


def share_for(known: bool, trajectories: int) -> float:
    """Return the share to retain: `SHARE` of a system that is known, of which there are fewer than `SEVERAL`, or 0.

    After `UPDATES` updates more of them change little then.
    """
    return SHARE if known and trajectories < SEVERAL else 0.0


def relative_error(model: ForecastModel, data: Windows, most: int = MOST) -> float:
    """Return the norm of a forecaster's errors on the windows of the support over that of the standardized fields.

    Of more than `most` windows every second, third, ... is taken. Neither the units of fields nor a constant that is
    added to them change it.
    """
    errors, fields = 0.0, 0.0
    with torch.no_grad():
        every = math.ceil(data.own / most)
        for index in torch.arange(0, data.own, every, device=data.targets.device).split(8):
            targets = data.targets[index]
            predicted = model.predict(*(part[index] for part in data.features)).float()
            errors += float((predicted - targets).square().sum())
            fields += float(targets.square().sum())
    return math.sqrt(errors / fields) if fields else 0.0


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
