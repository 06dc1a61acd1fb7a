"""What a system has to declare, checked before anything is integrated: names, ranges, numerics, initial states."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

from rdjepa.errors import ArgumentError, RdjepaError
from rdjepa.extensions import said
from rdjepa.pde.integrators import integrator
from rdjepa.pde.kinetics import check_kinetics
from rdjepa.pde.rollout import block_mean
from rdjepa.pde.sampling import stream
from rdjepa.pde.stability import check_step, fastest
from rdjepa.pde.system import REGIMES, Numerics, Regime, System, require_state

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")  # a part of keys and of paths
LEAST_SIZE = 8


def check_system(system: System) -> None:
    """Check everything about a system that takes no integration; about two seconds, most of it for compiling.

    Raises:
        ArgumentError: something that a trajectory could not be made with; the message names it and says what to do.
    """
    check_declaration(system)
    with _sentences():
        p = system.draw(0)
        check_kinetics(system.kinetics, [p[name] for name in system.kinetic_names])
        _check_equilibria(system)
        for name in system.regimes:
            _check_starts(system, name)


def check_declaration(system: System) -> None:
    """Check what a system declares, its names, numerics and ranges, in milliseconds.

    Raises:
        ArgumentError: as `check_system`.
    """
    with _sentences():
        _check_names(system)
        _check_numerics(system.numerics)
        if not isinstance(system.regimes, dict) or "id" not in system.regimes or set(system.regimes) - set(REGIMES):
            found = ", ".join(map(str, system.regimes)) if isinstance(system.regimes, dict) else repr(system.regimes)
            raise ArgumentError(
                f'expected regimes "id" and perhaps {", ".join(REGIMES[1:])}, got {found}; name them so'
            )
        for name, regime in system.regimes.items():
            _check_ranges(system, name, regime)
            check_step(system.numerics, fastest(system, name))


@contextmanager
def _sentences() -> Iterator[None]:
    """Put what a value of a type that no check expects raises into a sentence."""
    try:
        yield
    except RdjepaError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"expected the system to be complete, got {said(error)}; compare it with the file that "
            "`rdjepa new-system` writes"
        ) from error


def _check_names(system: System) -> None:
    """Check the names of the system and of its coefficients, and the arguments of its kinetics."""
    if not isinstance(system.name, str) or not NAME.fullmatch(system.name):
        raise ArgumentError(f"expected a name of letters, digits, - and _, got {system.name!r}; rename the system")
    names = [coefficient.name for coefficient in system.coefficients]
    if len(set(names)) < len(names):
        raise ArgumentError(f"expected coefficients with different names, got {', '.join(names)}; rename one")
    try:
        arguments = system.kinetic_names
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"expected kinetics as a function, got {system.kinetics!r}; define it with def") from error
    count = getattr(getattr(system.kinetics, "__code__", None), "co_argcount", len(arguments) + 2)
    if count != len(arguments) + 2:
        raise ArgumentError(
            "expected kinetics with the arguments u, v and one for every coefficient by name, got another list; "
            "write no *, ** or keyword-only argument"
        )
    for use, each in (("kinetics with arguments", arguments), ("diffusivity names", system.diffusivity_names)):
        unknown = [name for name in each if name not in names]
        if unknown:
            raise ArgumentError(
                f"expected {use} among the coefficients {', '.join(names)}, got {', '.join(map(repr, unknown))}; "
                "add it to the coefficients, or correct its name"
            )
    if len(system.diffusivity_names) != 2:
        raise ArgumentError(f"expected two names of diffusivities, got {system.diffusivity_names}; give u's and v's")
    for screen in system.screens:
        if not callable(screen):
            raise ArgumentError(f"expected screens that are functions of the fields, got {screen!r}; correct them")


def _check_numerics(numerics: Numerics) -> None:
    """Check sizes, times and the combination of method, Laplacian and boundary."""
    for name in ("length", "dt", "first", "last", "origin"):
        value = getattr(numerics, name)
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
            raise ArgumentError(f"expected {name} as a finite number, got {value!r}; correct the numerics")
    for name, least in (("size", LEAST_SIZE), ("stored", LEAST_SIZE), ("frames", 2)):
        value = getattr(numerics, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ArgumentError(f"expected {name} as a whole number from {least}, got {value!r}; correct the numerics")
    for name in ("length", "dt"):
        if getattr(numerics, name) <= 0:
            raise ArgumentError(f"expected {name} above 0, got {getattr(numerics, name):g}; correct the numerics")
    if not 0 <= numerics.first < numerics.last:
        raise ArgumentError(
            f"expected times of the first and the last frame with 0 <= first < last, got {numerics.first:g} and "
            f"{numerics.last:g}; correct the numerics"
        )
    if numerics.size % numerics.stored:
        raise ArgumentError(
            f"expected size as a multiple of stored, got {numerics.size} and {numerics.stored}; change one of the two"
        )
    integrator(numerics.method, numerics.laplacian, _check_numerics, numerics.boundary)  # compiles nothing yet


def _check_ranges(system: System, name: str, regime: Regime) -> None:
    """Check that every box draws every coefficient, from ranges in order, and that there are initial conditions."""
    if not regime.boxes or not regime.initial_conditions:
        raise ArgumentError(f"expected a box and an initial condition in regime {name}, got none; give both")
    names = {coefficient.name for coefficient in system.coefficients}
    for place, box in enumerate(regime.boxes):
        if box.derive is None and set(box.ranges) != names:
            raise ArgumentError(
                f"expected ranges of {', '.join(sorted(names))} in regime {name}, got {', '.join(box.ranges)}; "
                "give one for every coefficient"
            )
        for key, span in box.ranges.items():
            real = isinstance(span, tuple | list) and len(span) == 2 and all(isinstance(x, Real) for x in span)
            if not real or not -math.inf < span[0] <= span[1] < math.inf:
                raise ArgumentError(
                    f"expected a range (low, high) with low <= high for {key} in regime {name}, got {span!r}; "
                    "correct it, with low equal to high for a fixed value"
                )
        if box.derive is not None:
            _check_derived(_called(box.draw, stream("check", name, place)), names, name)


def _check_derived(p: Any, names: set[str], regime: str) -> None:
    """Check that the coefficients that follow from a draw are those of the system, and numbers."""
    if not isinstance(p, dict) or set(p) != names:
        raise ArgumentError(
            f"expected derive to return {', '.join(sorted(names))} in regime {regime}, got "
            f"{', '.join(map(str, p)) if isinstance(p, dict) else repr(p)}; return a dict with every coefficient"
        )
    for key, value in p.items():
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ArgumentError(
                f"expected derive to return a finite number for {key} in regime {regime}, got {value!r}; correct it"
            )


def _check_equilibria(system: System) -> None:
    """Check that the declared steady states are zeros of the kinetics."""
    p = system.draw(0)
    for u, v in _called(system.equilibria, p):
        rates = np.abs(np.array(system.reaction(float(u), float(v), p), float))
        if not (rates <= 1e-8 * max(1.0, abs(u), abs(v), *map(abs, p.values()))).all():
            raise ArgumentError(
                f"expected equilibria where the kinetics are zero, got rates {rates[0]:.3g} and {rates[1]:.3g} at "
                f"u = {u:g}, v = {v:g}; correct equilibria, or leave it out"
            )


def _check_starts(system: System, regime: str) -> None:
    """Check the initial states of a regime, and that its screens take fields."""
    grid, p = system.numerics.grid, system.draw(0, regime)
    for place, family in enumerate(system.regime(regime).initial_conditions):
        first, again = (_called(family.build, grid, p, stream("check", regime, place)) for _ in range(2))
        require_state(first, grid, family.name)
        if not np.isfinite(first).all():
            raise ArgumentError(f"expected finite initial states, got others from {family.name!r}; correct it")
        if not np.array_equal(first, again):
            raise ArgumentError(
                f"expected initial states that depend on grid, coefficients and rng alone, got two different ones "
                f"from {family.name!r}; draw random numbers from rng only"
            )
        frame = np.moveaxis(block_mean(first, system.numerics.stored), 0, -1).astype(np.float32)
        for screen in system.screens:
            reason = _called(screen, np.repeat(frame[None], system.numerics.frames, axis=0))
            if reason is not None and not isinstance(reason, str):
                raise ArgumentError(
                    f"expected screens that return a reason or None, got {reason!r}; return one of the two"
                )


def _called(function: Callable, *arguments: Any) -> Any:
    """Return what a user's function returns; its error becomes a sentence."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except Exception as error:  # whatever a user's function raises
        raise ArgumentError(f"expected {name} to return a result, got {said(error)}; correct it") from error
