"""Python files of users: what is wrong with one in a sentence, and those that register a user's own.

Forecasters, systems, metrics, studies, changes and objectives are registered for the time of a process. A file that
registers them is loaded by `rdjepa --load`, also in every worker that a command starts.
"""

import re
import sys
import traceback
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from rdjepa.errors import ArgumentError

_LOADED: list[Path] = []


def load(path: Path | str) -> None:
    """Import a file under its own name, once in a process; what it registers is known from then on.

    Its folder is one of those that modules are imported from afterwards, so that "module:Class" in a saved forecaster
    is found, and other files beside it.

    Raises:
        ArgumentError: no Python file, a name that no module can have or that is another module's, or a file that does
            not run.
    """
    found = Path(path).parent.resolve() / Path(path).name
    if found in _LOADED:
        return
    if not found.is_file():
        raise ArgumentError(f"expected a Python file to load, got no file at {path}; correct the path")
    name = found.stem
    spec = spec_from_file_location(name, found)
    if not name.isidentifier() or spec is None or spec.loader is None:
        raise ArgumentError(f"expected a file that can be imported, as mine.py, got {path}; give it such a name")
    if _is(getattr(sys.modules.get(name), "__file__", None), found):  # another file imported it
        _LOADED.append(found)
        return
    if name in sys.modules or name in sys.stdlib_module_names or _elsewhere(name, found):
        raise ArgumentError(
            f"expected a file with a name of its own, got {path}, but {name} is a module already; rename the file"
        )
    folder = str(found.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # sys.exit among them
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise refusal(error, found) from error
    _LOADED.append(found)


def _is(file: str | None, path: Path) -> bool:
    return file is not None and Path(file).resolve() == path.resolve()


def _elsewhere(name: str, path: Path) -> bool:
    """Return whether a module of this name would be imported from another file."""
    spec = find_spec(name)
    return spec is not None and not _is(spec.origin, path)


def loaded() -> tuple[Path, ...]:
    """Return the files that were loaded, in this order."""
    return tuple(_LOADED)


def refusal(error: BaseException, path: Path) -> ArgumentError:
    """Return what to raise where a user's file does not run: it names the error and the line."""
    own = isinstance(error, SyntaxError) and error.filename == str(path)
    line = error.lineno if isinstance(error, SyntaxError) and own else _line(error, path)
    where = f" in line {line}" if line else ""
    return ArgumentError(f"expected {path} to run, got {said(error)}{where}; correct the file")


def said(error: BaseException) -> str:
    """Return type and message of an error in one line; of a compiler's long message the line that tells."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith("Failed in nopython")]
    return f"{type(error).__name__}{f' ({telling[0][:200]})' if telling else ''}"


def _line(error: BaseException, path: Path) -> int | None:
    """Return the line of a file in which an error was raised or passed last; None for no line of it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None
