"""Atomic writing: a reader sees the old file, none, or the complete new one, whenever the writer is killed."""

import errno
import io
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rdjepa.errors import OutputError

_HOST, _PART = re.sub(r"\W", "_", platform.node()), ".part"
_SWEPT: set[Path] = set()
RECENT = 3600  # seconds
REFUSALS = {
    errno.ENOSPC: "a full disk; free some space and run again",
    errno.EDQUOT: "a full quota; free some space and run again",
    errno.EFBIG: "a limit on the size of files; raise it, or write elsewhere",
    errno.EROFS: "a read-only disk; write elsewhere",
    errno.EACCES: "no permission; write elsewhere",
    errno.EPERM: "no permission; write elsewhere",
    errno.ENOTDIR: "a file where a directory is needed; choose another path",
    errno.EEXIST: "a file where a directory is needed; choose another path",
    errno.EISDIR: "a directory of this name; choose another path",
    errno.ELOOP: "a loop of links; choose another path",
    errno.ENAMETOOLONG: "a name that is too long; choose a shorter one",
    errno.ENOTEMPTY: "a folder of this name; choose another path",
}


def write_bytes(path: Path | str, content: bytes | memoryview) -> Path:
    """Write a file atomically and return its path; missing folders are created.

    Raises:
        OutputError: the disk is full, or the path cannot be written or is a device or pipe; what is there stays.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(content)
    return Path(path)


def write_arrays(path: Path | str, **arrays: Any) -> Path:
    """Write arrays atomically as a compressed .npz, under the name as given, and return its path.

    Raises:
        OutputError: as for `write_bytes`.
    """
    import numpy as np  # only here; the other functions need the standard library alone

    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return write_bytes(path, stream.getvalue())


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary file in the same folder; it replaces `path` when the block ends without an error.

    Raises:
        OutputError: as for `write_bytes`.
    """
    path, temporary = Path(path), None
    try:
        with writing(path):
            if path.exists() and not path.is_file() and not path.is_dir():
                raise OutputError(f"expected a file's name, got the device or pipe {path}; choose another path")
            if path.is_symlink():  # the file that it stands for is replaced, not the link
                path = Path(os.path.realpath(path))
                if path.is_symlink():
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            path.parent.mkdir(parents=True, exist_ok=True)
            _sweep(path.parent)
            part = _part_of(path)
            part.touch(exist_ok=False)  # with the rights that the user gives new files
            temporary = part
            given = part.stat().st_mode
            yield temporary
            with temporary.open("rb+") as file:  # without this a power failure may leave an empty file of that name
                os.fsync(file.fileno())
            rights = path.stat().st_mode if path.exists() else given  # writers may have made another file of it
            temporary.chmod(rights & 0o777)
            temporary.replace(path)
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def making(path: Path | str) -> Iterator[Path]:
    """Yield a folder in a temporary one beside `path`, which it becomes when the block ends without an error.

    Raises:
        OutputError: as for `write_bytes`, or there is a folder at `path` by then.
    """
    path, temporary = Path(path), None
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _sweep(path.parent)
            temporary = _part_of(path)
            (temporary / path.name).mkdir(parents=True)
        yield temporary / path.name  # under the name that it will have
        with writing(path):
            (temporary / path.name).rename(path)
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _part_of(path: Path) -> Path:
    """Return a name beside a path that tells which process of which machine writes there."""
    return path.parent / f".{path.name[:32]}.{_HOST}-{os.getpid()}.{secrets.token_hex(4)}{_PART}"


def _sweep(folder: Path) -> None:
    """Remove what writers of this machine that were killed left in a folder; once for each folder and process.

    What changed in the last hour stays: a container of the same name cannot tell who lives in another.
    """
    if folder in _SWEPT:
        return
    _SWEPT.add(folder)
    for leftover in folder.glob(f".*.{_HOST}-*{_PART}"):
        number = leftover.name.removesuffix(_PART).rsplit(".", 1)[0].rsplit("-", 1)[1]
        if number.isdecimal() and not _is_alive(int(number)):
            with suppress(OSError):  # of another user, in a folder that several share, or gone by now
                latest = max(path.stat().st_mtime for path in (leftover, *leftover.rglob("*")))
                if time.time() - latest > RECENT:
                    shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _is_alive(number: int) -> bool:
    """Return whether a process of this number runs; that of another user counts as one."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn the error of a full or read-only disk and the like into an `OutputError` of one sentence.

    Raises:
        OutputError: `path` cannot be written, or begins with a `~` that nobody replaced.
    """
    if Path(path).parts[:1] == ("~",):  # a folder of that name is hardly meant
        raise OutputError(
            f"expected a path with the home directory written out, got {path}; give it in full, as $HOME/... in a "
            "shell or Path.expanduser() in Python"
        )
    try:
        yield
    except OutputError:
        raise
    except RecursionError as error:  # from the making of the folders
        raise OutputError(f"expected to write {path}, got too many folders in one path; choose another") from error
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        raise OutputError(f"expected to write {path}, got {REFUSALS[error.errno]}") from error
