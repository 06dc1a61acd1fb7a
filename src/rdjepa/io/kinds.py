"""The kinds of files that commands and functions write, told by what is in them: one never replaces another unasked."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rdjepa.errors import CheckpointError, DataError, OutputError
from rdjepa.io import sealed

FORECASTS = "rdjepa_forecasts"  # attribute "kind" of a file of all forecasts


def refuse_replacing(path: Path, *, kind: str, same_kind: Callable[[Path], bool], force: bool = False) -> None:
    """Refuse to put a file in the place of one of another kind, or of a device.

    Args:
        path: of the file.
        kind: of the file, in words.
        same_kind: whether an existing file is of that kind, which may be made again.
        force: replace it all the same.

    Raises:
        OutputError: there is one.
    """
    if not force and path.exists() and not path.is_dir() and not same_kind(path):
        raise OutputError(
            f"expected no other file in the place of the {kind}, got one at {path}; "
            "choose another path, or replace it with --force (force=True)"
        )


def is_forecaster(path: Path) -> bool:
    """Return whether `rdjepa adapt` wrote a file."""
    from rdjepa.io.tensors import read_record

    try:
        return read_record(path).get("kind") == "forecaster"
    except CheckpointError:
        return False


def is_forecasts(path: Path) -> bool:
    """Return whether `rdjepa forecast --all` wrote a file."""
    import h5py

    try:
        with h5py.File(path) as file:
            return file.attrs.get("kind") == FORECASTS
    except OSError:
        return False


def is_forecast(path: Path) -> bool:
    """Return whether `rdjepa forecast` wrote a file, of one trajectory."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {"context.npy", "forecast.npy"} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def is_demonstration(path: Path) -> bool:
    """Return whether `rdjepa demo` wrote a file of results."""
    try:
        content = sealed.decode(path.read_bytes(), dict[str, Any], f"in {path}", "")
    except (OSError, DataError):
        return False
    return {"config", "support", "test", "windows_per_trajectory", "errors", "seconds"} <= content.keys()


def is_rows(path: Path) -> bool:
    """Return whether `rdjepa evaluate` wrote a file."""
    try:
        with path.open("rb") as file:
            line = sealed.decode(file.readline(10_000), dict[str, Any], f"in {path}", "")
    except (OSError, DataError):
        return False
    return {"forecaster", "metric", "horizon", "value"} <= line.keys()
