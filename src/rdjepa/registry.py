"""Entries by name, to which users add their own: forecasters, objectives of pretraining, studies and their changes."""

from collections.abc import Iterator
from importlib import import_module
from multiprocessing import parent_process
from typing import Any, Generic, Protocol, TypeVar

from rdjepa.errors import ArgumentError, RdjepaError, such_as


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """Named entries in the order of their registration, for the time of this process.

    Args:
        entry: class of the entries.
        kind: what an entry is, with its article, as sentences call it.
        register: the function with which users add their own, as sentences call it.
        error: what is raised.

    Attributes:
        entries: name -> entry.
    """

    def __init__(self, entry: type[Entry], kind: str, register: str, error: type[RdjepaError] = ArgumentError) -> None:
        self.entries: dict[str, Entry] = {}
        self._entry, self._kind, self._register, self._error = entry, kind, register, error

    def __contains__(self, name: object) -> bool:
        """Return whether there is an entry of this name."""
        return isinstance(name, str) and name in self.entries

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the entries."""
        return iter(self.entries.values())

    def require(self, entry: object) -> None:
        """Refuse what could not be an entry.

        Raises:
            RdjepaError: of the class `error`: it is of another class, or its name is no text, empty, or has a slash or
                a comma ("/" separates two forecasters in tables and names of folders, "," values on the command line).
        """
        if not isinstance(entry, self._entry):
            raise self._error(f"expected {self._kind} as a {self._entry.__name__}, got {entry!r}; make one of it")
        if not isinstance(entry.name, str) or not entry.name or "/" in entry.name or "," in entry.name:
            raise self._error(f"expected a name without slash and comma, got {entry.name!r}; give another name")

    def add(self, entry: Entry) -> Entry:
        """Add an entry and return it.

        Raises:
            RdjepaError: of the class `error`: it could not be one, see `require`, or its name is taken.
        """
        self.require(entry)
        if entry.name in self.entries:
            raise self._error(f"expected a name of its own, got {entry.name!r}, which is taken; give another name")
        self.entries[entry.name] = entry
        return entry

    def names(self) -> list[str]:
        """Return all names."""
        return list(self.entries)

    def get(self, name: str) -> Entry:
        """Return the entry of a name.

        Raises:
            RdjepaError: of the class `error`: there is none; the names are listed.
        """
        if name not in self:
            raise self._error(
                f"expected {self._kind} among {', '.join(self.entries)}, got {name!r}; name one of them"
                f"{such_as(name, self.entries)}, or register it with {self._register}{in_a_worker()}, in a file that "
                "rdjepa --load takes"
            )
        return self.entries[name]

    def find(self, name: str) -> Entry | None:
        """Return the entry of a name, or None."""
        return self.entries.get(name)


def in_a_worker() -> str:
    """Return where a registration has to stand so that a worker process knows it too; "" elsewhere."""
    if parent_process() is None:
        return ""
    return ' at the top of the script, above `if __name__ == "__main__":`, since workers import it, or with --load'


def class_of(found: str | type, base: type) -> Any:
    """Return a class that was registered, itself or as "module:Class".

    Raises:
        ArgumentError: it cannot be imported, or is not derived from `base`.
    """
    return import_class(found, base) if isinstance(found, str) else derived(found, base, path_of(found))


def path_of(found: str | type) -> str:
    """Return the location of a class, "module:Class"."""
    return found if isinstance(found, str) else f"{found.__module__}:{getattr(found, '__qualname__', repr(found))}"


def import_class(path: str, base: type) -> Any:
    """Import the class that "module:Class" names.

    Raises:
        ArgumentError: no such module, one that does not run, no such class in it, or one not derived from `base`.
    """
    module, _, qualified = path.partition(":")
    try:
        found: Any = import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise ArgumentError(
            f"expected to import {path}, got no module {missing}; install it or put its folder on PYTHONPATH "
            "(in commands --load FILE imports a file)"
        ) from error
    except Exception as error:
        raise ArgumentError(
            f"expected to import {path}, got {type(error).__name__} ({error}) in {module}; correct it"
        ) from error
    for part in qualified.split("."):
        if not hasattr(found, part):
            raise ArgumentError(
                f"expected to import {path}, got no {part} in {module} ({getattr(found, '__file__', module)}); "
                "define it there, or use the version of the file that has it"
            )
        found = getattr(found, part)
    return derived(found, base, path)


def derived(found: Any, base: type, path: str) -> Any:
    """Return a class that is derived from `base`; `path` names it in the sentence.

    Raises:
        ArgumentError: it is not.
    """
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ArgumentError(
            f"expected {path} to be a subclass of {base.__module__}.{base.__name__}, got {found!r}; derive it from "
            "that, or name another class"
        )
    return found
