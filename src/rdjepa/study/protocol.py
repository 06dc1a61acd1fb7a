"""The paper's lists and counts: which systems pretrain, which are held out, how many trajectories each has (S1.1)."""

import math
from collections.abc import Sequence

from rdjepa.data import splits
from rdjepa.data.trajectory import SPLITS, Key
from rdjepa.errors import ArgumentError
from rdjepa.systems import HELD_OUT, SOURCES, WALLS, Role, every_name
from rdjepa.systems import role as registered_role

SYSTEMS = SOURCES + HELD_OUT + WALLS

SUPPORT_SEEDS = (777, 778, 779)
WALL_SUPPORT_SEEDS = (777, 778, 780)  # as in the paper (S3.1)
BUDGETS = {"source": (5, 10, 20), "held-out": (1, 5, 10), "wall": (1, 5, 10)}  # nothing is adapted to a family

Part = tuple[str, str]  # split, regime

_SOURCE: dict[Part, int] = {
    ("pool", "id"): 1000,
    ("validation", "id"): 50,
    ("test", "id"): 100,
    ("test", "coeff-ood"): 100,
    ("test", "ic-ood"): 100,
}
_HELD_OUT: dict[Part, int] = {("pool", "id"): 1000, ("test", "id"): 300}
_WALL: dict[Part, int] = {("pool", "id"): 20, ("validation", "id"): 5, ("test", "id"): 300}
_FAMILY: dict[Part, int] = {("pool", "id"): 10_000, ("validation", "id"): 50}  # not the paper's: as many as wanted


def role(system: str) -> Role:
    """Return the role of a system: "source", "held-out", "wall", "family"; one from a user's file is "held-out"."""
    return registered_role(system) if system in every_name() else "held-out"


def counts(system: str) -> dict[Part, int]:
    """Return the number of trajectories by split and regime in the full benchmark; 11,625 over `SYSTEMS`."""
    return dict({"source": _SOURCE, "held-out": _HELD_OUT, "wall": _WALL, "family": _FAMILY}[role(system)])


def support(system: str, k: int, seed: int) -> list[Key]:
    """Return the keys of the support: the first K of the pool's permutation under the support seed (S3.1)."""
    return [Key(system, "pool", "id", i) for i in splits.support(counts(system)["pool", "id"], k, seed)]


def support_seeds(system: str) -> tuple[int, ...]:
    """Return the three support seeds of a system's study (S3.1)."""
    return WALL_SUPPORT_SEEDS if role(system) == "wall" else SUPPORT_SEEDS


def budgets(system: str) -> tuple[int, ...]:
    """Return the numbers K of support trajectories in a system's study (S3.1)."""
    return BUDGETS[role(system)]


def keys(
    systems: Sequence[str] = SYSTEMS, splits: Sequence[str] = SPLITS, scale: float = 1.0, count: int | None = None
) -> list[Key]:
    """Return the keys of the benchmark, or of a part of it, in a fixed order.

    Args:
        systems: names of systems.
        splits: among pool, validation and test.
        scale: share of every count, rounded up, so that no part is empty; above 0.
        count: at most this many of every part.

    Raises:
        ArgumentError: an unknown split, a scale that is not in (0, 1], or a count below one.
    """
    unknown = [split for split in splits if split not in SPLITS]
    if unknown or not splits:
        raise ArgumentError(f"expected splits among {', '.join(SPLITS)}, got {', '.join(splits)!r}; name some of them")
    if not 0 < scale <= 1:
        raise ArgumentError(f"expected a scale above 0 and up to 1, got {scale:g}; 1 is the full benchmark")
    if count is not None and count < 1:
        raise ArgumentError(f"expected a count of at least one trajectory, got {count}; raise it")
    found = []
    for system in systems:
        for (split, regime), full in counts(system).items():
            number = math.ceil(full * scale - 1e-9)  # 50 * 0.14 is slightly above 7 in floating point
            if split in splits:
                found += [Key(system, split, regime, i) for i in range(min(number, count or number))]
    return found
