"""What a pretraining goes on from: a pretrained model, and what its checkpoint says of the run that made it."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdjepa.data.trajectory import Key
from rdjepa.errors import ArgumentError, CheckpointError, DataError, warn
from rdjepa.io import checkpoint
from rdjepa.io.checkpoint import CURVES, METRICS
from rdjepa.models.rdjepa import RDJEPA, ModelConfig, unlike
from rdjepa.pretraining import objectives


@dataclass(frozen=True)
class Start:
    """What a run goes on from, read before it begins, since the files may be others when it ends.

    Attributes:
        model: the pretrained model.
        record: of its pretraining, with its fingerprint.
        sources: its data.
        curves: content of the files of its curves, by the names that they have beside the new model.
    """

    model: RDJEPA
    record: dict[str, Any]
    sources: checkpoint.Sources
    curves: dict[str, bytes]

    @classmethod
    def read(cls, source: str | Path) -> "Start":
        """Read a checkpoint, given as to `load`.

        Raises:
            CheckpointError: damaged, or without data or the record of its run.
        """
        model, (place, written) = checkpoint.load(source), checkpoint.read_config(source)
        told, sources = written.pretraining, checkpoint.read_sources(source)
        missing = {"systems", "trajectories", "steps", "config"} - told.keys()
        if missing or written.sha256 != model.fingerprint:
            raise CheckpointError(
                f"expected the record of the pretraining of {model.fingerprint[:12]} in {place}, got one "
                f"{f'without {min(missing)}' if missing else f'of {written.sha256[:12]}'}; start from another model"
            )
        paths = {f"{checkpoint.START}-{name}": place / name for name in (METRICS, CURVES)}
        curves = {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
        return cls(model, {"fingerprint": written.sha256, **told}, sources, curves)

    def check_data(self, checksums: Mapping[str, str], recorded: Collection[str]) -> None:
        """Warn of trajectories of the same keys as those of its own pretraining and other content.

        The same recipe gives them on another processor, which rounds otherwise, where the dynamics are sensitive.
        Recordings have no recipe, so with them the name alone is the same.

        Args:
            checksums: key -> checksum of the trajectories that it goes on with.
            recorded: systems whose trajectories are recordings.

        Raises:
            DataError: other recordings of the same name.
        """
        known = self.sources.trajectories
        others = [key for key, value in checksums.items() if known.get(key, value) != value]
        named = {*recorded, *self.record.get("recorded", [])}
        if same := next((key for key in others if Key.parse(key).system in named), None):
            raise DataError(
                f"expected the recordings {Key.parse(same).system} that the model was started with, got others of this "
                f"name, {same} first; add them under another name"
            )
        if others:
            warn(
                f"expected the trajectories that the model was started with, got {len(others)} of {len(checksums)} of "
                f"the same key and other content, {others[0]} first (another processor rounds otherwise, or another "
                "recipe made them); the new model lists the checksums of the first run",
            )

    def told(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the record of a run that went on from here has instead, or beside."""
        before = self.record
        summary = before.get("summary", objectives.get(objectives.DEFAULT).summary)  # records of 0.1.0 have none
        both = [*before.get("nearest", {}).items(), *record.get("nearest", {}).items()]
        nearest = dict(sorted(both, key=lambda pair: -pair[1]["distance"]))  # of two for a system the smaller is last
        recorded = list(dict.fromkeys([*record.get("recorded", []), *before.get("recorded", [])]))
        return {
            "start": before,
            "summary": f"{summary}, then by {record['summary']}",
            "systems": list(dict.fromkeys([*record["systems"], *before["systems"]])),
            **({"nearest": nearest} if nearest else {}),
            **({"recorded": recorded} if recorded else {}),
        }

    def sources_with(self, later: checkpoint.Sources) -> checkpoint.Sources:
        """Return the data of both runs, with the field statistics that the encoder saw first."""
        first = self.sources
        systems = list(dict.fromkeys([*later.systems, *first.systems]))
        trajectories = later.trajectories | first.trajectories
        seen, every = (Counter(Key.parse(key).system for key in keys) for keys in (first.trajectories, trajectories))
        counts = {name: seen[name] for name in first.normalizers if seen[name] and seen[name] < every[name]}
        return checkpoint.Sources(later.normalizers | first.normalizers, trajectories, systems, counts | first.counts)


def check_start(start: RDJEPA | None, sizes: ModelConfig, objective: str) -> None:
    """Refuse a model that a run cannot go on from, or none where the objective needs one.

    Sizes of a decoder are compared only where it is pretrained; a fresh one has those of the run.

    Raises:
        ArgumentError: no start, one of other sizes, one that lacks a pretrained network or has none, or one with which
            nothing is done.
    """
    continues = objectives.get(objective).continues
    if start and not objectives.get(objective).trained:
        raise ArgumentError(
            f"expected no model to start the objective {objective} from, which trains nothing, got one; leave it out"
        )
    if start is None:
        if continues:
            raise ArgumentError(
                f"expected a pretrained model to start the objective {objective} from, got none; give one with --start"
            )
        return
    if not start.pretrained:
        raise ArgumentError(
            "expected a model with pretrained networks to start from, got one with random weights; leave it out"
        )
    if continues and not {"encoder", "predictor"} <= set(start.pretrained):
        raise ArgumentError(
            f"expected a model with pretrained encoder and predictor to start the objective {objective} from, got "
            f"{' and '.join(start.pretrained) or 'neither'}; give another model"
        )
    differing = unlike(sizes.to_dict(), start.config.to_dict())
    if "decoder" not in start.pretrained:
        differing = [name for name in differing if not name.startswith("decoder")]
    if differing:
        raise ArgumentError(
            f"expected a model to start from with the sizes and parts of the run, got another {', '.join(differing)}; "
            "give another model or another preset"
        )
