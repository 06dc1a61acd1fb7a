"""Tensors on disk: one safetensors file with a record, both under checksums, written atomically, refused if damaged."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from rdjepa.checks import usable_path
from rdjepa.errors import CheckpointError
from rdjepa.io import sealed
from rdjepa.io.atomic import replacing


@dataclass(frozen=True)
class _Header:
    """What a file says of itself: digest of the tensors, and the record."""

    sha256: str
    record: dict[str, Any]


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 over names, dtypes, shapes and bytes, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def save_tensors(path: Path, tensors: Mapping[str, Tensor], record: Mapping) -> str:
    """Write tensors and a JSON record as one file, atomically.

    Returns:
        The digest, which is stored in the file too.
    """
    plain: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        place = own.untyped_storage().data_ptr()
        plain[name] = own.clone() if place in places else own  # tied weights, which safetensors refuses
        places.add(place)
    checksum = digest(plain)
    # A single key: the order in which safetensors writes several ones varies, and equal states give equal files.
    metadata = {"rdjepa": sealed.encode({"sha256": checksum, "record": dict(record)})}
    with replacing(path) as temporary:
        _save_file(plain, temporary, metadata)
    return checksum


def read_record(path: Path, remedy: str = "fetch it again") -> dict:
    """Read the record of a file that `save_tensors` wrote, without its tensors; the digest is under "sha256".

    Args:
        path: the file.
        remedy: end of the sentence that refuses a file that is no whole safetensors file: what to do.

    Raises:
        CheckpointError: the file is missing, foreign or truncated.
    """
    if not usable_path(path, "a checkpoint file").is_file():
        got = "the directory" if path.is_dir() else "nothing at"
        raise CheckpointError(f"expected a checkpoint file, got {got} {path}; check the path")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except (safetensors.SafetensorError, OSError, ValueError, MemoryError) as error:
        raise CheckpointError(f"expected a whole safetensors file, got {path} ({_reason(error)}); {remedy}") from error
    if "rdjepa" not in metadata:
        raise CheckpointError(f"expected a checkpoint written by rdjepa, got a foreign file at {path}; check the path")
    header = sealed.decode(metadata["rdjepa"], _Header, f"in {path}", remedy, CheckpointError)
    return header.record | {"sha256": header.sha256}


def load_tensors(path: Path, remedy: str = "fetch it again") -> tuple[dict[str, Tensor], dict]:
    """Read what `save_tensors` wrote, whole or not at all.

    Args:
        path: the file.
        remedy: as for `read_record`.

    Returns:
        The tensors and the record, with the digest under "sha256".

    Raises:
        CheckpointError: the file is missing, foreign, truncated, or a byte has changed.
    """
    record = read_record(path, remedy)
    try:
        tensors = load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"expected a whole safetensors file, got {path} ({_reason(error)}); {remedy}") from error
    if digest(tensors) != record["sha256"]:
        raise CheckpointError(f"expected checksum {record['sha256'][:12]}, got another in {path}; {remedy}")
    return tensors, record


def _save_file(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str]) -> None:
    """Write safetensors; turn its library's own error on a full or limited disk into the OSError of that number."""
    try:
        save_file(dict(tensors), path, metadata=dict(metadata))
    except safetensors.SafetensorError as error:
        number = _system_error(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number)) from error


def _system_error(error: Exception) -> int | None:
    """Return the number of the system's error that the library reports as text; None where it is another error."""
    found = re.search(r"os error (\d+)", str(error))
    return int(found[1]) if found else None


def _reason(error: Exception) -> str:
    """Return what is wrong with a file, in words."""
    number = _system_error(error)
    return str(error) if number is None else os.strerror(number).lower()
