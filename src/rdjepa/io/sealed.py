"""JSON on disk: written with a seal, read back as checked values.

Every JSON text that the package reads comes in through `decode`, which gives values of a stated type or one sentence.
An object that the package writes has a seal, the SHA-256 of all its other entries, so that a changed digit is noticed
as much as a lost half. Files of version 0.1.0 have none and are read by their types alone.
"""

import dataclasses
import functools
import hashlib
import json
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from rdjepa.errors import DataError, RdjepaError
from rdjepa.io.atomic import write_bytes

SEAL = "seal"
LARGEST = 2**30  # bytes; the manifest of a million trajectories takes a quarter of it

T = TypeVar("T")


def write(path: Path | str, content: Mapping[str, Any]) -> Path:
    """Write a sealed JSON object atomically and return its path.

    Raises:
        OutputError: the file cannot be written.
        ValueError: a number is not finite, which JSON cannot hold.
    """
    return write_bytes(path, encode(content, indent=1).encode())


def encode(content: Mapping[str, Any], indent: int | None = None) -> str:
    """Return an object as sealed JSON text."""
    values = plain(content)
    return json.dumps(values | {SEAL: seal(values)}, indent=indent)


def plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as it comes back from JSON: tuples as lists, keys as text."""
    import msgspec

    return msgspec.json.decode(json.dumps(content, allow_nan=False))


def seal(values: Any) -> str:
    """Return the SHA-256 of the canonical JSON of plain values."""
    import msgspec

    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()


def read(path: Path | str, kind: type[T], remedy: str, error: type[RdjepaError] = DataError) -> T:
    """Read a JSON file as values of a type.

    Args:
        path: the file.
        kind: a dataclass, a TypedDict, or a container of plain types; what it does not name is refused.
        remedy: end of the sentence that refuses the file: what to do.
        error: class of that error.

    Raises:
        RdjepaError: of the class `error`: no such file, too large, no JSON, changed since it was sealed, or of another
            type.
    """
    path = Path(path)
    if not path.is_file():
        raise error(f"expected JSON in {path}, got no file; {remedy}")
    size = path.stat().st_size
    if size > LARGEST:
        raise error(f"expected at most {LARGEST} bytes of JSON in {path}, got {size}; {remedy}")
    try:
        content = path.read_bytes()
    except OSError as reason:
        raise error(f"expected JSON in {path}, got a file that cannot be read ({reason.strerror}); {remedy}") from None
    return decode(content, kind, f"in {path}", remedy, error)


def decode(
    content: bytes | str,
    kind: type[T],
    where: str,
    remedy: str,
    error: type[RdjepaError] = DataError,
    *,
    unsealed: bool = True,
) -> T:
    """Return JSON text as values of a type.

    Args:
        content: the text.
        kind: as for `read`.
        where: completes the sentence "expected ... <where>".
        remedy: as for `read`.
        error: as for `read`.
        unsealed: accept an object that has no seal.

    Raises:
        RdjepaError: as for `read`.
    """
    import msgspec

    try:
        values = msgspec.json.decode(content)
        sealed = isinstance(values, dict) and SEAL in values
        if not sealed and not unsealed:
            raise error(f"expected a sealed record {where}, got one without its seal; {remedy}")
        if sealed and values.pop(SEAL) != seal(values):
            raise error(f"expected values that match their seal {where}, got changed or damaged ones; {remedy}")
        checked = msgspec.convert(values, kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as reason:
        text = " ".join(str(reason).replace("`", "").split()).rstrip(".")
        raise error(f"expected a readable record {where}, got a damaged or foreign one ({text}); {remedy}") from None
    names = _names(typing.cast(typing.Hashable, kind))
    unknown = sorted(values.keys() - set(names)) if isinstance(values, dict) and names else []
    if unknown:
        raise error(f"expected the entries {', '.join(names)} {where}, got {unknown[0]!r} too; {remedy}")
    return checked


@functools.cache
def _names(kind: typing.Hashable) -> tuple[str, ...]:
    """Return the entries that a type names; none for a container."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(typing.cast(Any, kind)))
    return tuple(typing.get_type_hints(kind)) if typing.is_typeddict(kind) else ()
