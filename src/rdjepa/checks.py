"""Settings checked against the types and ranges that their classes declare.

A class of settings annotates its fields with the types below and calls `check(self)` when it is made, so that a wrong
value is refused with one sentence where it is given, and not hours later where it is used.
"""

import dataclasses
import math
import os
import re
from collections.abc import Collection
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_type_hints

import msgspec

from rdjepa.errors import ArgumentError, RdjepaError, such_as

LONGEST_NAME, LONGEST_PATH = 255, 4_000  # bytes; what Linux, macOS and Windows take
Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]  # NumPy's generators take no other seeds
Index = Annotated[int, msgspec.Meta(ge=0, le=2**53)]  # of a trajectory; every reader of JSON keeps it whole
Few = Annotated[int, msgspec.Meta(ge=1, le=100_000)]  # of trajectories that are held in memory
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Size = Annotated[int, msgspec.Meta(ge=1, le=2**16)]
Rate = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
BelowOne = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Precision = Annotated[str, msgspec.Meta(pattern="^(float32|bfloat16)$")]

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "array": "several values",
    "null": "None",
    "|": "or",
    ">=": "of at least",
    ">": "above",
    "<=": "of at most",
    "<": "below",
}


def require_packages(
    purpose: str, extra: str, *names: str, instead: str = "", error: type[RdjepaError] = ArgumentError
) -> None:
    """Refuse to go on without packages that an extra of this one installs.

    Args:
        purpose: what they are needed for, after "expected the packages".
        extra: its name.
        names: as they are imported.
        instead: what to do other than to install them.
        error: class of what is raised.
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise error(
            f"expected the packages {purpose}, got no {', '.join(missing)}; install them with: "
            f"pip install 'rdjepa[{extra}]'{instead and f', or {instead}'}"
        )


def check(settings: Any) -> None:
    """Check every field of a dataclass, and keep it as `checked` returns it, so that it can be written to a file.

    Raises:
        ArgumentError: a value is of another type, outside its range, or not finite.
    """
    for name, kind in _hints(settings.__class__).items():
        object.__setattr__(settings, name, checked(getattr(settings, name), kind, name))


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields, found once: it takes longer than checking them."""
    return get_type_hints(kind, include_extras=True)


def checked(value: Any, kind: Any, name: str) -> Any:
    """Return one value as a type: numbers of NumPy as those of Python, whole numbers as floats where one is expected.

    Raises:
        ArgumentError: it is of another type, outside its range, or not finite.
    """
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return of_class(value, kind, name)
    try:
        found = msgspec.convert(_plain(value), kind)
    except msgspec.ValidationError as error:
        wanted = str(error).replace("`", "").split(", got ")[0].split(" - at ")[0].removeprefix("Expected ")
        wanted = " ".join(_WORDS.get(word, word) for word in wanted.split())
        raise ArgumentError(f"expected {name} to be {wanted}, got {_shown(value)}; correct it") from None
    if any(isinstance(each, float) and not math.isfinite(each) for each in _flat(found)):
        raise ArgumentError(f"expected {name} to be finite, got {_shown(value)}; correct it")
    return found


def require_component(component: Any, count: int) -> None:
    """Refuse what is no number of a component of fields that have so many.

    Raises:
        ArgumentError: they have none of this number.
    """
    if checked(component, Number, "component") >= count:
        raise ArgumentError(f"expected a component from 0 to {count - 1}, got {component}; name one of them")


def among(value: Any, known: Collection[str], name: str) -> Any:
    """Return a value that is one of those known.

    Raises:
        ArgumentError: it is none of them; they are listed.
    """
    if value not in known:
        near = such_as(value, known)
        raise ArgumentError(f"expected {name} among {', '.join(known)}, got {value!r}; name one of them{near}")
    return value


def of_class(value: Any, kinds: type | UnionType, name: str) -> Any:
    """Return a value that is an instance of a class, or of one of several.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(value, kinds):
        wanted = getattr(kinds, "__name__", re.sub(r"(\w+\.)+", "", str(kinds)).replace(" | ", " or "))
        raise ArgumentError(f"expected {name} to be a {wanted}, got {_shown(value)}; give one")
    return value


def usable_path(given: str | Path, name: str) -> Path:
    """Return a path that the system can look up.

    Raises:
        ArgumentError: it is none, has a null character, or is longer than file systems allow.
    """
    path = Path(of_class(given, str | Path, name))
    try:
        parts = [len(os.fsencode(part)) for part in path.parts]
    except UnicodeEncodeError:
        parts = [LONGEST_PATH]
    if "\0" in str(path):
        raise ArgumentError(f"expected {name} without null characters, got {str(path)[:60]!r}; correct the path")
    if max(parts, default=0) > LONGEST_NAME or sum(parts) + len(parts) > LONGEST_PATH:
        raise ArgumentError(
            f"expected {name} with names of at most {LONGEST_NAME} bytes, got {str(path)[:60]!r}...; correct the path"
        )
    return path


def _plain(value: Any) -> Any:
    """Return numbers of NumPy and of torch as those of Python."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def _flat(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
