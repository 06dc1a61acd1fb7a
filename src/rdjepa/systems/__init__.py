"""The equations of the benchmark, by name: five sources, the three that pretraining never sees, and three variants."""

import importlib.util
from importlib import import_module
from pathlib import Path

from rdjepa.errors import ArgumentError
from rdjepa.pde.system import System

SOURCES = ("gray-scott", "fitzhugh-nagumo", "brusselator", "ginzburg-landau", "schnakenberg")
HELD_OUT = ("lambda-omega", "barkley", "oregonator")
WALLS = ("barkley-neumann", "barkley-robin", "barkley-dirichlet")


def names() -> tuple[str, ...]:
    """Return the names of the eight periodic systems."""
    return SOURCES + HELD_OUT


def wall_names() -> tuple[str, ...]:
    """Return the names of the three variants between walls."""
    return WALLS


def get(name: str) -> System:
    """Return a system by name, or the one that a Python file defines.

    Args:
        name: one of `names()` or `wall_names()`; or the path of a file, ending in .py, that defines `SYSTEM`.

    Raises:
        ArgumentError: no system has that name, or the file defines none.
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name in WALLS:
        from rdjepa.systems.barkley_walls import SYSTEMS

        return SYSTEMS[name]
    if name not in SOURCES + HELD_OUT:
        raise ArgumentError(
            f"expected the name of a system, got {name!r}; "
            f"known: {', '.join(SOURCES + HELD_OUT + WALLS)}, or a .py file"
        )
    return import_module(f"rdjepa.systems.{name.replace('-', '_')}").SYSTEM


def _from_file(path: Path) -> System:
    """Run a user's file and take its `SYSTEM`, whose name may not be one of ours."""
    if not path.is_file():
        raise ArgumentError(f"expected a Python file that defines SYSTEM, got no file at {path}; correct the path")
    spec = importlib.util.spec_from_file_location(f"rdjepa_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    system = getattr(module, "SYSTEM", None)
    if not isinstance(system, System):
        raise ArgumentError(
            f"expected {path} to define SYSTEM, an rdjepa.pde.system.System, got {type(system).__name__}"
        )
    if system.name in SOURCES + HELD_OUT + WALLS:
        raise ArgumentError(f"expected a name of its own in {path}, got {system.name!r}, which is taken; rename SYSTEM")
    return system
