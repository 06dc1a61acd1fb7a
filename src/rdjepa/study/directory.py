"""A study directory: finished, running and failed cells.

study.json                    protocol version and the settings of every profile that was run here
cells/<id>/                   a finished cell, whole from the moment it appears
pretrainings/<id>/            the run of a pretraining that cells start from; finished once it has record.json
failed/<id>.txt               title and traceback of a cell or pretraining that failed, until it succeeds
.study.json.lock              locked while study.json is changed
locks/<id>.lock               locked while either is computed; the kernel unlocks it when the process dies
data/, statistics/, timings.json   trajectories, field statistics and step times, made again when deleted
"""

import contextlib
import errno
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from rdjepa.errors import StudyError
from rdjepa.io import sealed
from rdjepa.io.atomic import making, write_bytes, writing

FORMAT, VERSION = "rdjepa-study", 2
STUDY, RECORD = "study.json", "record.json"
SHORT = 40  # characters of a value in a message
RECORDS = "records.json"  # of an export, which is no study directory
OPTIONS = {"adapt.steps": "--steps", "adapt.precision": "--precision", "checkpoint": "--model"}  # that set them


@dataclass(frozen=True)
class Content:
    """Content of study.json; `profiles` are their settings by name."""

    format: str
    version: int
    profiles: dict[str, dict[str, Any]]


class Directory:
    """One study directory; any number of processes may work in it.

    Args:
        root: its path; it need not exist.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()

    def read(self) -> Content:
        """Return the content of study.json.

        Raises:
            StudyError: there is none, or it is not of this version.
        """
        path = self.root / STUDY
        if not path.is_file():
            self._refuse_export()
            raise StudyError(f"expected a study directory with {STUDY}, got {self.root}; rdjepa study run makes one")
        remedy = "choose another --root, or the version of rdjepa that wrote it"
        found = sealed.read(path, Content, remedy, StudyError)
        if (found.format, found.version) != (FORMAT, VERSION):
            raise StudyError(
                f"expected a study of format {FORMAT} and protocol version {VERSION}, got {found.format} "
                f"{found.version} in {self.root}; {remedy}"
            )
        return found

    def _refuse_export(self) -> None:
        if (self.root / RECORDS).exists():
            raise StudyError(
                f"expected a study directory, got the exported rows of one in {self.root}; choose another --root, and "
                f"continue from these rows with --known {self.root}"
            )

    def check(self, profile: str, settings: Mapping[str, Any]) -> bool:
        """Return whether a profile was run in this directory already.

        Raises:
            StudyError: it was, with other settings, or this is a directory of another protocol version, or an export.
        """
        if not (self.root / STUDY).exists():
            self._refuse_export()
            return False
        known, wanted = self.read().profiles.get(profile), sealed.plain(settings)
        if known is not None and known != wanted:
            other = differing(known, wanted)
            if all(key in OPTIONS for key in other):
                remedy = f"give the same {' and '.join(OPTIONS[key] for key in other)}, or "
            else:  # commands have no option for them
                remedy = "go on from Python with the same Profile (rdjepa.study), or "
            raise StudyError(
                f"expected the settings of profile {profile} that {self.root} was begun with, got other "
                f"{', '.join(_said(key, wanted, known) for key in other)}; {remedy}choose another --root"
            )
        return known is not None

    def claim(self, profile: str, settings: Mapping[str, Any]) -> None:
        """Record the settings of a profile, unless they are recorded already.

        Raises:
            StudyError: as for `check`.
            OutputError: the directory cannot be written.
        """
        if self.check(profile, settings):
            return
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            with FileLock(self.root / f".{STUDY}.lock"):  # another process may enter a profile at the same time
                content = self.read() if (self.root / STUDY).exists() else Content(FORMAT, VERSION, {})
                profiles = {profile: dict(settings)} | content.profiles
                sealed.write(self.root / STUDY, asdict(replace(content, profiles=profiles)))
        self.check(profile, settings)

    def cell(self, identifier: str) -> Path:
        """Return the folder of a finished cell."""
        return self.root / "cells" / identifier

    def is_done(self, identifier: str) -> bool:
        """Return whether a cell or pretraining is finished."""
        return any((place(identifier) / RECORD).is_file() for place in (self.cell, self.pretraining))

    def pretraining(self, identifier: str) -> Path:
        """Return the run directory of a pretraining."""
        return self.root / "pretrainings" / identifier

    def is_running(self, identifier: str) -> bool:
        """Return whether a process computes a cell or pretraining now, here or where the locks are shared.

        In a directory that may only be read nothing is known to run: a lock is asked for by writing.
        """
        path = self._lock(identifier)
        try:
            return path.exists() and not _acquired(FileLock(path), release=True)
        except OSError as error:
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                return False
            raise

    @contextlib.contextmanager
    def lock(self, identifier: str) -> Iterator[bool]:
        """Try to lock a cell until the block ends; yield whether it succeeded."""
        path = self._lock(identifier)
        lock = FileLock(path)
        with writing(self.root):
            path.parent.mkdir(parents=True, exist_ok=True)
            acquired = _acquired(lock)
        try:
            yield acquired
        finally:
            lock.release()

    def traceback(self, identifier: str) -> Path:
        """Return the file of a failed cell's traceback."""
        return self.root / "failed" / f"{identifier}.txt"

    def fail(self, identifier: str, title: str, text: str) -> None:
        """Write the traceback of a failed cell or pretraining, under its title."""
        write_bytes(self.traceback(identifier), f"{title}\n{text}".encode())

    def forget_failures(self, identifier: str, title: str) -> None:
        """Remove the tracebacks of what has succeeded now, those of an earlier version of its forecaster too."""
        self.traceback(identifier).unlink(missing_ok=True)  # of former versions of the package they have no title
        for path in (self.root / "failed").glob("*.txt"):
            with contextlib.suppress(FileNotFoundError):  # another process was first
                if path.read_text().partition("\n")[0] == title:
                    path.unlink()

    def failure(self, identifier: str) -> str | None:
        """Return the last line of the traceback of what failed; None of what did not."""
        path = self.traceback(identifier)
        return path.read_text().strip().splitlines()[-1] if path.is_file() else None

    def failures(self) -> int:
        """Return how many cells and pretrainings failed and have not succeeded since."""
        return len(list((self.root / "failed").glob("*.txt")))

    def finish(self, identifier: str, files: Mapping[str, bytes]) -> None:
        """Write a finished cell atomically; the caller holds the lock of the cell.

        Raises:
            OutputError: the disk is full or cannot be written.
        """
        with making(self.cell(identifier)) as folder:
            for name, content in files.items():
                write_bytes(folder / name, content)

    def _lock(self, identifier: str) -> Path:
        return self.root / "locks" / f"{identifier}.lock"


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the keys of two settings or identities whose values differ, as "adapt.steps" down to single settings."""
    found = []
    for key in sorted(first.keys() | second.keys()):
        one, other = first.get(key), second.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{key}.{name}" for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
        elif one != other:
            found.append(key)
    return found


def _said(key: str, wanted: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Return a key of `differing` with both values, where they are short: a checksum tells nobody anything."""
    name, _, inner = key.partition(".")
    both = [str(each.get(inner) if inner else each) for each in (wanted.get(name, {}), known.get(name, {}))]
    return f"{key} ({both[0]}, not {both[1]})" if max(map(len, both)) <= SHORT else key


def _acquired(lock: BaseFileLock, *, release: bool = False) -> bool:
    """Take a lock and return whether it succeeded.

    It waits for a moment, because a process that only looks whether a cell is running holds the lock just as long.
    """
    try:
        lock.acquire(timeout=0.1, poll_interval=0.02)
    except Timeout:
        return False
    if release:
        lock.release()
    return True
