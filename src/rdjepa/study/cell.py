"""One cell of a study: adapt a forecaster to a support set, evaluate it on the test trajectories (S3.1-S3.4)."""

import hashlib
import io
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from rdjepa import api, forecasters, systems
from rdjepa.adaptation import decision, retention
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.data import store
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import Note, StudyError
from rdjepa.evaluation.evaluate import Forecast, evaluate
from rdjepa.evaluation.metrics import METRICS
from rdjepa.evaluation.spectra import RadialSpectra
from rdjepa.forecasters import anchored, combined
from rdjepa.io import checkpoint, sealed
from rdjepa.io.provenance import fingerprint, software
from rdjepa.models.rdjepa import count_of, parameter_count
from rdjepa.study import changes, contenders, pretrainings, protocol
from rdjepa.study.directory import RECORD, VERSION
from rdjepa.study.fingerprints import checkpoint_fingerprint, code, identifier, recipe_fingerprint
from rdjepa.study.profiles import Profile
from rdjepa.study.record import CURVE, EXAMPLE, ROWS, SPECTRA

RULES: dict[str, dict] = {api.AUTO: combined.RULE, api.ANCHORED: {"anchored": anchored.RULE}}

Get = Callable[[Key], Trajectory]


@dataclass(frozen=True)
class Cell:
    """One adapted model of a study.

    Attributes:
        study: name of the study that it is recorded under.
        system: name of a system of that study.
        k: number K of support trajectories.
        support_seed: seed that selects the support set.
        forecaster: a name of `rdjepa.forecasters.names()`, or of a change in `rdjepa.study.changes.names()`.
    """

    study: str
    system: str
    k: int
    support_seed: int
    forecaster: str

    def __str__(self) -> str:
        """Return "study/system/K/support seed/forecaster"."""
        return f"{self.study}/{self.system}/K={self.k}/{self.support_seed}/{self.forecaster}"

    @property
    def trained(self) -> bool:
        """Whether the forecaster has parameters that adaptation trains."""
        return changes.baseline(self.forecaster).trained

    @property
    def change(self) -> str:
        """The forecaster or change, by which a condition of an ablation may name it."""
        return self.forecaster

    @property
    def group(self) -> str:
        """The group of its change, a key of `rdjepa.study.changes.GROUPS`."""
        return changes.group(self.forecaster)

    def pretraining(self, profile: Profile) -> pretrainings.Pretraining | None:
        """Return the pretraining that it starts from; None for one that starts from a checkpoint or from nothing."""
        return pretrainings.needed(self.forecaster, self.system, profile)

    def support(self) -> list[Key]:
        """Return the keys of the support trajectories: the first K of the pool's permutation under the support seed."""
        return protocol.support(self.system, self.k, self.support_seed)

    def test(self, count: int) -> list[Key]:
        """Return the keys of about `count` test trajectories, the same for all cells of a system.

        Every regime has an equal number, so that a mean over trajectories is one over regimes too.

        Raises:
            StudyError: the benchmark has fewer.
        """
        own, counts = systems.get(self.system).regimes, protocol.counts(self.system)
        regimes = [regime for split, regime in counts if split == "test" and regime in own]
        each = max(1, count // len(regimes))
        most = min(counts["test", regime] for regime in regimes)
        if each > most:
            raise StudyError(
                f"expected at most the {most * len(regimes)} test trajectories of {self.system}, got {count}; lower "
                "test of the profile"
            )
        return [Key(self.system, "test", regime, i) for regime in regimes for i in range(each)]


def identity(cell: Cell, profile: Profile) -> dict[str, Any]:
    """Return everything that decides the result of a cell, as JSON values.

    Raises:
        CheckpointError: the profile's checkpoint is missing (the sentence says what makes it), or of another size.
        StudyError: a change, and a profile without pretrainings.
    """
    preset, change = profile.preset_of(cell.forecaster), changes.find(cell.forecaster)
    found = changes.baseline(cell.forecaster)
    start = cell.pretraining(profile)
    kept = {"predictor": not change.fresh_predictor, "decoder": change.keep_decoder} if change else {}
    own = {"pretraining": start.identity(), **kept} if start and change else {}
    if found.retains:
        own["retained"] = retention.RULE if found.retains == api.AUTO else found.retains
    if found.augments:
        own["augmented"] = True
    if found.base != api.NONE:
        own["base"] = RULES.get(found.base, found.base)
    if found.base == api.AUTO:  # where the blend has all, which the data decide
        own["familiar"] = combined.POWER
    if found.base == api.AUTO and cell.k > 1:
        own["withheld"] = decision.RULE
    if constants := forecasters.model_class(found.name).constants:
        own["constants"] = dict(constants)
    if cell.system not in protocol.SYSTEMS and protocol.role(cell.system) != "held-out":
        own["role"] = protocol.role(cell.system)  # by which support and test trajectories are chosen
    if beside := contenders.rehearsal(cell.forecaster, profile):
        sources, keys = beside
        own["rehearsed"] = {
            "trajectories": [str(key) for key in keys],
            "data": {key.system: recipe_fingerprint(key.system) for key in keys},
            "statistics": identifier(sources.normalizers),
        }
    weights = checkpoint_fingerprint(profile, found.keeps_decoder) if found.pretrained and not change else ""
    return (
        code(found.path, partial(forecasters.model_class, found.name))
        | own
        | {
            "version": VERSION,
            "cell": asdict(cell),
            "profile": profile.name,
            "preset": preset,
            "settings": contenders.settings(cell.forecaster, preset),
            # through JSON, so that tuples are lists as in a record that was read back
            "adapt": sealed.plain(asdict(profile.adapt)) if cell.trained else {},
            "curve": [*profile.observed, profile.stride] if cell.trained else [],
            "grid": profile.grid,
            "test": profile.test,
            "statistics": profile.statistics,
            "checkpoint": weights,
            "data": recipe_fingerprint(cell.system),
        }
    )


def compute(
    cell: Cell,
    profile: Profile,
    get: Get,
    normalizer: Normalizer,
    device: torch.device,
    pretrained: Path | None = None,
) -> dict[str, bytes]:
    """Run one cell and return the contents of its files by name.

    Args:
        cell: the cell to run.
        profile: sizes and settings of the run.
        get: returns the trajectory of a key.
        normalizer: field statistics of the system, the same for all of its cells.
        device: device to compute on.
        pretrained: checkpoint of the cell's pretraining, where it has one.

    Raises:
        StudyError: no checkpoint for a cell that starts from a pretraining.
    """
    if pretrained is None and cell.pretraining(profile):
        raise StudyError(f"expected the checkpoint of {cell.pretraining(profile)} for {cell}, got none; pretrain first")
    watch, content = _Watch(), identity(cell, profile)
    seen: dict[str, str] = {}

    def read(keys: Iterable[Key]) -> list[Trajectory]:
        found = [get(key) for key in keys]
        seen.update({str(t.key): store.checksum(t.fields) for t in found})
        return found

    learned = read(cell.support())
    watch.lap("support")
    tests = cell.test(profile.test)
    curve: list[dict[str, Any]] = []
    forecast: Forecast
    if cell.trained:
        measured = _Curve(partial(map, get, tests), profile.stride)
        rehearsed = contenders.rehearsed(cell.forecaster, profile, lambda key: read([key])[0])
        adapted = _adapted(cell, profile, learned, rehearsed, normalizer, device, pretrained, measured)
        curve = measured.rows
        watch.lap("features")
        # `api.adapt` computes features, decision, updates and the curve in one call, and says what each took.
        watch.move("features", "curve", measured.seconds)
        watch.move("features", "decide", adapted.record["seconds"]["decide"])
        watch.move("features", "adapt", adapted.record["seconds"]["adapt"] - measured.seconds)
        forecast, made = adapted.forecast, _made(adapted)
    else:
        forecast, model = contenders.untrained(cell.forecaster, profile, normalizer, device, learned)
        made = {"parameters": parameter_count(model), "trained": 0, "settings": content["settings"]}
    spectra = RadialSpectra(normalizer.mean, normalizer.scale)
    rows = []
    for key in tests:  # one at a time, so that memory does not grow with their number
        trajectory = read([key])
        watch.lap("test")
        rows += evaluate(forecast, trajectory, metrics=tuple(METRICS), observe=spectra.add)
        watch.lap("evaluate")
    files = {
        ROWS: _parquet([vars(row) for row in rows]),
        CURVE: _parquet(curve),
        SPECTRA: _parquet([vars(row) for row in spectra.rows()]),
        EXAMPLE: _example(forecast, get(tests[0])),
    }
    record = {
        "id": identifier(content),
        "identity": content,
        **asdict(cell),
        "profile": profile.name,
        "updates": profile.adapt.steps if cell.trained else 0,
        "test": dict(Counter(key.regime for key in tests)),
        "support": [str(key) for key in cell.support()],
        "config": content["adapt"],
        "checkpoint": checkpoint.read_config(pretrained)[1].sha256 if pretrained else content["checkpoint"],
        "data": content["data"],
        "trajectories": fingerprint(seen),
        "normalizer": normalizer.to_dict(),
        **made,
        "software": software(device) | {"accelerator": str(device)},
        "threads": torch.get_num_threads(),
        "seconds": {name: round(value, 3) for name, value in watch.seconds.items()},
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return files | {RECORD: sealed.encode(record, indent=1).encode()}


def _adapted(
    cell: Cell,
    profile: Profile,
    learned: Sequence[Trajectory],
    rehearsed: Any,
    normalizer: Normalizer,
    device: torch.device,
    pretrained: Path | None,
    measured: "_Curve",
) -> Forecaster:
    """Return a cell's forecaster, adapted as its name says; `measured` sees it on the way."""
    found = changes.baseline(cell.forecaster)
    start = contenders.forecaster(cell.forecaster, profile, pretrained, cell.k)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "frame stride", Note)  # a study takes every frame
        return api.adapt(
            start,
            learned,
            steps=api.AUTO,
            config=profile.adapt,
            normalizer=normalizer,
            rehearse=rehearsed,
            base=found.base,
            retain=found.retains,
            augment=found.augments,
            device=device,
            observe=measured,
            at=profile.observed,
        )


def _made(adapted: Forecaster) -> dict[str, Any]:
    """Return counts, settings, updates and the first and last loss of an adapted model, for the record of its cell."""
    trained = count_of(each for group in adapted.model.parameter_groups() for each in group["params"])
    counts = {"parameters": parameter_count(adapted.model), "trained": trained, "made": len(adapted.losses)}
    losses = {"loss": [adapted.losses[0], adapted.losses[-1]]} if adapted.losses else {}
    decided = ("unadapted", "together", "retained", "combined", "withheld", "on_others")
    names = ("settings", *(decided if "unadapted" in adapted.record else ()))
    told = {name: adapted.record[name] for name in names if name in adapted.record}
    return counts | losses | told


def _example(forecast: Forecast, trajectory: Trajectory) -> bytes:
    """Return the middle window as npz: newest (H, W, C), reference and forecast (5, H, W, C), in physical units."""
    window = FORECASTING.middle(trajectory.fields)
    stream = io.BytesIO()
    predicted = np.asarray(forecast(window.context[None])[0], np.float32)
    np.savez_compressed(stream, newest=window.context[-1], reference=window.targets, forecast=predicted)
    return stream.getvalue()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    pd.DataFrame(rows).to_parquet(stream, index=False)
    return stream.getvalue()


class _Curve:
    """Errors on the way of an adaptation, as it calls it, and the seconds that measuring them took.

    Args:
        tests: returns the test trajectories, one at a time.
        stride: of their windows.
    """

    def __init__(self, tests: Callable[[], Iterable[Trajectory]], stride: int) -> None:
        self.tests, self.stride = tests, stride
        self.rows: list[dict[str, Any]] = []
        self.seconds = 0.0

    def __call__(self, updates: int, weights: str, snapshot: Forecaster) -> None:
        """Measure the forecaster as it is after so many updates."""
        started = time.perf_counter()
        for trajectory in self.tests():
            found = evaluate(snapshot.forecast, [trajectory], stride=self.stride)
            self.rows.extend({"updates": updates, "weights": weights} | vars(row) for row in found)
        self.seconds += time.perf_counter() - started


class _Watch:
    """Wall-clock seconds by part of a cell."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def move(self, part: str, other: str, seconds: float) -> None:
        """Move seconds from one part to another."""
        self.seconds[part] -= seconds
        self.seconds[other] = self.seconds.get(other, 0.0) + seconds

    def lap(self, part: str) -> None:
        """Add the seconds since the last lap to a part."""
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self.last
        self.last = now
