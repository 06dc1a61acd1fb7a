"""What a file says, without the entries that hold times: two runs agree when these agree."""

import hashlib
import json
from pathlib import Path
from typing import Any

# Times and speeds, and checksums of what holds them; everything else has to agree bit for bit.
# The "queue" of a diagnosed line measures the samples since the process began, and is no part of a state.
VOLATILE = frozenset(
    {
        "seconds",
        "created",
        "seconds_of_last_session",
        "steps_per_second",
        "data_wait",
        "queue",
        "sha256",
        "seal",
        "curves",
    }
)
UNCOMPARED = ("curves.png", "README.md")  # a figure of the speed, and a text with it


class HalfWrittenError(Exception):
    """A file that is not whole."""


def content(path: Path) -> str:
    """Return a hash of a file's content without volatile entries.

    Raises:
        HalfWrittenError: JSON that ends early, tensors that do not fit their header, an empty file.
    """
    data = path.read_bytes()
    if path.name in UNCOMPARED:
        return "" if data else _broken(path, "empty")
    try:
        if path.suffix == ".json":
            return _hash(_stable(json.loads(data)))
        if path.suffix == ".jsonl":
            return _hash([_stable(json.loads(line)) for line in data.splitlines()])
        if path.suffix == ".safetensors":
            return _tensors(data)
    except (ValueError, KeyError) as error:
        _broken(path, str(error))
    if not data:
        _broken(path, "empty")
    return hashlib.sha256(data).hexdigest()


def visible(folder: Path) -> dict[str, Path]:
    """Return the files below a folder that have their final names: relative path -> path; locks are no results."""
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path for name, path in found.items() if not is_temporary(name) and path.suffix != ".lock"}


def temporary(folder: Path) -> list[str]:
    """Return the files below a folder that have temporary names; locks stay."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if is_temporary(name) and not name.endswith(".lock"))


def is_temporary(name: str) -> bool:
    """Return whether a file is hidden, or lies in a hidden folder."""
    return any(part.startswith(".") for part in Path(name).parts)


def _tensors(data: bytes) -> str:
    """Return a hash of a safetensors file: its record without volatile entries, its header and its bytes."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    metadata = json.loads(header.pop("__metadata__", {}).get("rdjepa", "{}"))
    ends = [entry["data_offsets"][1] for entry in header.values()]
    if len(data) != 8 + size + max(ends, default=0):
        raise ValueError("the tensors end early")
    return _hash([_stable(metadata), header, hashlib.sha256(data[8 + size :]).hexdigest()])


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable(each) for key, each in value.items() if key not in VOLATILE}
    return [_stable(each) for each in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _broken(path: Path, why: str) -> str:
    raise HalfWrittenError(f"{path} ({why})")
