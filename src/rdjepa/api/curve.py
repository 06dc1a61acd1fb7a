"""The public function of the learning curve: errors against the number of support trajectories."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch

from rdjepa.adaptation.adapt import PROFILES, AdaptConfig, fitted
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.api.adapting import BASES, adapt
from rdjepa.api.start import grid_of, loaded
from rdjepa.api.support import AUTO, checked_fields, read_at_stride, said_domain_of
from rdjepa.checks import Count, Few, Seed, among, checked, of_class
from rdjepa.data.borders import PERIODIC, WALLS
from rdjepa.data.readers import Reading
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.well import checksum
from rdjepa.errors import Note
from rdjepa.evaluation import curve_file
from rdjepa.evaluation.evaluate import Forecast, warn_of_vanishing
from rdjepa.evaluation.learning_curve import LearningCurve
from rdjepa.evaluation.leaving_out import Fit, measure, spans
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import RULES
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.forecasters.scratch import Scratch
from rdjepa.io import checkpoint, sealed
from rdjepa.io.provenance import source_of
from rdjepa.models.device import device_named, in_float32
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.models.seeds import seeded
from rdjepa.progress import Progress
from rdjepa.version import __version__

CURVE_UPDATES, CURVE_DRAWS = 40, 2  # of a learning curve: eight minutes on two cores


@in_float32
def learning_curve(
    trajectories: Any,
    *,
    model: RDJEPA | ForecastModel | str | Path = checkpoint.DEFAULT,
    steps: int = CURVE_UPDATES,
    draws: int = CURVE_DRAWS,
    seed: int = 777,
    base: str = AUTO,
    resample: bool = False,
    reading: Reading | None = None,
    stride: int | str = 1,
    device: str | torch.device = "auto",
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> LearningCurve:
    """Measure the error against the number K of support trajectories, by leaving others out: is K enough?

    Beside the adapted model stand the same architecture from random weights, where there is a pretrained one, a linear
    forecast of every point from its last four values (`rdjepa.forecasters.linear`), the equation of each context
    (`rdjepa.forecasters.equation`) and its autoregression (`rdjepa.forecasters.autoregression`), persistence and linear
    extrapolation. A single trajectory is cut into spans of time, which stand for trajectories;
    spans of one recording are more alike.

    Args:
        trajectories: as for `adapt`; at least two, or one of 18 frames.
        model: as for `adapt`.
        steps: updates of every adaptation; the same for every K.
        draws: of what is left out and of the order of the others; one has no bars.
        seed: of the draws, of fresh weights and of the order of windows.
        base: as for `adapt`, for the model and its control.
        resample: as for `adapt`.
        reading: as for `adapt`.
        stride: as for `adapt`.
        device: as for `adapt`.
        out: CSV file of the rows, written after every fit; rows in it that were measured with the same data, model and
            settings are not measured again, and others stay in it. Those of a forecaster whose class was typed at a
            prompt or in a notebook always are: whether its code is the same cannot be told.
        force: let `out` replace a file of another kind.
        progress: called after every fit with its number, the number of fits and a line on it.

    Raises:
        ArgumentError, DataError, CheckpointError, DivergenceError: as for `adapt`; too few trajectories, or a damaged
            file `out`.
        OutputError: `out` is a file of another kind, or cannot be written.
    """
    torch_device = device_named(device)
    steps, draws, seed = checked(steps, Count, "steps"), checked(draws, Few, "draws"), checked(seed, Seed, "seed")
    among(base, BASES, "a base")
    start = loaded(model)
    of_class(out, str | Path | None, "out")
    before = [] if out is None else curve_file.begin(out, force)
    grid = grid_of(start)
    given, read = read_at_stride(trajectories, grid, resample, reading, stride)
    checked_fields(given, grid)
    warn_of_vanishing(given)
    single = len(given) == 1
    parts = spans(given[0]) if single else given
    settings = {"steps": steps, "seed": seed, "base": base}
    settings |= dict.fromkeys(("encoder", "decoder", "retain", "augment"), AUTO)
    subject = start.name if isinstance(start, ForecastModel) else RDJEPAForecaster.name
    models = {subject: start}
    origin: dict[str, Any] = {subject: _weights(start)}
    if isinstance(start, RDJEPA):
        origin["scratch"] = [start.name, start.config.to_dict()]
        with seeded(seed):
            models["scratch"] = Scratch(RDJEPA(start.config, start.name))
    domain = said_domain_of(given, read.boundary)  # a span of few frames tells less of it
    settled = {**settings, "reading": Reading(boundary=WALLS if domain.walls else PERIODIC), "device": torch_device}
    fits: dict[str, Fit] = {name: partial(_adapted, each, settled) for name, each in models.items()}
    for kind in (each for each in (Linear, Autoregression, Equation) if each.name != subject):
        fits[kind.name] = partial(_simple, kind(parts[0].fields.shape[-1]), domain, torch_device)
    sums = [checksum(part.fields) for part in parts]

    def identity(name: str, support: Sequence[int], left_out: Sequence[int]) -> str:
        data = {"left out": [sums[i] for i in left_out], "support": [sums[i] for i in support], **domain.settings()}
        of: dict[str, Any] = data | {"version": __version__}
        trained = settings | {"origin": origin[name]} if name in origin else {}
        return sealed.seal(of | trained)[:16]

    rows = measure(
        parts,
        fits,
        RULES,
        number=draws,
        seed=seed,
        known=before,
        identity=identity,
        progress=progress,
        keep=None if out is None else lambda rows: curve_file.write(list(dict.fromkeys([*rows, *before])), out),
    )
    full = PROFILES.get(start.preset, AdaptConfig()).steps
    trained = isinstance(start, RDJEPA) or start.parameter_groups()
    notes = [f"{steps} updates for every K; adapt takes up to {full} by default"] if trained and steps != full else []
    if single:
        notes.append(f"one trajectory is cut into {len(parts)} spans of time, more alike than trajectories are")
    return LearningCurve(tuple(rows), subject, len(parts), single, tuple(notes), bool(trained))


def _adapted(model: RDJEPA | ForecastModel, settings: Mapping[str, Any], support: Sequence[Trajectory]) -> Forecast:
    """Return the forecast of a model adapted to a support, without what was said when the data were read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        return adapt(model, support, **settings).forecast


def _simple(model: ForecastModel, domain: Domain, device: torch.device, support: Sequence[Trajectory]) -> Forecast:
    """Return the forecast of what is fitted to a support, or needs its field statistics alone."""
    fields = [each.fields for each in support]
    normalizer = Normalizer.fit(fields, "support")
    return Forecaster(fitted(model, fields, normalizer, device, domain), normalizer).forecast


def _weights(model: RDJEPA | ForecastModel) -> str:
    """Return a fingerprint of what decides how a model learns: its weights, sizes and preset, of a forecaster its code
    and rates too.
    """
    if isinstance(model, RDJEPA) and checkpoint.untouched(model):
        found: dict[str, Any] = {"weights": model.fingerprint}
    else:
        found = {name: sha256(x.cpu().numpy()).hexdigest() for name, x in model.state_dict().items()}
    found["preset"] = model.preset
    if isinstance(model, RDJEPA):
        found["config"] = model.config.to_dict()
    if isinstance(model, ForecastModel):
        kind = type(model)
        found["source"] = source_of(kind) or uuid4().hex  # code that cannot be read is another every time
        groups = [{key: str(x) for key, x in each.items() if key != "params"} for each in model.parameter_groups()]
        found |= {"class": kind.__qualname__, "settings": model.settings(), "groups": groups}
        found["constants"] = {key: str(x) for key, x in model.constants.items()}
    return sealed.seal(found)
