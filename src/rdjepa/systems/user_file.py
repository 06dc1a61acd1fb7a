"""A system that a user's Python file defines; the file is run, as it is by `import`."""

import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from rdjepa.errors import ArgumentError
from rdjepa.extensions import refusal
from rdjepa.pde.contract import check_system
from rdjepa.pde.system import System


def load(path: Path) -> System:
    """Run a file and return its `SYSTEM`, after every check that takes no integration.

    Raises:
        ArgumentError: no file, one that does not run or defines no system, or a system that cannot be simulated; the
            message names the file, and the line where there is one.
    """
    if not path.is_file():
        raise ArgumentError(f"expected a Python file that defines SYSTEM, got no file at {path}; correct the path")
    try:
        code = path.read_bytes()
    except OSError as error:
        raise refusal(error, path) from error
    return _loaded(path.resolve(), code)


@cache  # a kernel is compiled per kinetics function, so an unchanged file must give the same function object
def _loaded(path: Path, code: bytes) -> System:
    system = getattr(_run(path, code), "SYSTEM", None)
    if not isinstance(system, System):
        raise ArgumentError(
            f"expected {path} to define SYSTEM, an rdjepa.pde.system.System, got {type(system).__name__}; "
            "start from the file that `rdjepa new-system` writes"
        )
    try:
        check_system(system)
    except ArgumentError as error:
        raise ArgumentError(f"{error}, in {path}") from error
    return system


def _run(path: Path, code: bytes) -> ModuleType:
    """Run a file's code as a module; not through Python's cache of bytecode, which misses an edit within a second."""
    module = ModuleType(f"rdjepa_user_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(code, path, "exec"), module.__dict__)  # noqa: S102 - a file that the user named
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit among them
        raise refusal(error, path) from error
    return module
