"""The pretrainings on which cells of an ablation depend: each computed once, and resumed when it was stopped.

<root>/pretrainings/<id>/              a run directory of `rdjepa.pretrain`; finished from the moment it has record.json
<root>/pretrainings/datasets/          the trajectories that no given data set has
"""

import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from rdjepa import api
from rdjepa.data.trajectory import Key
from rdjepa.errors import StudyError
from rdjepa.io import checkpoint, sealed
from rdjepa.io.provenance import software
from rdjepa.models.predictor import BRANCHES, LAPLACIAN
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining import config as configs
from rdjepa.pretraining import objectives, parts
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.state import FREE
from rdjepa.study import changes
from rdjepa.study.directory import RECORD
from rdjepa.study.fingerprints import code, identifier, recipe_fingerprint
from rdjepa.study.profiles import Profile

# The objective of a decoder that is pretrained after encoder and predictor, in this share of their steps.
AFTER, DECODER_SHARE = "decoder", 0.3
VERSION = 1  # raised by whoever changes what a pretraining gives on purpose
MODEL = "model"
_REMEDY = "move the folder away to pretrain again"


@dataclass(frozen=True)
class Pretraining:
    """One pretraining of a study, by everything that decides its weights.

    Attributes:
        preset: sizes of the model.
        systems: name of each system that is seen, and how many of its pool trajectories; in the order of the run.
        config: optimization settings, those of the objective among them.
        without: parts of the method that are left out.
        validation: validation trajectories of each system, for the diagnostics alone.
        start: the pretraining that this one goes on from; None for one that begins with fresh weights.
    """

    preset: str
    systems: tuple[tuple[str, int], ...]
    config: PretrainConfig
    without: tuple[str, ...] = ()
    validation: int = 1
    start: "Pretraining | None" = None

    def __str__(self) -> str:
        """Return "pretraining/objective/systems and their trajectories/parts left out/seed"."""
        seen = "+".join(f"{name}:{count}" for name, count in self.systems)
        left_out = [f"without {','.join(self.without)}"] if self.without else []
        return "/".join(["pretraining", self.config.objective, seen, *left_out, str(self.config.seed)])

    @property
    def name(self) -> str:
        """The name of its folder, which follows from its identity."""
        return identifier(self.identity())

    def identity(self) -> dict[str, Any]:
        """Return settings, data and seed, as JSON values."""
        sizes, config = parts.without(self.without, PRESETS[self.preset], objectives.resolved(self.config))
        settings = {name: value for name, value in sealed.plain(asdict(config)).items() if name not in FREE}
        if settings["strides"] == [1]:  # so that pretrainings have the names they had before there was a choice
            del settings["strides"]
        objective = objectives.get(config.objective)
        return code(objective.path, partial(objectives.model_class, objective.name)) | {
            "version": VERSION,
            "preset": self.preset,
            "model": sealed.plain(sizes.to_dict()),
            "config": settings,
            "without": list(self.without),
            "systems": [list(each) for each in self.systems],
            "data": {name: recipe_fingerprint(name) for name, _ in self.systems},
            **({"start": self.start.identity()} if self.start else {}),
        }

    def stages(self) -> "list[Pretraining]":
        """Return the pretrainings that it goes on from, the first one first, and itself."""
        return [*(self.start.stages() if self.start else []), self]

    def reads(self) -> list[Key]:
        """Return the keys of the trajectories that it reads."""
        seen = [Key(name, "pool", "id", i) for name, count in self.systems for i in range(count)]
        return seen + [Key(name, "validation", "id", i) for name, _ in self.systems for i in range(self.validation)]

    def run(self, folder: Path, data: Path, device: torch.device) -> None:
        """Pretrain in a folder, from its newest state where there is one, and record that it is finished.

        What it goes on from lies in the folder beside it.

        Raises:
            DivergenceError, DataError: as `rdjepa.pretrain`.
            StudyError: what it goes on from is damaged.
        """
        started = time.perf_counter()
        model = api.pretrain(
            self.preset,
            data,
            folder,
            systems=[name for name, _ in self.systems],
            trajectories=dict(self.systems),
            without=self.without,
            start=None if self.start is None else weights(folder.parent / self.start.name),
            config=self.config,
            device=str(device),
            resume=True,
        )
        record = PretrainingRecord(
            id=self.name,
            identity=self.identity(),
            checkpoint=model.fingerprint,
            seconds=round(time.perf_counter() - started, 1),
            software=software(device) | {"accelerator": str(device)},
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        sealed.write(folder / RECORD, asdict(record))
        shutil.rmtree(folder / "state", ignore_errors=True)  # as large as the model several times over


@dataclass(frozen=True)
class PretrainingRecord:
    """Content of the record.json of a finished pretraining; `seconds` are those of its last session.

    `checkpoint` is the fingerprint of its weights.
    """

    id: str
    identity: dict[str, Any]
    checkpoint: str
    seconds: float
    software: dict[str, str]
    created: str


def read_record(folder: Path) -> PretrainingRecord:
    """Read the record of a finished pretraining, and check it against the name of its folder.

    Raises:
        StudyError: it is damaged or of another pretraining.
    """
    record = sealed.read(folder / RECORD, PretrainingRecord, _REMEDY, StudyError)
    if record.id != folder.name or identifier(record.identity) != record.id:
        raise StudyError(f"expected the pretraining {folder.name} in {folder}, got {record.id}; {_REMEDY}")
    return record


def weights(folder: Path) -> Path:
    """Return the checkpoint of a finished pretraining.

    Raises:
        StudyError: its record is damaged or of another pretraining, or its weights are others.
    """
    record, (_, written) = read_record(folder), checkpoint.read_config(folder / MODEL)
    if written.sha256 != record.checkpoint:
        raise StudyError(
            f"expected weights {record.checkpoint[:12]} in {folder / MODEL}, got {written.sha256[:12]}; {_REMEDY}"
        )
    return folder / MODEL


def needed(name: str, system: str, profile: Profile) -> Pretraining | None:
    """Return the pretraining that the adaptation of a change to a system starts from; None for a forecaster.

    A source that is adapted to is left out of the pretraining.

    Raises:
        StudyError: a profile without pretrainings.
    """
    change, sizes = changes.find(name), profile.pretraining
    if change is None:
        return None
    if sizes is None:
        raise StudyError(
            f"expected a profile with pretrainings for the change {change.name}, such as ablation, got "
            f"{profile.name}; name one with --profile"
        )
    count = max(1, round(change.share * sizes.trajectories))
    seen = [(name, count) for name in change.equations(system)] + [(name, sizes.family) for name in change.families]
    usual = configs.scaled(configs.PROFILES[profile.preset], sizes.steps)
    usual = replace(usual, precision=profile.adapt.precision)
    kind = objectives.model_class(change.objective).options
    config = replace(
        usual,
        seed=usual.seed + change.seed,
        objective=change.objective,
        options=None if kind is None else kind(**change.options),
        # as often as all sources together, as in the trial that made the family; it would be one system among them
        weights=tuple((name, len(change.equations(system))) for name in change.families if change.equations(system)),
    )
    made = Pretraining(profile.preset, tuple(seen), config, change.without, sizes.validation)
    kept = objectives.model_class(config.objective).kept(config.options)
    if not change.keep_decoder or "decoder" in kept:
        return made
    if not {"encoder", "predictor"} <= set(kept):
        raise StudyError(
            f"expected an objective that pretrains encoder and predictor where a decoder is kept, got "
            f"{config.objective} in the change {change.name}; give it a fresh decoder"
        )
    shorter = configs.scaled(usual, max(1, round(DECODER_SHARE * sizes.steps)))
    config = replace(shorter, seed=config.seed, objective=AFTER, weights=config.weights)
    lacking = tuple(name for name in change.without if name in (*BRANCHES, LAPLACIAN))  # it has no masks and targets
    return replace(made, config=config, without=lacking, start=made)


def distinct(found: Iterable[Pretraining | None]) -> list[Pretraining]:
    """Return the pretrainings among some and what they go on from, each once, in an order in which they can be made."""
    return list(dict.fromkeys(each for last in found if last is not None for each in last.stages()))
