"""The public function of adaptation, and what it makes of the model that it is given."""

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rdjepa.adaptation import combination, intervals, retention
from rdjepa.adaptation.adapt import (
    AVERAGED,
    LAST,
    PROFILES,
    AdaptConfig,
    extended,
    standardized,
    tensors,
    train,
    windows,
)
from rdjepa.adaptation.augmentation import ALL, images, number_of_images
from rdjepa.adaptation.decision import Decision, blending, decide, withhold
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.adaptation.saving import why_unsavable
from rdjepa.api.learner import Learner
from rdjepa.api.start import (
    FRESH,
    FROZEN,
    PRETRAINED,
    TUNED,
    forecaster_of,
    grid_of,
    has_decoder,
    keeps_all,
    loaded,
    require_parts,
)
from rdjepa.api.support import AUTO, read_support, rehearsed_fields
from rdjepa.checks import BelowOne, among, checked, of_class
from rdjepa.data.borders import PERIODIC, WALLS
from rdjepa.data.readers import Reading
from rdjepa.data.statistics import Normalizer
from rdjepa.errors import ArgumentError, Note, warn
from rdjepa.forecasters.anchored import missed_by_continuations
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.equation import Equation, Remembering
from rdjepa.forecasters.simple import Simple
from rdjepa.io.provenance import software
from rdjepa.models.device import device_named, in_float32
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.progress import Progress

_, NONE, ANCHORED, LINEAR = BASES = (AUTO, "none", "anchored", "linear")
STAGES = ("features", "decide", "adapt", "settle")  # what takes time, in order


@in_float32
@torch.enable_grad()
def adapt(
    model: RDJEPA | ForecastModel | str | Path,
    trajectories: Any,
    *,
    steps: int | str | None = None,
    seed: int | None = None,
    config: AdaptConfig | None = None,
    normalizer: Normalizer | None = None,
    base: str = AUTO,
    resample: bool = False,
    tile: bool = False,
    reading: Reading | None = None,
    stride: int | str = 1,
    calibrate: Any = None,
    hold_out: float | None = None,
    borders: str | None = None,
    encoder: str = AUTO,
    decoder: str = AUTO,
    rehearse: Sequence[np.ndarray] | Callable[[], Sequence[np.ndarray]] = (),
    retain: float | str = AUTO,
    augment: bool | str = AUTO,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
    observe: Callable[[int, str, Forecaster], None] | None = None,
    at: Collection[int] = (),
) -> Forecaster:
    """Adapt a pretrained model to one or a few trajectories of a system (S2.6), or train a control on them.

    Args:
        model: a pretrained RD-JEPA or its name or directory; its predictor is trained further, its encoder and decoder
            as these two say. Or a forecaster from `rdjepa.forecasters.build`, trained as it is, or the name of one that
            nothing was pretrained for ("equation", "linear", "fno", ...), at the preset "nano". The argument itself is
            not changed.
        trajectories: `Trajectory` objects, (T, H, W, 2) or (K, T, H, W, 2) arrays, objects of xarray, or a path of any
            known format, or a list of these.
        steps: updates; those of `config` when None. 0 with a pretrained decoder is a zero-shot forecaster: of the
            trajectories it has the field statistics alone. "auto", as when both are None: those of the preset, or of
            `config` where there is one, or fewer where `retain` says so.
        seed: of the fresh weights and of the order of windows; that of `config` when None. Dropout in a network of
            one's own draws from torch's global generator.
        config: all optimization settings; those of the preset when None.
        normalizer: field statistics; taken from the trajectories themselves when None.
        base: what the network's forecast is combined with.
            "none": nothing, as in the paper.
            "anchored": with what continues its context; in all five frames the network's forecast is corrected by what
            it misses of that in the first (`rdjepa.forecasters.anchored`).
            "linear": the network corrects a linear forecast of every point from its last four values, fitted to the
            trajectories; for fields that change slowly.
            "auto": if all weights were pretrained, there is some update, and nothing is rehearsed, its forecast is
            combined with an equation and an autoregression that are fitted to each context, and from two trajectories
            on with that linear forecast (`rdjepa.adaptation.combination`). Where the error without any update is large,
            and of tiled fields, it is blended with the equation alone. With `calibrate` or `hold_out` the network alone
            is kept if it has less error on those trajectories (`record["on_others"]`); of several trajectories without
            these the last one says so, where nothing is retained: the first fifth of the updates, `record["withheld"]`,
            do not see it. `record["combined"]` has the largest share that the network may have, by horizon and
            component.
        resample: bring fields on another grid to the model's (`rdjepa.data.regrid`), instead of refusing them; the
            forecaster then takes and makes fields on its own grid.
        tile: instead, of square fields on a larger grid, adapt to overlapping squares of the model's size; the
            forecaster takes and makes whole fields (`rdjepa.forecasters.tiled`).
        reading: what the data do not say themselves: their place in a file, order of axes, components, frame interval.
        stride: take every so many frames, counted back from the last; "auto" takes the one that `inspect` suggests. It
            is kept in the record, where `evaluate` finds it, and so are chosen components; contexts of
            `Forecaster.forecast` need both.
        calibrate: other trajectories of the same kind, as `trajectories`, from which `Forecaster.interval` learns how
            wrong forecasts are (`rdjepa.adaptation.intervals`), and which decide on the combination, see `base`.
        hold_out: instead of these, the share of the trajectories that is kept from adaptation for that purpose: of
            several the last ones, of a single one its last frames.
        borders: what decoder and predictor see beyond the borders of the fields: "zeros" as in pretraining,
            "periodic", or "walls" (`rdjepa.models.borders`); those of the pretrained model when None. The last two also
            say how the domain ends where `reading` does not, which the equation of each context goes by.
        encoder: "frozen", as in the paper; "tuned" with the predictor's learning rate, for which an update takes a
            fifth longer and more memory; "auto": tuned with five trajectories or more where all weights were
            pretrained, the base is not linear, and no others are rehearsed.
        decoder: what a pretrained model's decoder starts from: "fresh" weights, as in the paper, or its "pretrained"
            ones, which `rdjepa.pretrain` gives it with the objective "decoder" or a decoder that is kept; "auto": the
            latter where it has them, and the base is not linear.
        rehearse: trajectories (T, H, W, 2) of other systems, standardized, as `rehearsal` returns them: half of the
            windows of every update are of these, so that the model does not forget what it was pretrained on. Or a
            function that returns them, which is called once the trajectories have been read.
        retain: share of the weights before adaptation, below 1, that is mixed into those after it, where all were
            pretrained: between them a network knows one trajectory and others too (`rdjepa.adaptation.retention`).
            "auto": half of them, after 100 updates where `steps` is "auto", if the error on the trajectories, fewer
            than five, is small without any update, of the network or of its combination; nothing otherwise, with fresh
            weights or a linear base, or where others are rehearsed.
            The record holds these errors, in standardized units, as "unadapted" and "together".
        augment: learn the turned and mirrored images of the trajectories too, eight of square fields of square cells:
            for systems that are the same in all directions (`rdjepa.adaptation.augmentation`). "auto": of fewer than
            five trajectories, as many as keep to a thousand windows. False, as in the paper, learns none. The record
            has their number as "augmented", the trajectory itself among them, 0 where there are none.
        device: "auto", "cpu", "cuda", or a device of torch.
        progress: called after every update with its number, the number of updates and the loss as a short text; once
            with 0 where errors before any update are measured.
        observe: called after the updates `at` with their number, "last" and the forecaster as it is then; where
            weights are averaged once more, with "averaged". It is valid during the call alone, and does not know yet
            what trajectories to calibrate on will decide.
        at: numbers of updates; of those beyond the last update nothing is observed.

    Returns:
        A forecaster in physical units. Its record holds the settings, and under "seconds" what computing the constant
        features took, what the error without an update and the shares took, the updates, and the choice on others.

    Raises:
        ArgumentError: no update of anything but a model with its pretrained decoder, an unknown base, a linear base and
            others to rehearse, both `resample` and `tile`, both `calibrate` and `hold_out`, unknown borders, an unknown
            encoder, a decoder that is unknown or not pretrained, or any of these three for a forecaster from
            `rdjepa.forecasters.build`, which has its own; a share to retain of fresh weights, or outside its range; a
            normalizer with a standard deviation of 0; torch.inference_mode.
        DataError: trajectories that cannot be used (the message says why).
        CheckpointError: a missing or damaged checkpoint.
        DivergenceError: the loss is not finite.
    """
    rehearses = callable(rehearse) or len(of_class(rehearse, Sequence | np.ndarray, "trajectories to rehearse")) > 0
    _require_arguments(config, normalizer, reading, base, retain, augment)
    _require_calls(progress, observe, at)
    _require_one_of_two(
        {
            "trajectories to calibrate on or a share to hold out": (calibrate is not None, hold_out is not None),
            "fields to be resampled or tiled": (resample, tile),
            "a linear base or others to rehearse": (base == LINEAR, rehearses),
        }
    )

    start = loaded(model, config.seed if config and seed is None else seed)
    torch_device = device_named(device)
    if decoder == AUTO:
        decoder = PRETRAINED if has_decoder(start) and base != LINEAR else FRESH
    continues = keeps_all(start, decoder) and base != LINEAR
    shortens = steps == AUTO or (steps is None and config is None)
    asked = {"steps": None if shortens else steps, "seed": seed}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    settings = dataclasses.replace(config or PROFILES.get(start.preset, AdaptConfig()), **given)
    if not continues:
        _require_training(start, settings, retain)
    passive = isinstance(start, Simple)
    idle = {"augment": augment not in (False, AUTO), "rehearse": rehearses, "retain": retain not in (0, AUTO)}
    idle["steps"] = passive and steps not in (None, AUTO, 0)
    if (passive or not settings.steps) and any(idle.values()):
        named = " and ".join(name for name, given in idle.items() if given)
        warn(f"no update is made{f' of {start.name}' if passive else ''}, so nothing comes of {named}", Note)
    if passive and base not in (AUTO, NONE):
        raise ArgumentError(
            f"expected a network where a base is asked for, got {base!r} with {start.name}, which forecasts by itself; "
            "leave the base out"
        )
    require_parts(start, borders, decoder, encoder)
    if isinstance(start, ForecastModel) and (refusal := why_unsavable(start)):
        warn(refusal)
    if config is None and steps in (None, AUTO):
        _say_settings(start)

    side, reading = grid_of(start), reading or Reading()
    if reading.boundary is None and borders in (PERIODIC, WALLS):
        reading = dataclasses.replace(reading, boundary=borders)
    support = read_support(
        trajectories,
        side,
        resample=resample,
        tile=tile,
        reading=reading,
        stride=stride,
        calibrate=calibrate,
        hold_out=hold_out,
    )
    if support.others:
        intervals.warn_of_stillness(support.fields, support.others)
    if encoder == AUTO:
        several = len(support.fields) >= retention.SEVERAL and settings.steps and isinstance(start, RDJEPA)
        encoder = TUNED if several and continues and not rehearses else FROZEN

    network, fingerprint = forecaster_of(start, settings.seed, borders, decoder, encoder)
    statistics = normalizer or Normalizer.fit(support.fields, "support")
    pieces = [standardized(own, statistics, torch_device) for own in support.pieces(side)]
    learned = [each for own in pieces for each in own]
    fitted = network.fitted_to(learned, support.domain)
    fitted = of_class(fitted, ForecastModel, f"what `fitted_to` of {type(network).__name__} returns").to(torch_device)
    if base == LINEAR:
        fitted = combination.correcting(fitted, learned)
    others = rehearsed_fields(
        rehearse() if callable(rehearse) else rehearse, (learned[0].shape[-2], learned[0].shape[-1])
    )

    times = [time.perf_counter()]
    data = windows(fitted, learned, tensors(others, torch_device))
    taught = data
    count = number_of_images(len(support.fields), data.own) if augment == AUTO else ALL if augment else 1
    if count > 1 and settings.steps and fitted.parameter_groups():
        turned = [image for own in learned for image in images(own, support.domain)[1:count]]
        taught = extended(data, windows(fitted, turned))
    times.append(time.perf_counter())

    decision = Decision(settings.steps, 0.0 if retain == AUTO else float(retain))
    learner = Learner(fitted, support, statistics, data, decision)
    if continues and settings.steps and not rehearses and AUTO in (base, retain):  # the network as it is tells how
        if progress:
            progress(0, settings.steps, "measuring errors before any update")
        decision = decide(
            fitted,
            data,
            learned,
            settings.steps,
            trajectories=len(support.fields),
            combines=base == AUTO and not tile,
            retains=retain == AUTO,
            shortens=shortens,
            domain=support.domain,
        )
        learner.decision = decision if retain == AUTO else dataclasses.replace(decision, share=float(retain))
        if base == AUTO and tile:  # whole fields have an equation; their squares do not tell in which shares
            equation = Equation.fit(learner.standard(support.fields), support.domain)
            learner.decision = blending(learner.decision, learner.whole, equation)
    elif continues and base == AUTO:
        why = "others are rehearsed" if rehearses else "no update is made"
        warn(f"the network forecasts alone, since {why}; nothing stands beside it", Note)
    if base == ANCHORED:
        missed = missed_by_continuations(learner.standard(support.fields), support.domain.walls)
        learner.decision = dataclasses.replace(learner.decision, missed=missed, walls=support.domain.walls)
    times.append(time.perf_counter())

    settings, share = dataclasses.replace(settings, steps=learner.decision.steps), learner.decision.share
    first = retention.weights(fitted) if share else {}
    if (observe or support.others) and learner.decision.combined:  # some contexts are forecast more than once
        learner.memory = Remembering.of(learner.decision.combined.equation)
    withheld = None if support.others else withhold(learner.decision, pieces, taught.own // data.own)
    in_the_end = AVERAGED if settings.averaging else LAST

    def observed(updates: int, weights: str, model: ForecastModel) -> None:
        if observe and updates in at:
            with retention.retaining(model, first, share):
                observe(updates, weights, learner.forecaster(remembering=True))
        if withheld and (updates, weights) == (withheld.updates, in_the_end):
            if progress:
                progress(updates, settings.steps, "trying the network on the last trajectory")
            learner.choose_by_last(updates)

    watched = {*at, withheld.updates} if withheld else at
    losses = train(fitted, taught, settings, progress, observed, watched, withheld)
    retention.retain(fitted, first, share)
    times.append(time.perf_counter())
    if support.others and learner.decision.combined:
        learner.choose_by_others()
    times.append(time.perf_counter())

    result = learner.forecaster()
    result.losses = losses
    result.record = {
        "forecaster": fitted.name,
        "preset": fitted.preset,
        "fingerprint": fingerprint,
        **({"encoder": encoder, "decoder": decoder} if isinstance(start, RDJEPA) else {}),
        "settings": fitted.settings(),
        "config": dataclasses.asdict(settings),
        **support.record(),
        "rehearsed": len(others),
        "retained": share,
        "augmented": taught.own // data.own if taught is not data else 0,
        **learner.decision.told,
        "seconds": dict(zip(STAGES, np.diff(times).round(3).tolist(), strict=True)),
        "software": software(torch_device),
    }
    if support.others:
        forecast = learner.forecaster(remembering=True).forecast
        result.calibration = intervals.calibrate(forecast, statistics, support.others)
    result.familiar = learner.familiar()
    return result


def _say_settings(start: RDJEPA | ForecastModel) -> None:
    """Note whose settings are taken where the preset has none; without networks to train none are."""
    if start.preset in PROFILES or (isinstance(start, ForecastModel) and not start.parameter_groups()):
        return
    warn(
        f"sizes of the preset {start.preset!r} have no settings of their own, so the paper's are taken: up to "
        f"{AdaptConfig().steps:,} updates, weights that are not averaged; those of nano are "
        'rdjepa.adaptation.adapt.PROFILES["nano"] (config=)',
        Note,
    )


def _require_arguments(
    config: Any, normalizer: Any, reading: Any, base: str, retain: float | str, augment: bool | str
) -> None:
    """Refuse arguments that no adaptation could be made with, before anything is read.

    Raises:
        ArgumentError: one of another class or outside its range, or torch.inference_mode.
    """
    if torch.is_inference_mode_enabled():
        raise ArgumentError("expected gradients to adapt with, got torch.inference_mode; call adapt outside of it")
    among(base, BASES, "a base")
    if not isinstance(augment, bool | np.bool_) and augment != AUTO:
        raise ArgumentError(f'expected augment to be True, False or "auto", got {augment!r}; give one of these')
    of_class(config, AdaptConfig | None, "config")
    of_class(normalizer, Normalizer | None, "normalizer")
    of_class(reading, Reading | None, "reading")
    if normalizer and not min(normalizer.std, default=0):
        raise ArgumentError(
            f"expected a normalizer with standard deviations above 0, got {normalizer.std}; take that of the "
            "trajectories, by leaving it out"
        )
    if retain != AUTO:
        checked(retain, BelowOne, "retain")


def _require_calls(progress: Any, observe: Any, at: Any) -> None:
    """Refuse what cannot be called during adaptation, or after no number of updates.

    Raises:
        ArgumentError: one of these.
    """
    for name, given in (("progress", progress), ("observe", observe)):
        if given is not None and not callable(given):
            raise ArgumentError(f"expected {name} to be a function or None, got {given!r}; give one")
    checked(list(of_class(at, Collection, "at")), list[int], "at")


def _require_one_of_two(pairs: dict[str, tuple[bool, bool]]) -> None:
    """Refuse two arguments that exclude each other; of each pair, by its name, whether either is there.

    Raises:
        ArgumentError: both are.
    """
    for what, there in pairs.items():
        if all(there):
            raise ArgumentError(f"expected {what}, got both; leave one out")


def _require_training(start: RDJEPA | ForecastModel, settings: AdaptConfig, retain: float | str) -> None:
    """Refuse what only weights that were all pretrained allow, for others.

    Raises:
        ArgumentError: a share to retain, or no update of what has parameters to be trained.
    """
    if retain not in (0, AUTO):
        raise ArgumentError(
            "expected weights that were all pretrained where a share is retained, got a fresh decoder or a base; take "
            'the pretrained decoder (--decoder pretrained, decoder="pretrained") and no base, or retain nothing'
        )
    if not settings.steps and (isinstance(start, RDJEPA) or start.parameter_groups()):
        raise ArgumentError(
            "expected at least one update of a fresh decoder, a base or a forecaster without pretraining, got 0; raise "
            'the updates, or take a pretrained decoder (--decoder pretrained, decoder="pretrained") and no base'
        )
