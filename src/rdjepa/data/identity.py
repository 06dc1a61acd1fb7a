"""The identity of a system's data: what determines the numbers of its trajectories, without any description.

Numerics, ranges and thresholds enter as they are. Code (kinetics, initial conditions, integrators, random streams)
enters as a fingerprint: a hash over a few numbers that the code computes. Names, titles, notes and references are left
out. The code of a screen or of a distance is not measured, nor the equations that a family keeps its distance from:
whoever changes it raises `System.revision` of all that use it.

Measuring a fingerprint compiles a kernel, so those of the package's systems are stored in systems/fingerprints.json,
which this command writes:

    python -m rdjepa.data.identity
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

from rdjepa import systems
from rdjepa.errors import DataError
from rdjepa.io import sealed
from rdjepa.pde.sampling import stream
from rdjepa.pde.system import System

KEPT = Path(systems.__file__).with_name("fingerprints.json")
SIZE, BLOCKS, STEPS = 48, 4, 10  # grid points and stored block means per side, and steps, of a measurement


def identity(system: System) -> dict[str, Any]:
    """Return what determines the trajectories of a system, as JSON values.

    For a system of the package the stored fingerprint is used, and nothing is measured.
    """
    return {
        "family": system.family or system.name,
        "revision": system.revision,
        "numerics": _plain(system.numerics),
        **({"apart": _apart(system)} if system.apart else {}),
        "screens": [[_name(screen), _settings(screen)] for screen in system.screens],
        "regimes": {
            name: {
                # A list, since the order in which coefficients are drawn changes their values.
                "boxes": [[[key, *_plain(span)] for key, span in box.ranges.items()] for box in regime.boxes],
                "initial_conditions": len(regime.initial_conditions),
            }
            for name, regime in system.regimes.items()
        },
        "fingerprint": kept(system) or fingerprint(system),
    }


def digest(system: System) -> str:
    """Return the SHA-256 of the identity in canonical JSON."""
    return hashed(identity(system))


def hashed(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of canonical JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def fingerprint(system: System) -> str:
    """Measure 16 hexadecimal digits of a hash over coefficients, reaction rates and a few steps of every regime."""
    from rdjepa.pde.rollout import rollout  # imports numba

    numerics = system.numerics
    size = min(SIZE, numerics.size)
    blocks = next(count for count in range(BLOCKS, 0, -1) if size % count == 0)
    span = STEPS * numerics.dt
    tiny = replace(system, numerics=replace(numerics, size=size, stored=blocks, first=0.0, last=span, frames=2))
    numbers: list[float] = []
    for name, regime in system.regimes.items():
        p = tiny.draw(0, name)
        numbers += p.values()
        for place, box in enumerate(regime.boxes):
            if box.derive:
                numbers += box.draw(stream("fingerprint", name, place, "coefficients")).values()
        states = [tiny.start(p, 0, name).state]
        for place, family in enumerate(regime.initial_conditions):
            states.append(family.build(tiny.numerics.grid, p, stream("fingerprint", name, place)))
        for place, state in enumerate(states):
            # With noise at every point no mean is zero up to rounding error, and a state at rest near the walls
            # depends on the boundary condition.
            noise = stream("fingerprint", name, place, "noise").random(state.shape)
            frames = rollout(tiny, p, state + 0.1 * abs(state).max() * noise)
            first = frames[0].astype(float)
            rates = system.reaction(first[..., 0], first[..., 1], p)
            numbers += [*frames.ravel().tolist(), *(float(x) for rate in rates for x in rate.ravel())]
    # Six digits: another processor or library differs in the last of sixteen, a change of the equation in an early one.
    return hashlib.sha256(" ".join(f"{number:.5e}" for number in numbers).encode()).hexdigest()[:16]


def kept(system: System) -> str | None:
    """Return the stored fingerprint of a system of the package; None for any other, a changed copy of one included."""
    found = sealed.read(KEPT, dict[str, str], "install the package again").get(system.name)
    return found if found and systems.get(system.name) is system else None


def confirm(system: System) -> None:
    """Measure the fingerprint of a system of the package again and compare it with the stored one.

    Raises:
        DataError: they differ.
    """
    known = kept(system)
    if known is not None and fingerprint(system) != known:
        raise DataError(
            f"expected {system.name} to make the numbers of its revision {system.revision}, got others; undo the "
            "change of its code, or raise its revision and run: python -m rdjepa.data.identity"
        )


def _apart(system: System) -> dict[str, Any]:
    assert system.apart is not None
    ranges = {each.system.name: _plain((each.u, each.v)) for each in system.apart.references}
    return {"least": _plain(system.apart.least), "references": ranges}


def _name(value: Callable[..., Any]) -> str:
    return _name(value.func) if isinstance(value, partial) else getattr(value, "__name__", type(value).__name__)


def _settings(screen: Callable[..., Any]) -> Any:
    """Return the thresholds of a screen that is a dataclass, or a function with some of its arguments given."""
    if isinstance(screen, partial):
        return _plain({"": screen.args, **screen.keywords})
    return _plain(screen) if is_dataclass(screen) else {}


def _plain(value: Any) -> Any:
    """Return a value as JSON: a dataclass as its fields, whole numbers as int, a function by its name.

    So 2 and 2.0 give the same identity.
    """
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, Real):
        number = float(value)
        return int(number) if number.is_integer() else number
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _name(value)


def main() -> None:
    """Measure the fingerprints of the systems of the package and store them."""
    found = {name: fingerprint(systems.get(name)) for name in systems.every_name()}
    sealed.write(KEPT, found)


if __name__ == "__main__":
    main()
