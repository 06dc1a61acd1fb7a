"""What a cell adapts: a forecaster by its name, or RD-JEPA after a change (`rdjepa.study.changes`)."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rdjepa import forecasters
from rdjepa.adaptation import retention
from rdjepa.adaptation.adapt import fitted
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.api import AUTO, rehearsing
from rdjepa.api.support import domain_of
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import StudyError
from rdjepa.evaluation.evaluate import Forecast
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.rd_jepa import EncoderTuned, LearningRates, RDJEPAForecaster
from rdjepa.forecasters.scratch import Scratch
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import PRESETS, RDJEPA, ModelConfig, build, with_fresh_decoder
from rdjepa.pretraining import config, parts
from rdjepa.study import changes
from rdjepa.study.changes import Change
from rdjepa.study.profiles import Profile


@cache
def settings(name: str, preset: str) -> dict[str, Any]:
    """Return sizes and learning rates of a forecaster, or of RD-JEPA after a change, at a preset."""
    change = changes.find(name)
    if change is None:
        with torch.device("meta"):  # sizes without weights
            return forecasters.model_class(name).from_preset(preset).settings()
    sizes, _ = parts.without(change.without, PRESETS[preset], config.PROFILES["nano"])
    return RDJEPAForecaster(_without_weights(sizes), rates(change, preset)).settings()


@cache
def _without_weights(sizes: ModelConfig) -> RDJEPA:
    """Return a model that has sizes alone, made once: most changes have the same."""
    with torch.device("meta"):
        return RDJEPA(sizes)


def rates(change: Change, preset: str) -> LearningRates:
    """Return the learning rates with which RD-JEPA is adapted after a change."""
    known = Scratch.rates_of if change.rates == "scratch" else RDJEPAForecaster.rates_of
    base = known.get(preset, known["paper"])
    predictor = change.predictor * base.predictor
    return LearningRates(change.encoder * predictor, predictor, change.decoder * base.decoder)


def forecaster(name: str, profile: Profile, pretrained: Path | None = None, k: int = 1) -> ForecastModel:
    """Return a trainable forecaster; RD-JEPA has the encoder and predictor of its pretraining (S2.6).

    Args:
        name: of a forecaster or of a change.
        profile: sizes, checkpoint and seed.
        pretrained: checkpoint of the pretraining that a change asks for; without one the weights of a change are fresh,
            which is enough to time it.
        k: number of support trajectories, with several of which the encoder is tuned where `rdjepa.adapt` decides.
    """
    change, seed = changes.find(name), profile.adapt.seed
    if change is None and not forecasters.get(name).pretrained:
        return forecasters.build(name, profile.preset_of(name), seed=seed)
    if change is None:
        found = forecasters.get(name)
        kind: Callable[[RDJEPA], ForecastModel] = forecasters.model_class(decided(name, k))
        loaded = checkpoint.load(profile.checkpoint)
        model = kind(loaded if found.keeps_decoder else with_fresh_decoder(loaded, seed))
    else:
        loaded = build(profile.preset, seed) if pretrained is None else checkpoint.load(pretrained)
        start = loaded if change.keep_decoder else with_fresh_decoder(loaded, seed)
        if change.fresh_predictor:
            start.predictor = build(start.config, seed).predictor
        model = RDJEPAForecaster(start, rates(change, profile.preset))
    model.name = name
    return model


def decided(name: str, k: int) -> str:
    """Return the name of the forecaster that this one is with k trajectories, where that decides; else its own."""
    several = changes.baseline(name).retains == AUTO and k >= retention.SEVERAL
    return EncoderTuned.name if several else name


def rehearsal(name: str, profile: Profile) -> tuple[checkpoint.Sources, list[Key]] | None:
    """Return the data of the profile's checkpoint, and the keys of what a forecaster rehearses of it; None if nothing.

    Raises:
        CheckpointError: there is no such checkpoint, or it does not name its data.
        StudyError: it was pretrained on recordings.
    """
    if not changes.baseline(name).rehearses:
        return None
    sources = checkpoint.read_sources(profile.checkpoint)
    if recorded := checkpoint.read_config(profile.checkpoint)[1].pretraining.get("recorded"):
        raise StudyError(
            f"expected a checkpoint whose data can be simulated again, to be rehearsed, got one that was pretrained on "
            f"the recordings {', '.join(recorded)}; give another one, or leave {name} out"
        )
    keys = rehearsing.rehearsed_keys(sources, rehearsing.REHEARSED)
    return (sources, keys) if keys else None


def rehearsed_keys(name: str, profile: Profile) -> list[Key]:
    """Return the keys of what a forecaster rehearses; errors as of `rehearsal`."""
    found = rehearsal(name, profile)
    return found[1] if found else []


def rehearsed(name: str, profile: Profile, get: Callable[[Key], Trajectory]) -> list[np.ndarray]:
    """Return the standardized trajectories (T, H, W, 2) of these keys."""
    found = rehearsal(name, profile)
    return rehearsing.standardized(*found, get) if found else []


def untrained(
    name: str, profile: Profile, normalizer: Normalizer, device: torch.device, support: Sequence[Trajectory] = ()
) -> tuple[Forecast, ForecastModel]:
    """Return the forecast function, in physical units, of a forecaster that is not trained, and the forecaster.

    Some are fitted to the support; without any they are as they were built, which is enough to time them.
    """
    model = forecaster(name, profile)
    if support:
        model = fitted(model, [each.fields for each in support], normalizer, device, domain_of(support))
    return model.in_physical_units() or Forecaster(model.to(device), normalizer).forecast, model
