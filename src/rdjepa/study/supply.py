"""Trajectories by key and the field statistics of each system, for the cells of a study.

Trajectories come from a dataset where one is given and has them, and are simulated otherwise. The statistics of a
system are those of the first trajectories of its pool, so they are the same for all of its cells and hold no test
trajectory (S2.6, S3.1).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from rdjepa import systems
from rdjepa.data import manifest
from rdjepa.data.acquire import Acquirer
from rdjepa.data.build import BuildReport, build, trajectory_bytes
from rdjepa.data.parallel import completed
from rdjepa.data.statistics import Moments, Normalizer, fold
from rdjepa.data.store import checksum
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError
from rdjepa.io import sealed
from rdjepa.io.checkpoint import Sources
from rdjepa.progress import Progress
from rdjepa.study import protocol
from rdjepa.study.cell import Cell
from rdjepa.study.contenders import rehearsed_keys
from rdjepa.study.fingerprints import recipe_fingerprint
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import Profile
from rdjepa.study.record import CellRecord


@dataclass(frozen=True)
class _Statistics(Normalizer):
    """A normalizer, and the number of trajectories that it was taken from."""

    trajectories: int = 0


@dataclass(frozen=True)
class Supply:
    """Trajectories and statistics for the cells of one study directory; small enough to be sent to a worker.

    Attributes:
        root: study directory; simulated trajectories are kept in its folder `data`.
        data: dataset that is read first, or None.
        limit: bytes of simulated trajectories to keep.
        grid: points per side; stored frames that are finer are averaged over blocks.
    """

    root: Path
    data: Path | None = None
    limit: int = 20 * 2**30
    grid: int = 128

    @property
    def acquirer(self) -> Acquirer:
        """The reader that simulates what no directory has."""
        return Acquirer(self.root / "data", self.data, self.limit)

    def get(self, key: Key) -> Trajectory:
        """Return the trajectory of a key."""
        return self.acquirer.get(key).coarsened(self.grid)

    def lacks(self, keys: Iterable[Key]) -> list[Key]:
        """Return the keys that are neither in the dataset nor in the study directory."""
        return self.acquirer.lacks(keys)

    def normalizer(self, system: str, count: int) -> Normalizer:
        """Read the field statistics of the first `count` trajectories of a pool, which `prepare` wrote.

        Raises:
            DataError: it did not write them.
        """
        path = self._statistics(system, count)
        if not self.has_statistics(system, count):
            raise DataError(f"expected field statistics of {system} at {path}, got no file; start the study again")
        found = sealed.read(path, _Statistics, f"delete {path.parent}, which is made again")
        return Normalizer(found.mean, found.std, found.source)

    def take_statistics(self, records: Iterable[CellRecord], names: Collection[str]) -> None:
        """Keep the field statistics of some systems that finished cells have in their records, if of the same data."""
        for record in records:
            content, system = record["identity"], record["system"]
            if system not in names or self.has_statistics(system, content["statistics"]):
                continue
            if content["grid"] == self.grid and content["data"] == recipe_fingerprint(system):
                self._write_statistics(system, content["statistics"], Normalizer.from_dict(record["normalizer"]))

    def take_pretraining_statistics(self, sources: Sources, names: Collection[str], count: int) -> None:
        """Keep the field statistics that a model was pretrained with (S2.6), of systems of which it saw the same pool.

        They are those that would be computed here, without simulating the pool again: the checkpoint lists all of its
        trajectories, and the first one, simulated here, must have its checksum. Otherwise nothing is taken.

        Args:
            sources: data of a checkpoint of this grid.
            names: systems.
            count: number of pool trajectories that the statistics are taken from.
        """
        for system in names:
            if self.has_statistics(system, count) or system not in sources.normalizers:
                continue
            keys = pool_keys(system, count)
            seen = {key for key in sources.trajectories if key.startswith(f"{system}/")}
            if seen == set(map(str, keys)) and sources.counts.get(system, len(keys)) == len(keys):
                first = self.acquirer.get(keys[0], keep=False)
                if checksum(first.fields) == sources.trajectories[str(keys[0])]:
                    self._write_statistics(system, count, Normalizer.from_dict(sources.normalizers[system]))

    def has_statistics(self, system: str, count: int) -> bool:
        """Return whether `prepare` wrote these statistics."""
        return self._statistics(system, count).is_file()

    def check(self, names: Iterable[str]) -> None:
        """Refuse a dataset, or kept trajectories, of another recipe.

        Raises:
            DataError: there is no such directory, or the recipe of a system differs.
        """
        if self.data is not None and not self.data.is_dir():
            raise DataError(
                f"expected a dataset at {self.data}, got none; make it with: rdjepa data build --out {self.data}"
            )
        chosen = [systems.get(name) for name in names]
        for base in (self.data, self.root / "data", self._own):
            if base is not None and (base / manifest.RECIPE).is_file():
                manifest.check(base, chosen)
            elif base is not None and base == self.data:
                manifest.check_trajectories(base, chosen)

    def prepare(
        self,
        cells: Sequence[Cell],
        profile: Profile,
        *,
        workers: int = 1,
        scheduler: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Compute the statistics that some cells need, and simulate their trajectories up to the limit."""
        names = list(dict.fromkeys(cell.system for cell in cells))
        count = profile.statistics
        pools = {name: pool_keys(name, count) for name in names if not self.has_statistics(name, count)}
        jobs = [(self.acquirer, key, self.grid) for keys in pools.values() for key in keys]
        found: dict[Key, Moments] = {}
        left = {name: len(keys) for name, keys in pools.items()}
        # More would be deleted again to keep to the limit; a cell simulates what it does not find.
        keys = [key for key in keys_of(cells, profile) if not self.acquirer.is_given(key)]
        sizes = np.cumsum([trajectory_bytes(systems.get(key.system)) for key in keys])
        kept = keys[: np.searchsorted(sizes, self.limit, "right")]
        wanted = self.lacks(kept)
        total = len(jobs) + len(wanted)
        if total:
            names = list(dict.fromkeys([*names, *(key.system for key in keys)]))  # some are rehearsed alone
            manifest.claim(self.root / "data", map(systems.get, names))
        called = [f"moments {key}" for _, key, _ in jobs]
        with completed(moments, jobs, called, workers=workers, scheduler=scheduler, held=2) as results:
            for position, result in results:
                if isinstance(result, Exception):
                    raise result
                key = jobs[position][1]
                found[key] = result
                left[key.system] -= 1
                if not left[key.system]:  # written at once: an interrupt loses those of one system
                    pool = pools[key.system]
                    self._write_statistics(key.system, count, Normalizer.of(fold(found[each] for each in pool)))
                if progress:
                    progress(len(found), total, str(key))
        self.acquirer.make_room(sum(trajectory_bytes(systems.get(key.system)) for key in wanted), kept)
        built = build(
            self.root / "data",
            wanted,
            workers=workers,
            scheduler=scheduler,
            progress=None if progress is None else lambda done, _, what: progress(len(jobs) + done, total, what),
        )
        _all_made(built)

    def prepare_pretrainings(
        self,
        pretrainings: Sequence[Pretraining],
        *,
        workers: int = 1,
        scheduler: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Simulate the trajectories that some pretrainings read, unless the given data set has all of them.

        A pretraining reads one directory, and every trajectory of it, so what it needs is not part of the cache.
        """
        wanted = self.lacking_for(pretrainings)
        if wanted:
            own = self._own
            manifest.claim(own, [systems.get(name) for name in dict.fromkeys(key.system for key in wanted)])
            _all_made(build(own, wanted, workers=workers, scheduler=scheduler, progress=progress))

    def lacking_for(self, pretrainings: Iterable[Pretraining]) -> list[Key]:
        """Return the keys of the trajectories that some pretrainings read and that have to be simulated."""
        keys = [key for each in pretrainings if self.dataset_of(each) == self._own for key in each.reads()]
        return Acquirer(self._own).lacks(dict.fromkeys(keys))

    def dataset_of(self, pretraining: Pretraining) -> Path:
        """Return the directory that a pretraining reads: the given data set if it has all that is needed, or an own."""
        if self.data is None or Acquirer(self.data).lacks(pretraining.reads()):
            return self._own
        return self.data

    @property
    def _own(self) -> Path:
        return self.root / "pretrainings" / "datasets"

    def _statistics(self, system: str, count: int) -> Path:
        """Return the place of field statistics; data of another recipe have others."""
        return self.root / "statistics" / f"{system}-{recipe_fingerprint(system)[:12]}-{count}-{self.grid}.json"

    def _write_statistics(self, system: str, count: int, normalizer: Normalizer) -> None:
        trajectories = len(pool_keys(system, count))
        sealed.write(self._statistics(system, count), asdict(normalizer) | {"trajectories": trajectories})


def _all_made(built: BuildReport) -> None:
    """Refuse a build that lacks a trajectory.

    Raises:
        DataError: it does.
    """
    if built.failed:
        key, reason = next(iter(built.failed.items()))
        raise DataError(f"expected every trajectory to be made, got none for {key} ({reason}); check the system")


def pool_keys(system: str, count: int) -> list[Key]:
    """Return the keys of the pool trajectories that a system's statistics are taken from."""
    return [Key(system, "pool", "id", i) for i in range(min(count, protocol.counts(system)["pool", "id"]))]


def keys_of(cells: Iterable[Cell], profile: Profile) -> list[Key]:
    """Return the keys of the trajectories of some cells, each once: support, test, and what is rehearsed."""
    return list(
        dict.fromkeys(
            key
            for cell in cells
            for key in (*cell.support(), *cell.test(profile.test), *rehearsed_keys(cell.forecaster, profile))
        )
    )


def moments(acquirer: Acquirer, key: Key, grid: int) -> Moments:
    """Return the moments of one trajectory on a grid; one that has to be simulated is not kept."""
    return Moments.of(acquirer.get(key, keep=False).coarsened(grid).fields)
