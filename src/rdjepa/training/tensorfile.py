"""Tensors on disk: one safetensors file with its own checksum, replaced atomically, refused when damaged."""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor


class CheckpointError(ValueError):
    """A checkpoint that is missing, damaged, or not of this package."""


def digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes, in the order of names."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file or nothing: temporary neighbour, flush to disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], record: Mapping) -> str:
    """Write tensors and a JSON record as one file, atomically.

    Returns:
        The digest, which is stored in the file too.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    checksum = digest(plain)
    metadata = {
        "rdjepa": json.dumps({"sha256": checksum, "record": dict(record)})
    }  # one key: equal states, equal bytes
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file(plain, temporary, metadata=metadata)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OSError(
            f"expected to write {path}, got {error.strerror or error}; free some space and run again"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return checksum


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Read what `save_tensors` wrote, whole or not at all.

    Returns:
        The tensors and the record, with the digest under "sha256".

    Raises:
        CheckpointError: the file is missing, foreign, truncated, or a byte has changed.
    """
    if not path.is_file():
        raise CheckpointError(f"expected a checkpoint file, got nothing at {path}; check the path")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"expected a whole safetensors file, got {path}: {error}; fetch it again") from error
    if "rdjepa" not in metadata:
        raise CheckpointError(f"expected a checkpoint written by rdjepa, got a foreign file at {path}; check the path")
    header = json.loads(metadata["rdjepa"])
    if digest(tensors) != header["sha256"]:
        raise CheckpointError(f"expected checksum {header['sha256'][:12]}, got another in {path}; fetch it again")
    return tensors, header["record"] | {"sha256": header["sha256"]}
