"""Adaptation to a few trajectories: one loop and one objective for every forecaster (S2.6, S3.3).

Windows of other systems may stand beside those of the support, so that a network does not forget what it was pretrained
on while it learns one trajectory by heart: rehearsal, after Robins, Connection Science 7 (1995). The paper has none.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from rdjepa.checks import BelowOne, Count, NotNegative, Number, Precision, Rate, Seed, check, of_class
from rdjepa.data.fields import channels_first
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError, DivergenceError, warn
from rdjepa.forecasters.base import ForecastModel, require_forecast
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.loss import forecast_loss, log_magnitude
from rdjepa.models.device import autocast, note_emulation
from rdjepa.models.replay import Replayed
from rdjepa.progress import Progress

CPU = torch.device("cpu")
LAST, AVERAGED = "last", "averaged"  # weights of an observed model

Observer = Callable[[int, str, ForecastModel], None]


@dataclass(frozen=True)
class AdaptConfig:
    """Optimization of adaptation; the defaults are the paper's (Table S5). Learning rates belong to the forecaster.

    Attributes:
        steps: number of parameter updates, of which there may be none; the weights after the last one are kept, without
            early stopping.
        batch: windows per update.
        weight_decay: of AdamW, on every trained parameter.
        betas: of AdamW.
        clip: global norm that gradients are clipped to.
        seed: of fresh weights and of the order of windows. What layers of one's own draw in training, as dropout does,
            is of torch's global generator.
        precision: "float32", or "bfloat16" for autocast, faster on processors that have it.
        averaging: coefficient of an exponential average of the weights, which is kept instead of the last weights: at
            constant rates the last ones are noisy. 0, as in the paper, keeps the last.

    Raises:
        ArgumentError: a value of another type or outside its range.
    """

    steps: Number = 5_000
    batch: Count = 4
    weight_decay: NotNegative = 1e-4
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.95)
    clip: Rate = 1.0
    seed: Seed = 777
    precision: Precision = "float32"
    averaging: BelowOne = 0.0

    def __post_init__(self) -> None:
        """Check the values."""
        check(self)


PROFILES = {
    "paper": AdaptConfig(),
    "small": AdaptConfig(),
    "nano": AdaptConfig(steps=2_000, averaging=0.99),
}


@dataclass(frozen=True)
class Windows:
    """All forecasting windows of a support set, and after them those that are rehearsed; standardized.

    Attributes:
        own: how many are of the support, the first ones.
        features: outputs of the forecaster's `features`, (n, ...) each, computed once.
        targets: (n, 5, C, H, W) future fields in standardized units.
        magnitudes: (n, 5, C, H, W // 2 + 1) logarithmic spectra of the targets, as the loss takes them.
    """

    own: int
    features: tuple[Tensor, ...]
    targets: Tensor
    magnitudes: Tensor


def tensors(trajectories: Iterable[np.ndarray], device: torch.device = CPU) -> list[Tensor]:
    """Return trajectories (T, H, W, C) as tensors (T, C, H, W)."""
    return [torch.from_numpy(channels_first(each)).to(device) for each in trajectories]


def standardized(
    trajectories: Iterable[np.ndarray], normalizer: Normalizer, device: torch.device = CPU
) -> list[Tensor]:
    """Return trajectories (T, H, W, C) in physical units as a network sees them, (T, C, H, W) each."""
    return tensors(map(normalizer.standardize, trajectories), device)


def fitted(
    model: ForecastModel,
    support: Sequence[np.ndarray],
    normalizer: Normalizer,
    device: torch.device = CPU,
    domain: Domain = PLAIN,
) -> ForecastModel:
    """Return a forecaster, on a device, fitted to a support as far as that takes no update.

    Args:
        model: the forecaster; one that learns by updates alone is returned as it is.
        support: trajectories (T, H, W, C), in physical units.
        normalizer: their field statistics.
        device: of the computation, and of the result.
        domain: how it ends, and how far points lie apart.

    Raises:
        ArgumentError: trajectories that are too short.
    """
    return model.fitted_to(standardized(support, normalizer, device), domain).to(device)


def windows(model: ForecastModel, support: Sequence[Tensor], rehearsed: Sequence[Tensor] = ()) -> Windows:
    """Cut every window out of trajectories (T, C, H, W) and compute the constant features of each.

    Args:
        model: the forecaster, on the device of the trajectories; it is in evaluation mode afterwards.
        support: trajectories of the support, standardized.
        rehearsed: those of other systems, standardized with their own statistics.
    """
    model.eval()  # a network as it is built may leave out features at random, and count in them
    features: list[tuple[Tensor, ...]] = []
    targets: list[Tensor] = []
    own = sum(FORECASTING.count(len(fields)) for fields in support)
    for fields in (*support, *rehearsed):
        window = FORECASTING.stack(fields)
        targets.append(window.targets)
        # Features do not depend on trained parameters, so one pass over the windows serves all updates.
        with torch.no_grad():
            features.extend(model.features(part) for part in window.context.split(8))
    future = torch.cat(targets)
    return Windows(own, tuple(torch.cat(parts) for parts in zip(*features, strict=True)), future, log_magnitude(future))


def extended(data: Windows, more: Windows) -> Windows:
    """Return windows with those of `more` behind the ones of the support, before the ones that are rehearsed."""

    def between(one: Tensor, other: Tensor) -> Tensor:
        return torch.cat([one[: data.own], other, one[data.own :]])

    features = tuple(map(between, data.features, more.features))
    return Windows(
        data.own + more.own, features, between(data.targets, more.targets), between(data.magnitudes, more.magnitudes)
    )


@dataclass(frozen=True)
class Withheld:
    """Windows of the support that the first updates do not see, so that they can tell how good others are forecast.

    Attributes:
        windows: their indices.
        updates: how many updates are made without them.
    """

    windows: np.ndarray
    updates: int


class WindowOrder:
    """The endless sequence of batches of window indices, the same for every forecaster.

    Each pass over all windows is shuffled anew; a batch may hold the end of one pass and the beginning of the next.

    Args:
        windows: their indices, or how many there are.
        batch: windows per update.
        rng: what shuffles them.
    """

    def __init__(self, windows: int | np.ndarray, batch: int, rng: np.random.Generator) -> None:
        self.windows, self.batch, self.rng = windows, batch, rng
        self.queue = np.empty(0, dtype=np.int64)

    def next(self) -> np.ndarray:
        """Return the indices (batch,) of the next batch."""
        while len(self.queue) < self.batch:
            self.queue = np.concatenate([self.queue, self.rng.permutation(self.windows)])
        drawn, self.queue = self.queue[: self.batch], self.queue[self.batch :]
        return drawn


@torch.no_grad()
def follow(average: Sequence[Tensor], weights: Sequence[Tensor], coefficient: float, step: int) -> None:
    """Update an exponential average of weights after a step; after the first one it is these weights.

    The coefficient grows from 2/11 to its value, so that the first weights, which are random, are soon forgotten.
    """
    kept = min(coefficient, step / (step + 9)) if step > 1 else 0.0
    torch._foreach_lerp_(list(average), list(weights), 1 - kept)


@torch.no_grad()
def exchange(weights: Sequence[Tensor], others: Sequence[Tensor]) -> None:
    """Exchange the values of two lists of weights in place."""
    for one, other in zip(weights, others, strict=True):
        kept = one.clone()
        one.copy_(other)
        other.copy_(kept)


def train(
    model: ForecastModel,
    data: Windows,
    config: AdaptConfig,
    progress: Progress | None = None,
    observe: Observer | None = None,
    at: Collection[int] = (),
    withheld: Withheld | None = None,
) -> list[float]:
    """Train a forecaster in place for `config.steps` updates.

    With averaging, the model has the averaged weights in the end, and its buffers of the last update: what layers count
    in training, as batch normalization does, is not averaged. Where windows are rehearsed, half of every batch are.

    Args:
        model: any forecaster, on the device of `data`.
        data: the windows of the support, and those to rehearse.
        config: optimization settings.
        progress: called after every update with its number, the total number and the loss as text.
        observe: called after the updates `at` with their number, "last" and the model; with averaging once more, with
            "averaged" and the model with the averaged weights.
        at: numbers of updates.
        withheld: windows that the first updates do not see; all of them are seen from the first one when None.

    Returns:
        The loss of every update; empty for a model without parameters, or without updates.

    Raises:
        ArgumentError: windows to rehearse and a batch of one.
        DivergenceError: the loss or a gradient is not finite; the weights are those before that update.
    """
    groups = of_class(model.parameter_groups(), list, f"what `parameter_groups` of {type(model).__name__} returns")
    if not groups or not config.steps:
        if config.steps and any(each.requires_grad for each in model.parameters()):
            warn(f"`parameter_groups` of {type(model).__name__} names none of its parameters, so nothing is trained")
        return []
    fused = not any(map(torch.is_complex, model.parameters()))  # the fused one takes no complex weights
    optimizer = torch.optim.AdamW(groups, betas=config.betas, weight_decay=config.weight_decay, fused=fused)
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    others = len(data.targets) - data.own
    if others and config.batch < 2:
        raise ArgumentError(f"expected a batch of two windows or more to rehearse in, got {config.batch}; raise it")
    rehearsed = config.batch // 2 if others else 0
    rng = np.random.default_rng(config.seed)
    known = np.delete(np.arange(data.own), withheld.windows) if withheld else data.own
    order = WindowOrder(known, config.batch - rehearsed, rng)
    beside = WindowOrder(others, rehearsed, np.random.default_rng((config.seed, 1)))
    losses: list[float] = []
    averaged = [each.detach().clone() for each in trained] if config.averaging else []
    device = data.targets.device
    note_emulation(config.precision, device)

    def loss_of(index: Tensor) -> tuple[Tensor]:
        with autocast(device, config.precision):  # the loss itself stays in float32
            prediction = model.predict(*(part[index] for part in data.features))
        require_forecast(prediction, data.targets[index].shape, model)
        return (forecast_loss(prediction, data.targets[index], data.magnitudes[index]),)

    passes = Replayed(loss_of, trained)
    model.train()
    for step in range(1, config.steps + 1):
        if withheld and step == withheld.updates + 1:
            order = WindowOrder(data.own, config.batch - rehearsed, rng)
        drawn = np.concatenate([order.next(), data.own + beside.next()])
        (loss,) = passes(torch.from_numpy(drawn).to(device))
        norm = nn.utils.clip_grad_norm_(trained, config.clip)
        value, size = torch.stack([loss, norm.to(loss)]).tolist()  # one transfer, before any weight changes
        if not math.isfinite(value) or not math.isfinite(size):
            raise DivergenceError(
                f"expected a finite loss and gradient, got {value} and {size} at update {step}; "
                "lower the learning rates"
            )
        optimizer.step()
        losses.append(value)
        if averaged:
            follow(averaged, trained, config.averaging, step)
        if observe and step in at:
            observe(step, LAST, model.eval())
            if averaged:
                exchange(trained, averaged)
                observe(step, AVERAGED, model)
                exchange(trained, averaged)
            model.train()
        if progress:
            progress(step, config.steps, f"loss {value:.4f}")
    if averaged:
        exchange(trained, averaged)
    model.eval()
    return losses
