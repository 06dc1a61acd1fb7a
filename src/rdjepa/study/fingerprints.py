"""What cells and pretrainings are identified by: fingerprints of checkpoints, of data and of a user's code."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from rdjepa import systems
from rdjepa.data.identity import digest, hashed
from rdjepa.errors import StudyError
from rdjepa.io import checkpoint
from rdjepa.io.provenance import source_of
from rdjepa.models.rdjepa import PRESETS, unlike
from rdjepa.study.profiles import Profile


def identifier(content: Mapping[str, Any]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of canonical JSON."""
    return hashed(content)[:16]


def but_precision(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a cell without the precision of its training.

    It changes errors by less than another seed does, and not every machine has all: cells that differ in nothing else
    are the same cell of a study, and stand beside those of another precision in its tables.
    """
    adapt = {name: value for name, value in content["adapt"].items() if name != "precision"}
    return {**content, "adapt": adapt}


def shared_identifier(content: Mapping[str, Any]) -> str:
    """Return the identifier that a cell has whatever the precision of its training."""
    return identifier(but_precision(content))


def checkpoint_fingerprint(profile: Profile, decoder: bool = False) -> str:
    """Return the SHA-256 of the weights that RD-JEPA starts from.

    Args:
        profile: names the checkpoint.
        decoder: whether its decoder is among them. Otherwise a checkpoint whose decoder alone was pretrained after the
            rest has the fingerprint of what it first went on from: the weights are the same.

    Raises:
        CheckpointError: there is no such checkpoint, it is of another size than the profile's, or it lacks a decoder
            that is needed.
    """
    try:
        _, record = checkpoint.read_config(profile.checkpoint)
    except checkpoint.CheckpointError as error:
        raise checkpoint.CheckpointError(
            f"{error}, or make it with: rdjepa pretrain --preset {profile.preset} --data datasets "
            f"--out runs/{profile.preset}, and give --model runs/{profile.preset}/model"
        ) from error
    if record.name != profile.preset:
        raise checkpoint.CheckpointError(
            f"expected a checkpoint of preset {profile.preset}, got one of {record.name!r} at {profile.checkpoint}; "
            "give another --model or another --profile"
        )
    # What a cell is named after are the sizes of the preset; another decoder would not be that of the controls.
    if differing := unlike(PRESETS[profile.preset].to_dict(), record.model):
        raise checkpoint.CheckpointError(
            f"expected a checkpoint with the sizes of preset {profile.preset}, got another {', '.join(differing)} at "
            f"{profile.checkpoint}; give another --model, or pretrain it again"
        )
    run = record.pretraining
    if decoder and "decoder" not in run.get("pretrained", ()):
        raise checkpoint.CheckpointError(
            f"expected a checkpoint with a pretrained decoder, got one without at {profile.checkpoint}; make it with: "
            f"rdjepa pretrain --preset {profile.preset} --objective decoder --start {profile.checkpoint}"
        )
    fingerprint = record.sha256
    while not decoder and run.get("objective") == "decoder":
        run = run["start"]
        fingerprint = run["fingerprint"]
    return fingerprint


@cache
def recipe_fingerprint(system: str) -> str:
    """Return the SHA-256 of everything that decides the trajectories of a system (data/identity.py)."""
    return digest(systems.get(system))


def code(path: str, find: Callable[[], type]) -> dict[str, str]:
    """Return the place of a user's class and the SHA-256 of its file; nothing for one of the package.

    The code of the package changes with its version, while a user edits the same file between two runs.

    Args:
        path: of the class, "module:Class".
        find: imports it.
    """
    return {} if path.startswith("rdjepa.") else {"class": path, "source": _source(find())}


def _source(kind: type) -> str:
    if source := source_of(kind):
        return source
    raise StudyError(
        f"expected a class that is in a file, got {kind.__module__}:{kind.__qualname__}, whose source cannot be read; "
        "move it into a module (a .py file) and import it"
    )
