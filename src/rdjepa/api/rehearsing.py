"""Trajectories of the systems that a model was pretrained on, to be rehearsed in adaptation."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rdjepa import forecasters
from rdjepa.checks import Count, checked
from rdjepa.data import store
from rdjepa.data.simulate import simulate
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.io import checkpoint
from rdjepa.progress import Progress
from rdjepa.systems import family_names

REHEARSED = 8  # trajectories of each system


def rehearsal(
    model: str | Path, count: int = REHEARSED, data: str | Path | None = None, progress: Progress | None = None
) -> list[np.ndarray]:
    """Return trajectories that a model was pretrained on, for `adapt(rehearse=...)`.

    They are the first of each system, on the model's grid and standardized as they were in pretraining.

    Args:
        model: what `load` takes; its `data.json` lists its data.
        count: of each system, of a family of equations as many as of all systems; all where there are fewer.
        data: data set that has them; they are simulated again, a second or two each, when None.
        progress: called with the number of trajectories done, their total and the key of the latest.

    Returns:
        (T, H, W, 2) each.

    Raises:
        ArgumentError: less than one, a system that is not known here, recordings without the `data` that has them, or a
            forecaster that nothing was pretrained for.
        CheckpointError: there is no such checkpoint, or it does not name its data.
        DataError: a trajectory that `data` lacks, a damaged one, or other recordings of the same name.
    """
    if str(model) in forecasters.names():
        raise ArgumentError(
            f"expected a checkpoint whose systems are rehearsed, got the forecaster {str(model)!r}, which starts from "
            "none; leave the rehearsal out"
        )
    (_, record), sources = checkpoint.read_config(model), checkpoint.read_sources(model)
    keys, numbers = rehearsed_keys(sources, checked(count, Count, "count")), itertools.count(1)
    recorded = record.pretraining.get("recorded", [])
    if recorded and data is None:
        raise ArgumentError(
            f"expected a data set that has the recordings {', '.join(recorded)}, which cannot be simulated again, got "
            "none; give it with --rehearse-data (data=)"
        )

    def get(key: Key) -> Trajectory:
        found = simulate(key.system, key.index, key.regime, key.split) if data is None else store.get(data, key)
        if key.system in recorded and store.checksum(found.fields) != sources.trajectories[str(key)]:
            raise DataError(
                f"expected the recordings {key.system} that the model was pretrained on, got others of this name in "
                f"{data} ({key} first); give the data set that has them"
            )
        if progress:
            progress(next(numbers), len(keys), str(key))
        return found.coarsened(record.model["grid"])

    return standardized(sources, keys, get)


def rehearsed_keys(sources: checkpoint.Sources, count: int) -> list[Key]:
    """Return the keys of the first trajectories of each system among the data of a model.

    A family has as many as all systems together, since each of its trajectories is another equation.
    """
    every = sorted(map(Key.parse, sources.trajectories), key=lambda key: key.index)
    single = [name for name in sources.systems if name not in family_names()]
    counts = {name: count if name in single else count * max(1, len(single)) for name in sources.systems}
    return [key for name, most in counts.items() for key in [each for each in every if each.system == name][:most]]


def standardized(sources: checkpoint.Sources, keys: list[Key], get: Callable[[Key], Trajectory]) -> list[np.ndarray]:
    """Return trajectories, standardized with the statistics of their system; in a family, with their own."""
    known = sources.normalizers
    return [Normalizer.from_dict(known.get(key.system) or known[str(key)]).standardize(get(key).fields) for key in keys]
