"""Checks of `--out`: it may not replace an input, or a file that another command made, and it can be written."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rdjepa.errors import OutputError
from rdjepa.io.atomic import replacing
from rdjepa.io.kinds import refuse_replacing

# That say what is in a file.
ENDINGS = (".npz", ".npy", ".h5", ".hdf5", ".nc", ".zarr", ".mat", ".csv", ".json", ".jsonl", ".png", ".safetensors")


def require_ending(out: Path, *own: str) -> None:
    """Refuse a name that says another format than what is written.

    Raises:
        OutputError: it does.
    """
    if out.suffix.lower() in ENDINGS and out.suffix.lower() not in own:
        raise OutputError(
            f"expected a file name ending in {' or '.join(own)}, which is what is written, got {out}; end it in "
            f"{own[0]}, or leave the ending out"
        )


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
    if out.exists() and not out.is_file():
        raise OutputError(f"expected a file name for the {kind}, got the device or pipe {out}; choose another --out")
    for given in filter(Path.exists, inputs):
        # realpath, since Path.resolve ends in an error of its own on a loop of links
        inside = given.is_dir() and Path(os.path.realpath(given)) in Path(os.path.realpath(out)).parents
        if inside or (out.exists() and out.samefile(given)):
            where = f"in the directory {given}, which is read here" if inside else "which is read here"
            raise OutputError(f"expected an output that is not an input, got {out}, {where}; choose another --out")
    refuse_replacing(out, kind=kind, same_kind=same_kind, force=force)
    require_writable(out)


class _EnoughError(Exception):
    """Ends the writing of a file before it replaces another."""


def require_writable(out: Path) -> None:
    """Begin to write an output, and remove what was made for it, so that it fails before the work and not after.

    Raises:
        OutputError: it cannot be written.
    """
    made = [folder for folder in out.parents if not folder.exists()]
    try:
        with suppress(_EnoughError), replacing(out) as temporary:
            temporary.write_bytes(b"0")
            raise _EnoughError
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
