"""Simulation of one trajectory from its key."""

from importlib.metadata import version
from pathlib import Path

import numpy as np

from rdjepa.checks import Index, checked
from rdjepa.data.trajectory import SPLITS, Key, Trajectory
from rdjepa.errors import ArgumentError, SimulationError
from rdjepa.pde.screening import first_reason, tally
from rdjepa.pde.system import System
from rdjepa.systems import get
from rdjepa.version import __version__

ATTEMPTS = 100


def simulate(name: str | Path | System, seed: int = 0, regime: str = "id", split: str = "pool") -> Trajectory:
    """Draw, integrate and screen trajectory number `seed` of a system; draw again until it passes.

    The same arguments give the same bits on the same platform, whatever was simulated before.

    Args:
        name: a name from `rdjepa.systems.names()`, `wall_names()` or `family_names()`, a .py file that defines
            `SYSTEM`, or a system itself.
        seed: position in the split, from 0.
        regime: "id", and for the five source systems also "coeff-ood" and "ic-ood" (S1.1 of the paper).
        split: "pool", "validation" or "test".

    Returns:
        The saved frames as the system's `numerics` define them, float32, in the units of the equation; for the
        package's systems 40 frames on 128 x 128 points.

    Raises:
        ArgumentError: an unknown name, regime or split, a negative seed, or a system that cannot be simulated.
        SimulationError: none of `ATTEMPTS` draws was finite and passed the screens; the message counts the reasons.
    """
    from rdjepa.pde.contract import check_declaration  # imports numba, which reading a trajectory does not need
    from rdjepa.pde.rollout import rollout

    system = name if isinstance(name, System) else get(name)
    if system is name:
        check_declaration(system)
    system.regime(regime)
    if split not in SPLITS:
        raise ArgumentError(f"expected a split, got {split!r}; known: {', '.join(SPLITS)}")
    seed = checked(seed, Index, "seed")
    key = Key(system.name, split, regime, seed)
    rejected: list[str] = []
    for attempt in range(ATTEMPTS):
        p = system.draw(seed, regime, split, attempt)
        start = system.start(p, seed, regime, split, attempt)
        with np.errstate(all="ignore"):  # a draw that blows up is rejected
            fields = rollout(system, p, start.state)
        reason, nearest = first_reason(system.screens, fields), None
        if system.apart and reason is None:
            nearest = system.apart.nearest(system, p, fields)
            if not nearest.distance >= system.apart.least:  # nor where it is NaN
                reason = f"distance {nearest.distance:.3g} to {nearest.name} below {system.apart.least:g}"
        if reason is None:
            return Trajectory(
                fields=fields,
                times=system.numerics.times,
                coefficients=p,
                key=key,
                attempt=attempt,
                rejected=tuple(rejected),
                initial_condition=start.family,
                length=system.numerics.length,
                boundary=str(system.numerics.boundary),
                kind=system.kind(seed, regime),
                nearest=nearest,
                software={"rdjepa": __version__} | {name: version(name) for name in ("numpy", "scipy", "numba")},
            )
        rejected.append(reason)
    raise SimulationError(
        f"expected a trajectory of {key} to pass its screens, got {ATTEMPTS} rejections: "
        + "; ".join(f"{count} x {reason}" for reason, count in tally(rejected).items())
        + "; widen the screens, or narrow the ranges"
    )
