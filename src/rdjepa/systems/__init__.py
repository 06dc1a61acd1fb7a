"""The equations of the benchmark, by name: five sources and then the three that pretraining never sees."""

from importlib import import_module

from rdjepa.pde.system import System

_NAMES = (
    "gray-scott",
    "fitzhugh-nagumo",
    "brusselator",
    "ginzburg-landau",
    "schnakenberg",
    "lambda-omega",
    "barkley",
    "oregonator",
)


def names() -> tuple[str, ...]:
    """Return the names of all systems."""
    return _NAMES


def get(name: str) -> System:
    """Return a system by name.

    Raises:
        ValueError: no system has that name.
    """
    if name not in _NAMES:
        raise ValueError(f"expected the name of a system, got {name!r}; known: {', '.join(_NAMES)}")
    return import_module(f"rdjepa.systems.{name.replace('-', '_')}").SYSTEM
