"""Checks of `--out`: it may not replace an input, or a file that another command made, and it can be written."""

import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rdjepa.errors import CheckpointError, DataError, OutputError
from rdjepa.io import sealed
from rdjepa.io.atomic import replacing


def refuse_overwriting(
    out: Path, inputs: Sequence[Path], *, kind: str, same_kind: Callable[[Path], bool], force: bool
) -> None:
    """Refuse an output that is an input, would replace a file of another kind, or cannot be written.

    Args:
        out: where a command will write.
        inputs: files and directories that it reads.
        kind: what the command writes, in words.
        same_kind: whether an existing file is of that kind, which may be made again.
        force: replace a file of another kind all the same; never an input.

    Raises:
        OutputError: the output may not be written.
    """
    if out.is_dir():
        raise OutputError(f"expected a file name for the {kind}, got the directory {out}; name a file in it")
    if out.exists():
        _refuse_replacing(out, inputs, kind, same_kind, force)
    _require_writable(out)


def _refuse_replacing(
    out: Path, inputs: Sequence[Path], kind: str, same_kind: Callable[[Path], bool], force: bool
) -> None:
    """Refuse an existing output that is no file, an input, or of another kind."""
    if not out.is_file():
        raise OutputError(f"expected a file name for the {kind}, got the device or pipe {out}; choose another --out")
    for given in inputs:
        if given.exists() and (out.samefile(given) or given.resolve() in out.resolve().parents):
            raise OutputError(
                f"expected an output that is not an input, got {out}, which is read here; choose another --out"
            )
    if not force and not same_kind(out):
        raise OutputError(
            f"expected no other file in the place of the {kind}, got one at {out}; "
            "choose another --out, or replace it with --force"
        )


class _EnoughError(Exception):
    """Ends the writing of a file before it replaces another."""


def _require_writable(out: Path) -> None:
    """Begin to write an output, and remove what was made for it, so that it fails before the work and not after."""
    made = [folder for folder in out.parents if not folder.exists()]
    try:
        with suppress(_EnoughError), replacing(out) as temporary:
            temporary.write_bytes(b"0")
            raise _EnoughError
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


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
            return file.attrs.get("kind") == "rdjepa_forecasts"
    except OSError:
        return False


def is_forecast(path: Path) -> bool:
    """Return whether `rdjepa forecast` wrote a file, of one trajectory."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {"context.npy", "forecast.npy"} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def is_rows(path: Path) -> bool:
    """Return whether `rdjepa evaluate` wrote a file."""
    try:
        with path.open("rb") as file:
            line = sealed.decode(file.readline(10_000), dict[str, Any], f"in {path}", "")
    except (OSError, DataError):
        return False
    return {"forecaster", "metric", "horizon", "value"} <= line.keys()
