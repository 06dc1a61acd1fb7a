"""Leaks: trajectories in the list that a checkpoint keeps of its data which pretraining may not use."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rdjepa.data.trajectory import Key
from rdjepa.io import checkpoint
from rdjepa.io.provenance import fingerprint
from rdjepa.systems import HELD_OUT, WALLS, every_name, get, role


def leaks(trajectories: Iterable[str], own: Collection[str] = ()) -> list[str]:
    """Return the trajectories that pretraining may not use, one line each.

    Args:
        trajectories: keys, as in a checkpoint's `data.json`.
        own: systems that the run was asked to pretrain on, allowed in addition to the registered sources and families
            unless the paper holds them out.

    Returns:
        One line per leak: of a system that is no source, not of the pool, or out of distribution.
    """
    sources = {name for name in every_name() if role(name) in ("source", "family")}
    allowed = sources | (set(own) - {*HELD_OUT, *WALLS})
    found = []
    for text in trajectories:
        key = Key.parse(text)
        if key.system not in allowed:
            found.append(f"{text}: {key.system} is held out")
        elif key.split != "pool" or key.regime != "id":
            found.append(f"{text}: not of the pool in distribution")
    return found


def audit(source: str) -> tuple[str, list[str]]:
    """Return the fingerprint of the data of a checkpoint, by name or directory, and its leaks.

    Raises:
        CheckpointError: there is no such checkpoint, or it does not name its data.
    """
    _, record = checkpoint.read_config(source)
    trajectories = checkpoint.read_sources(source).trajectories
    found = leaks(trajectories, own=record.pretraining.get("systems", ()))
    found += _too_near({Key.parse(text).system for text in trajectories}, record.pretraining.get("nearest", {}))
    data_fingerprint = fingerprint(trajectories)
    recorded = record.pretraining.get("data", data_fingerprint)
    if recorded != data_fingerprint:
        found.append(f"data.json: its fingerprint is {data_fingerprint[:12]}, the run recorded {recorded[:12]}")
    return data_fingerprint, found


def _too_near(systems: Collection[str], nearest: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for every family whose recorded distance to what is held out is missing or too small."""
    found = []
    for name in sorted(systems):
        apart = get(name).apart if name in every_name() else None
        distance = nearest.get(name, {}).get("distance", 0.0)
        if apart and distance < apart.least:
            found.append(f"{name}: its recorded distance to what is held out is {distance:.3g}, below {apart.least:g}")
    return found
