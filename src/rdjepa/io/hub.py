"""Checkpoints on the Hugging Face hub: the same files as in a local directory.

huggingface_hub's PyTorchModelHubMixin is not used, since it writes other files: the whole network in float32 with the
untrained decoder, a configuration of its own, and neither the checksum, the list of the data nor the curves.
"""

import re
from pathlib import Path

from rdjepa.checks import require_packages
from rdjepa.errors import CheckpointError, first_line

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(?:@[\w-][\w.-]*)?")
NEEDED = ("model.safetensors", "config.json", "data.json", "README.md")
FILES = ("model.safetensors", "config.json", "data.json", "*metrics.jsonl", "probes.json", "*.md", "*.png")


def is_hub_id(source: str) -> bool:
    """Return whether a text has the form "owner/name", or "owner/name@revision"."""
    return HUB_ID.fullmatch(source) is not None


def fetch(repository: str) -> Path:
    """Download a checkpoint, or find it in the local cache, and return its directory.

    Args:
        repository: "owner/name", of which the newest is taken, or "owner/name@revision" with a branch, tag or commit.

    Raises:
        CheckpointError: huggingface_hub is not installed, or the hub does not have it or cannot be reached.
    """
    purpose = f"to fetch {repository!r}, which is no local directory"
    require_packages(purpose, "hub", "huggingface_hub", error=CheckpointError)
    import huggingface_hub  # an extra

    name, _, revision = repository.partition("@")
    try:
        return Path(huggingface_hub.snapshot_download(name, revision=revision or None, allow_patterns=list(FILES)))
    except Exception as error:  # its errors of a connection have another base with every major version
        raise CheckpointError(
            f"expected a directory or a checkpoint of the hub, got {repository!r} ({first_line(error)}); "
            "check name, revision and connection"
        ) from error


def push(directory: Path | str, repository: str, private: bool = False) -> str:
    """Upload a checkpoint directory as it is, and return its address.

    Args:
        directory: with weights, configuration and card, as `rdjepa.pretrain` writes it.
        repository: "owner/name"; created if it does not exist. The hub's own login is used.
        private: whether a new repository is private.

    Raises:
        CheckpointError: huggingface_hub is not installed, the directory lacks a file, or the hub does not take it.
    """
    folder = Path(directory)
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(f"expected a whole checkpoint in {folder}, got no {', '.join(missing)}; save it again")
    require_packages(f"to push {folder}", "hub", "huggingface_hub", error=CheckpointError)
    import huggingface_hub  # an extra

    try:
        huggingface_hub.create_repo(repository, private=private, exist_ok=True)
        return str(huggingface_hub.upload_folder(repo_id=repository, folder_path=folder, allow_patterns=list(FILES)))
    except Exception as error:  # its errors of a connection have another base with every major version
        raise CheckpointError(
            f"expected the hub to take {folder} as {repository!r}, got {first_line(error)}; check name, login and "
            "connection"
        ) from error
