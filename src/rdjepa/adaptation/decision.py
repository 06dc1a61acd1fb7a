"""Decisions on a network whose weights were all pretrained: number of updates, weight interpolation, combination.

The errors of the network on the support before any update say whether it knows the system
(`rdjepa.adaptation.retention`) and in which shares it is combined with simple forecasts
(`rdjepa.adaptation.combination`). Where other trajectories are at hand, their errors after adaptation decide whether it
is combined at all; where none are but there are several of the support, the last of these decides, which is kept from
the first updates for it. Not part of the paper's protocol.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rdjepa.adaptation import combination, retention
from rdjepa.adaptation.adapt import Windows, Withheld
from rdjepa.adaptation.forecaster import at_once
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.anchored import Anchored
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.familiar import Familiar

FIRST = 5  # the part of the updates, one in so many, from which the last trajectory is kept
ENOUGH = 64  # windows of it: each has an equation to be fitted
RULE = {"first": FIRST, "enough": ENOUGH, "equation": "others"}


@dataclass(frozen=True)
class Decision:
    """How a network is adapted, and what forecasts in the end.

    Attributes:
        steps: parameter updates.
        share: of the weights before adaptation, which is mixed into those after it.
        combined: what stands beside the network, and in which shares; None where it forecasts alone.
        missed: what anchors the network (`rdjepa.forecasters.anchored`); None where nothing does.
        walls: whether fields are mirrored at their borders, where it is anchored.
        told: what decided, for the record.
    """

    steps: int
    share: float = 0.0
    combined: Combined | None = None
    missed: Tensor | None = None
    walls: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def blends(self) -> bool:
        """Whether the blend has all of the forecast, so that it goes by what is familiar."""
        return self.combined is not None and bool((self.combined.shares[1] == 1).all())

    def around(
        self, network: ForecastModel, equation: Equation | None = None, familiar: Familiar | None = None
    ) -> ForecastModel:
        """Return what forecasts with a network, or with one that has other weights.

        Args:
            network: with any weights.
            equation: in the place of that of the combination, if given.
            familiar: the support as this network describes it; it has a say where the blend has all.
        """
        if self.missed is not None:
            return Anchored(network, self.missed, self.walls)
        if self.combined is None:
            return network
        parts = self.combined.linear, self.combined.shares, equation or self.combined.equation
        return Combined(network, *parts, familiar if self.blends else None).to(self.combined.shares.device)


def decide(
    network: ForecastModel,
    data: Windows,
    support: Sequence[Tensor],
    steps: int,
    *,
    trajectories: int | None = None,
    combines: bool = True,
    retains: bool = True,
    shortens: bool = True,
    domain: Domain = PLAIN,
) -> Decision:
    """Decide by the errors of a pretrained network on the support, before any update.

    Args:
        network: all of it pretrained, on the device of the data.
        data: the windows of the support.
        support: its trajectories (T, C, H, W), standardized, on that device.
        steps: updates of a system that the network does not know.
        trajectories: number of trajectories where the support are squares of them; that of the support when None.
        combines: whether it may be combined with simple forecasts.
        retains: whether some of its weights may be retained, of fewer than `retention.SEVERAL` trajectories.
        shortens: whether there may be fewer updates where they are.
        domain: how it ends, and how far points lie apart.
    """
    error, together, made = retention.relative_error(network.eval(), data), None, None
    told: dict[str, Any] = {"unadapted": error}
    if combines:
        made, together = combination.combined(network, support, domain)
        told["together"] = together
    known = retention.knows(error, together)
    share = retention.share_for(known, trajectories or len(support)) if retains else 0.0
    decision = Decision(min(steps, retention.UPDATES) if share and shortens else steps, share, told=told)
    if not made:
        return decision
    return _with(decision, made) if known else blending(decision, network, made.equation)


def blending(decision: Decision, network: ForecastModel, equation: Equation) -> Decision:
    """Return a decision with the network blended with the equation of each context."""
    return _with(decision, combination.blended(network, equation))


def _with(decision: Decision, made: Combined) -> Decision:
    """Return a decision with a combination; the record has the shares where a context tells nothing of itself."""
    return replace(decision, combined=made, told={**decision.told, "combined": made.shares[:2].sum(0).tolist()})


def withhold(decision: Decision, pieces: Sequence[Sequence[Tensor]], images: int) -> Withheld | None:
    """Return which windows the first updates do not see, so that `settle` can choose by the last trajectory.

    Args:
        decision: of a support that nothing else is there to choose by.
        pieces: of each of its trajectories what is learned, itself or its squares, (T, C, H, W).
        images: of each piece that are learned, itself among them.

    Returns:
        The windows of the last trajectory and of its images, in the order of `rdjepa.adaptation.adapt.extended`; None
        where there is no choice, no other trajectory, or where most of what is known is retained, so that few updates
        are made and change little.
    """
    updates = decision.steps // FIRST
    if decision.combined is None or decision.share or len(pieces) < 2 or not updates:
        return None
    owner = np.array([i for i, own in enumerate(pieces) for _ in own])
    counts = np.array([FORECASTING.count(len(piece)) for own in pieces for piece in own])
    of_windows = np.concatenate([np.repeat(owner, counts), np.repeat(owner, counts * (images - 1))])
    return Withheld(np.flatnonzero(of_windows == len(pieces) - 1), updates)


@torch.no_grad()
def settle(
    decision: Decision,
    network: ForecastModel,
    others: Sequence[Tensor],
    equation: Equation | None = None,
    familiar: Familiar | None = None,
    *,
    most: int | None = None,
) -> Decision:
    """Leave the network alone unless it is better combined on trajectories that it was not adapted to.

    Args:
        decision: with a combination.
        network: after adaptation, or after as much of it as did not see these.
        others: standardized trajectories (T, C, H, W), on its device.
        equation: that of the combination, with a memory for those who forecast the same contexts afterwards.
        familiar: the support without these, as the network describes it.
        most: windows of each trajectory that are forecast; all when None.
    """
    tried = {"network": network.eval(), "combined": decision.around(network, equation, familiar).eval()}
    missed, squares = dict.fromkeys(tried, 0.0), 0.0
    for fields in others:
        count = FORECASTING.count(len(fields))
        cut = FORECASTING.stack(fields, FORECASTING.spread(len(fields), min(count, most or count)))
        few = at_once(fields.device.type, fields.shape[-2] * fields.shape[-1])
        for context, targets in zip(cut.context.split(few), cut.targets.split(few), strict=True):
            squares += float(targets.double().square().sum())
            for name, each in tried.items():
                missed[name] += float((each(context) - targets).double().square().sum())
    errors = {name: math.sqrt(value / squares) if squares else 0.0 for name, value in missed.items()}
    told = {**decision.told, **({"on_others": errors} if all(map(math.isfinite, errors.values())) else {})}
    if errors["combined"] <= errors["network"]:
        return replace(decision, told=told)
    return replace(decision, combined=None, told={name: value for name, value in told.items() if name != "combined"})
