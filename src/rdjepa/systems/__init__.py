"""Equations by name: those of the benchmark, the family of random ones, and a user's, registered or in a file."""

from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from rdjepa.checks import of_class
from rdjepa.errors import ArgumentError
from rdjepa.pde.distance import Apart, Reference
from rdjepa.pde.system import System
from rdjepa.registry import in_a_worker
from rdjepa.systems import (
    barkley,
    barkley_walls,
    brusselator,
    family,
    fitzhugh_nagumo,
    ginzburg_landau,
    gray_scott,
    lambda_omega,
    oregonator,
    schnakenberg,
)

Role = Literal["source", "held-out", "wall", "family"]


class _Registered(NamedTuple):
    system: System
    role: Role


_REGISTERED: dict[str, _Registered] = {}


def register(system: System, role: Role = "held-out") -> None:
    """Register a system under its name for the rest of this process.

    What it declares is checked, as by `rdjepa.pde.contract.check_declaration`; `rdjepa check-system` tries more.

    Args:
        system: a system whose name is not registered yet.
        role: "source" where pretraining may see it, "held-out" where it may not, "wall" for a variant with walls, or
            "family" where every draw is an equation of its own, for pretraining and no part of the paper's studies.

    Raises:
        ArgumentError: the name is taken, there is no such role, or it is no system or none that can be simulated.
    """
    from rdjepa.pde.contract import check_declaration  # imports numba, which names do not need

    check_declaration(of_class(system, System, "the system"))
    _enter(system, role)


def _enter(system: System, role: Role) -> None:
    if role not in get_args(Role):
        raise ArgumentError(f"expected a role, got {role!r}; known: {', '.join(get_args(Role))}")
    if system.name in _REGISTERED:
        raise ArgumentError(f"expected a name of its own, got {system.name!r}, which is taken; give another name")
    _REGISTERED[system.name] = _Registered(system, role)


def _register_all(role: Role, *systems: System) -> tuple[str, ...]:
    for system in systems:
        _enter(system, role)
    return tuple(system.name for system in systems)


# The systems of the paper, in its order (S1.1).
SOURCES = _register_all(
    "source",
    gray_scott.SYSTEM,
    fitzhugh_nagumo.SYSTEM,
    brusselator.SYSTEM,
    ginzburg_landau.SYSTEM,
    schnakenberg.SYSTEM,
)
HELD_OUT = _register_all("held-out", lambda_omega.SYSTEM, barkley.SYSTEM, oregonator.SYSTEM)
# Beside the paper: random equations, none of them near what is held out. The ranges are those of its trajectories.
APART = Apart(
    (
        Reference(lambda_omega.SYSTEM, u=(-1.1, 1.1), v=(-1.1, 1.1)),
        Reference(barkley.SYSTEM, u=(-0.02, 1.02), v=(0.0, 0.75)),
        Reference(oregonator.SYSTEM, u=(0.0, 0.8), v=(0.0, 0.31)),
    ),
    least=0.2,
)
FAMILIES = _register_all("family", replace(family.SYSTEM, apart=APART))
WALLS = _register_all("wall", barkley_walls.NEUMANN, barkley_walls.ROBIN, barkley_walls.DIRICHLET)


def names() -> tuple[str, ...]:
    """Return the names of the periodic systems: the paper's eight, then the user's."""
    return tuple(name for name, entry in _REGISTERED.items() if entry.role not in ("wall", "family"))


def wall_names() -> tuple[str, ...]:
    """Return the names of the variants between walls: the paper's three, then the user's."""
    return tuple(name for name, entry in _REGISTERED.items() if entry.role == "wall")


def family_names() -> tuple[str, ...]:
    """Return the names of the families, whose every draw is an equation of its own."""
    return tuple(name for name, entry in _REGISTERED.items() if entry.role == "family")


def every_name() -> tuple[str, ...]:
    """Return the names of all registered systems: periodic ones, those between walls, families."""
    return names() + wall_names() + family_names()


def role(name: str) -> Role:
    """Return whether a registered system is a "source", "held-out", a "wall" variant or a "family".

    Raises:
        ArgumentError: no system has that name.
    """
    return _entry(name).role


def get(name: str | Path) -> System:
    """Return a system by name, or the one that a Python file defines.

    Args:
        name: one of `every_name()`; or the path of a file, ending in .py, that defines `SYSTEM`.

    Raises:
        ArgumentError: no system has that name, or the file defines none that can be simulated.
    """
    text = str(name) if isinstance(name, str | Path) else ""
    return _from_file(Path(text)) if text.endswith(".py") else _entry(name).system


def named(name: str | Path) -> str:
    """Return the name of a system; one that a file defines is registered for the rest of this process.

    Raises:
        ArgumentError: as `get`.
    """
    system = get(name)
    if system.name not in _REGISTERED:
        _enter(system, "held-out")
    return system.name


def _entry(name: object) -> _Registered:
    if not isinstance(name, str) or name not in _REGISTERED:
        raise ArgumentError(
            f"expected the name of a system, got {name!r}; known: {', '.join(_REGISTERED)}, or a .py file; or register "
            f"it with rdjepa.systems.register{in_a_worker()}"
        )
    return _REGISTERED[name]


def _from_file(path: Path) -> System:
    """Return the `SYSTEM` of a user's file; its name must not be that of another registered system."""
    from rdjepa.systems.user_file import load  # imports numba, which names do not need

    system = load(path)
    if system.name in _REGISTERED and _REGISTERED[system.name].system is not system:
        raise ArgumentError(f"expected a name of its own in {path}, got {system.name!r}, which is taken; rename SYSTEM")
    return system
