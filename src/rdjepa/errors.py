"""The errors of the package: what a user can correct is raised as one of these, with one sentence that says how."""

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches

_OURS = ("rdjepa", "torch")  # torch, since its decorators stand around functions of the package
_FULL = ("can't allocate memory", "out of memory", "_ALLOC_FAILED")  # in the words of torch, CUDA, and its libraries


def such_as(name: object, known: Iterable[object]) -> str:
    """Return ", such as" and the name that somebody may have meant among those known, "" where none is near."""
    found = get_close_matches(str(name), map(str, known), 1, 0.7)
    return f", such as {found[0]}" if found else ""


def printable(text: str) -> str:
    """Return a text with what would break its line, or move the cursor, written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error, or its kind where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory ran out; that of torch is a plain RuntimeError in most cases."""
    told = isinstance(error, RuntimeError) and any(words in str(error) for words in _FULL)
    return told or isinstance(error, MemoryError)


class RdjepaError(Exception):
    """Base of every deliberate error; the message is one line and reads "expected ..., got ...; do ..."."""

    def __str__(self) -> str:
        """Return the message; names of the user's in it may hold any character."""
        return printable(super().__str__())


class ArgumentError(RdjepaError, ValueError):
    """An argument, option or name that cannot be used."""


class DataError(RdjepaError, ValueError):
    """Data that cannot be used."""


class OutputError(RdjepaError, OSError):
    """A file or directory that cannot be written; existing files are unchanged."""


class CheckpointError(RdjepaError, ValueError):
    """A checkpoint, run state or forecaster that is missing, damaged, or not of this package."""


class StudyError(RdjepaError, ValueError):
    """A study directory or a plan of cells that cannot be used."""


class InsufficientMemoryError(RdjepaError, MemoryError):
    """More memory is needed than is available; the message says what to lower."""


class SimulationError(RdjepaError, RuntimeError):
    """A trajectory that cannot be simulated: no draw passed the screens."""


class DivergenceError(RdjepaError, FloatingPointError):
    """A loss or gradient that is not finite; the weights are those before that update."""


class ProcessError(RdjepaError, RuntimeError):
    """One of the processes of a run was lost; what it had saved is whole."""


class Note(UserWarning):
    """What was decided for the user about data that leave a choice; silence it once it is known."""


def warn(sentence: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the line of the user's code that called the package rather than one within it.

    Args:
        sentence: what is shown.
        category: class of the warning, as in `warnings.warn`.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)
