"""Simulation of one trajectory from its key."""

from importlib.metadata import version
from pathlib import Path

from rdjepa.checks import Index, checked
from rdjepa.data.trajectory import SPLITS, Key, Trajectory
from rdjepa.errors import ArgumentError, SimulationError
from rdjepa.pde.screening import first_reason
from rdjepa.pde.system import System
from rdjepa.systems import get
from rdjepa.version import __version__

ATTEMPTS = 100


def simulate(name: str | Path | System, seed: int = 0, regime: str = "id", split: str = "pool") -> Trajectory:
    """Draw, integrate and screen trajectory number `seed` of a system; draw again until it passes.

    The same arguments give the same bits on the same platform, whatever was simulated before.

    Args:
        name: a name from `rdjepa.systems.names()` or `wall_names()`, a .py file that defines `SYSTEM`, or a system
            itself.
        seed: position in the split, from 0.
        regime: "id", and for the five source systems also "coeff-ood" and "ic-ood" (S1.1 of the paper).
        split: "pool", "validation" or "test".

    Returns:
        The saved frames as the system's `numerics` define them, float32, in the units of the equation; for the
        package's systems 40 frames on 128 x 128 points.

    Raises:
        ArgumentError: an unknown name, regime or split, or a negative seed.
        SimulationError: no draw passed the screens.
    """
    from rdjepa.pde.rollout import rollout  # imports numba, which reading a trajectory does not need

    system = name if isinstance(name, System) else get(name)
    system.regime(regime)
    if split not in SPLITS:
        raise ArgumentError(f"expected a split, got {split!r}; known: {', '.join(SPLITS)}")
    seed = checked(seed, Index, "seed")
    rejected: list[str] = []
    for attempt in range(ATTEMPTS):
        p = system.draw(seed, regime, split, attempt)
        start = system.start(p, seed, regime, split, attempt)
        fields = rollout(system, p, start.state)
        reason = first_reason(system.screens, fields)
        if reason is None:
            return Trajectory(
                fields=fields,
                times=system.numerics.times,
                coefficients=p,
                key=Key(system.name, split, regime, seed),
                attempt=attempt,
                rejected=tuple(rejected),
                initial_condition=start.family,
                length=system.numerics.length,
                boundary=str(system.numerics.boundary),
                software={"rdjepa": __version__} | {name: version(name) for name in ("numpy", "scipy", "numba")},
            )
        rejected.append(reason)
    key = Key(system.name, split, regime, seed)
    raise SimulationError(
        f"expected a trajectory of {key} to pass its screens, got {ATTEMPTS} rejections, for example: "
        f"{'; '.join(sorted(set(rejected))[:3])}; widen the screens, or narrow the ranges"
    )
