"""What an adaptation starts from: a model by name or as it is, and the trainable forecaster that is made of it."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

from rdjepa import forecasters
from rdjepa.adaptation.adapt import AdaptConfig
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.api.support import AUTO
from rdjepa.checks import among, of_class
from rdjepa.errors import ArgumentError, CheckpointError, such_as
from rdjepa.forecasters.around import Around
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.rd_jepa import EncoderTuned, RDJEPAForecaster
from rdjepa.io import checkpoint
from rdjepa.io.kinds import is_forecaster
from rdjepa.models.rdjepa import RDJEPA, with_fresh_decoder

_, FRESH, PRETRAINED = DECODERS = (AUTO, "fresh", "pretrained")
_, FROZEN, TUNED = ENCODERS = (AUTO, "frozen", "tuned")


def has_decoder(start: RDJEPA | ForecastModel) -> bool:
    """Return whether a model has a pretrained decoder that adaptation could go on with."""
    return isinstance(start, RDJEPA) and "decoder" in start.pretrained


def keeps_all(start: RDJEPA | ForecastModel, decoder: str) -> bool:
    """Return whether adaptation goes on with pretrained weights alone."""
    return "decoder" in start.pretrained if isinstance(start, ForecastModel) else decoder == PRETRAINED


def loaded(model: Any, seed: int | None = None) -> RDJEPA | ForecastModel:
    """Return a model as it is, or the one of a name or a directory.

    Args:
        model: it, the name or directory of a checkpoint, or the name of a forecaster that nothing was pretrained for,
            which is then built at the preset "nano".
        seed: of the weights of such a forecaster; that of an adaptation when None.

    Raises:
        ArgumentError: it is of another class, a forecaster, or stands around a network already.
        CheckpointError: a missing or damaged checkpoint, or the file of a forecaster.
    """
    if isinstance(model, Forecaster):
        raise ArgumentError(
            "expected a model to adapt, got a forecaster, which is adapted already; give the network inside, as "
            "forecaster.model, or forecaster.model.network where something stands around it"
        )
    of_class(model, str | Path | RDJEPA | ForecastModel, "a model")
    if isinstance(model, Around):  # what it holds was fitted to another support
        raise ArgumentError(
            "expected a network to adapt, got one with what an adaptation put around it (a combination, an anchor, a "
            "linear forecast or tiles); give the network inside, as forecaster.model.network"
        )
    plain = [name for name in forecasters.names() if not forecasters.get(name).pretrained]
    if isinstance(model, str) and model in plain:
        return forecasters.build(model, "nano", AdaptConfig().seed if seed is None else seed)
    unknown = isinstance(model, str) and model not in checkpoint.shipped() and not Path(model).exists()
    if unknown and (near := such_as(model, plain)):
        raise CheckpointError(
            f"expected a checkpoint, or a forecaster that nothing was pretrained for{near}, got {model!r}; "
            "check the name"
        )
    if isinstance(model, str | Path) and str(model) not in checkpoint.shipped() and is_forecaster(Path(model)):
        raise CheckpointError(
            f"expected a checkpoint, got the forecaster {str(model)!r}, which is adapted already; give the checkpoint "
            "that it began with, or in Python the network of what rdjepa.load_forecaster returns"
        )
    return checkpoint.load(model) if isinstance(model, str | Path) else model


def grid_of(start: RDJEPA | ForecastModel) -> int | None:
    """Return the points per side of the fields that a model takes; None where it takes any."""
    return start.config.grid if isinstance(start, RDJEPA) else start.grid


def require_parts(model: RDJEPA | ForecastModel, borders: str | None, decoder: str, encoder: str) -> None:
    """Refuse parts that a model cannot have.

    Raises:
        ArgumentError: unknown borders, an unknown encoder, a decoder that is unknown or not pretrained, or any of these
            three for a forecaster that is built already.
    """
    among(encoder, ENCODERS, "an encoder")
    among(decoder, DECODERS, "a decoder")
    if isinstance(model, RDJEPA):
        dataclasses.replace(model.config, borders=model.config.borders if borders is None else borders)
        if decoder == PRETRAINED and not has_decoder(model):
            raise ArgumentError(
                f"expected a model with a pretrained decoder, got one with {' and '.join(model.pretrained)}; give it "
                f"one with rdjepa pretrain --preset {model.name} --objective decoder --start and the model's "
                "directory, or leave the decoder fresh"
            )
        return
    if borders is not None:
        raise ArgumentError(
            f"expected borders with a pretrained model, got {borders!r} with the forecaster {model.name}, which is "
            "built already; build it from a ModelConfig with these borders"
        )
    for name, chosen, usual in (("decoder", decoder, FRESH), ("encoder", encoder, FROZEN)):
        if chosen not in (AUTO, usual):
            raise ArgumentError(
                f"expected a {chosen} {name} with a pretrained model, got it with the forecaster {model.name}, "
                "which is built already and trained as it is; leave it out"
            )


def forecaster_of(
    model: RDJEPA | ForecastModel,
    seed: int,
    borders: str | None = None,
    decoder: str = FRESH,
    encoder: str = FROZEN,
) -> tuple[ForecastModel, str]:
    """Return a trainable forecaster and the fingerprint of its pretrained weights, empty where there are none.

    Raises:
        ArgumentError: see `require_parts`.
    """
    require_parts(model, borders, decoder, encoder)
    if isinstance(model, ForecastModel):
        return copy.deepcopy(model), ""
    start = with_fresh_decoder(model, seed, borders)
    if decoder == PRETRAINED:
        start.decoder.load_state_dict(model.decoder.state_dict())
    return (EncoderTuned if encoder == TUNED else RDJEPAForecaster)(start), model.fingerprint
