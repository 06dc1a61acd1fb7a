"""Pretrained models as directories: weights, configuration, manifest of the data, curves and a model card.

    model.safetensors   encoder, predictor and now and then a decoder, half precision, with their own checksum
    config.json         sizes, pretraining settings and the run's versions
    data.json           field statistics, and key and checksum of every trajectory that pretraining used
    metrics.jsonl       the run's curves, drawn in curves.png
    start-metrics.jsonl those of the run that it went on from, if there is one, whose record config.json has too
    README.md           the model card

A checkpoint is addressed by the name of a shipped one, by the path of a directory, or by a hub id "owner/name"; all
have the same files, and none is a pickle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rdjepa.checks import usable_path
from rdjepa.errors import ArgumentError, CheckpointError
from rdjepa.io import sealed
from rdjepa.io.atomic import write_bytes
from rdjepa.io.hub import fetch, is_hub_id
from rdjepa.io.tensors import digest, load_tensors, save_tensors
from rdjepa.models.device import in_float32
from rdjepa.models.rdjepa import PRESETS, RDJEPA, ModelConfig
from rdjepa.models.seeds import seeded

WEIGHTS, CONFIG, DATA = "model.safetensors", "config.json", "data.json"
METRICS, CURVES = "metrics.jsonl", "curves.png"
START = "start"  # what a run went on from: its record in that of the run, and the beginning of its files' names
_REMEDY = "fetch the whole directory again, or pretrain again (a run of your own with --resume)"
FORMAT, VERSION = "rdjepa-model", 1
DEFAULT = "nano-wide"  # where none is named: lower than nano on random equations that neither has seen


@dataclass(frozen=True)
class Record:
    """Content of config.json.

    Attributes:
        format, version: of the file.
        name: preset or name of the model.
        sha256: fingerprint of the weights.
        model: sizes, as `ModelConfig.to_dict` returns them.
        pretraining: record of the run.
    """

    format: str
    version: int
    name: str
    sha256: str
    model: dict[str, Any]
    pretraining: dict[str, Any]


@dataclass(frozen=True)
class Sources:
    """Content of data.json: what a model was pretrained on.

    Attributes:
        normalizers: field statistics by system, or by key in a family, where every trajectory is another equation.
        trajectories: key -> checksum of every trajectory.
        systems: their names, in the order of the run; earlier versions wrote none.
        counts: number of trajectories behind the field statistics of a system, where that is not all of those listed.
    """

    normalizers: dict[str, Any]
    trajectories: dict[str, str]
    systems: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the names from the statistics where there are none."""
        object.__setattr__(self, "systems", self.systems or list(self.normalizers))


def shipped() -> dict[str, Path]:
    """List the checkpoints that come with the package, and those of the folder `checkpoints` of a checkout.

    Returns:
        name -> directory.
    """
    package = Path(str(resources.files("rdjepa")))
    roots = (package / "checkpoints", package.parents[1] / "checkpoints")
    return {path.parent.name: path.parent for root in roots for path in sorted(root.glob(f"*/{CONFIG}"))}


def locate(source: str | Path) -> Path:
    """Return the directory of a checkpoint: by shipped name, which is a text, else by path, else by hub id.

    Raises:
        CheckpointError: there is no such checkpoint; the message lists the known ones, or how to get it.
    """
    path = usable_path(source, "a checkpoint")
    name = str(source)
    names = shipped() if isinstance(source, str) else {}  # Path("./nano") is a directory, though its text is a name
    directory = names.get(name, path)
    if (directory / CONFIG).is_file():
        return directory
    if isinstance(source, str) and name in PRESETS:
        raise CheckpointError(
            f"expected the checkpoint {name} in the folder checkpoints of a checkout of the repository, got none; "
            f"run from a checkout that has it, or make one with: rdjepa pretrain --preset {name}"
        )
    if is_hub_id(name) and not directory.exists():
        return fetch(name)
    if (directory / "model" / CONFIG).is_file():
        raise CheckpointError(f"expected a checkpoint, got the run {name} of a pretraining; name {directory / 'model'}")
    known = ", ".join(shipped()) or "none"
    raise CheckpointError(
        f"expected a shipped checkpoint ({known}) or a directory with {CONFIG}, got {source!r}; check the name"
    )


def save(model: RDJEPA, directory: Path, pretraining: dict, card: str) -> str:
    """Write a pretrained model; without the decoder unless that is pretrained, since adaptation starts a fresh one.

    Args:
        model: a pretrained model.
        directory: where to write; existing files of the same names are replaced.
        pretraining: record of the pretraining run, as JSON values; "pretrained" names the networks.
        card: Markdown text of the model card.

    Returns:
        The fingerprint of the weights.
    """
    tensors = _halves(model, _stored(_pretrained(pretraining)))
    fingerprint = save_tensors(directory / WEIGHTS, tensors, {"kind": "model"})
    record = Record(FORMAT, VERSION, model.name, fingerprint, model.config.to_dict(), pretraining)
    sealed.write(directory / CONFIG, asdict(record))
    write_bytes(directory / "README.md", card.encode())
    return fingerprint


def untouched(model: RDJEPA) -> bool:
    """Return whether the pretrained networks still have exactly the weights that the fingerprint is of."""
    halves, whole = _halves(model, _stored(model.pretrained)), model.state_dict()
    exact = all(torch.equal(half.to(whole[name]), whole[name]) for name, half in halves.items())
    return exact and digest(halves) == model.fingerprint


def read_config(source: str | Path) -> tuple[Path, Record]:
    """Return directory and configuration of a checkpoint, given by shipped name, path or hub id.

    Raises:
        CheckpointError: there is no such checkpoint, or its configuration is not one of this package.
    """
    directory = locate(source)
    record = sealed.read(directory / CONFIG, Record, _REMEDY, CheckpointError)
    if (record.format, record.version) != (FORMAT, VERSION):
        raise CheckpointError(
            f"expected a {CONFIG} of a model of this package, {FORMAT} {VERSION}, got {record.format} {record.version} "
            f"in {directory}; {_REMEDY}"
        )
    return directory, record


def read_sources(source: str | Path) -> Sources:
    """Return what a checkpoint says of the data that it was pretrained on.

    Raises:
        CheckpointError: there is no such checkpoint, or it does not name its data.
    """
    path = locate(source) / DATA
    if not path.is_file():
        raise CheckpointError(f"expected the list of its data in {path}, got no file; pretrain it again")
    return sealed.read(path, Sources, _REMEDY, CheckpointError)


@in_float32
def load(source: str | Path) -> RDJEPA:
    """Load a pretrained model: encoder and predictor as saved, decoder with fresh weights unless there is a saved one.

    Fresh weights are the same every time; torch's global random state is as before.

    Args:
        source: name of a shipped checkpoint, a directory, or a hub id "owner/name".

    Raises:
        CheckpointError: missing, damaged or foreign; nothing is ever loaded in part.
    """
    directory, record = read_config(source)
    tensors, header = load_tensors(directory / WEIGHTS)
    if header["sha256"] != record.sha256:
        raise CheckpointError(
            f"expected weights {record.sha256[:12]}, got {header['sha256'][:12]} in {directory}; {_REMEDY}"
        )
    try:
        with seeded(0):
            model = RDJEPA(ModelConfig.from_dict(record.model), record.name)
    except ArgumentError as error:
        raise CheckpointError(f"{error}; the checkpoint is {directory}") from error
    pretrained = _pretrained(record.pretraining)
    stored = sorted({name.split(".")[0] for name in tensors})
    if stored != sorted(_stored(pretrained)):
        raise CheckpointError(
            f"expected the weights of {', '.join(_stored(pretrained))} in {directory}, got those of "
            f"{', '.join(stored) or 'nothing'}; {_REMEDY}"
        )
    for part in stored:
        state = {k.removeprefix(f"{part}."): v.float() for k, v in tensors.items() if k.startswith(f"{part}.")}
        try:
            getattr(model, part).load_state_dict(state)
        except RuntimeError as error:
            raise CheckpointError(f"expected the weights of its configuration, got others in {directory}") from error
    model.fingerprint = header["sha256"]
    model.pretrained = pretrained
    return model


def _halves(model: RDJEPA, parts: Iterable[str]) -> dict[str, Tensor]:
    """Return the weights of some networks as they are stored."""
    states = {part: getattr(model, part).state_dict() for part in parts}
    return {f"{part}.{name}": value.half() for part, state in states.items() for name, value in state.items()}


def _pretrained(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the networks that a run pretrained; early records name none."""
    return tuple(record.get("pretrained", ("encoder", "predictor")))


def _stored(pretrained: Iterable[str]) -> tuple[str, ...]:
    """Return the networks whose weights are in a checkpoint: a decoder only where it was pretrained."""
    return ("encoder", "predictor", *(["decoder"] if "decoder" in pretrained else []))
