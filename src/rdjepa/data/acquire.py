"""Read or simulate: the only place that decides where the trajectory of a key comes from, and whether it is kept.

The full benchmark is 61 GB and takes two core-hours, so a part of it is often simulated faster than downloaded.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rdjepa.data import store
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError


@dataclass(frozen=True)
class Acquirer:
    """Trajectories by key: read from the data set `data`, else from the directory `out`, else simulated.

    The directory `out` is a cache: it never grows beyond a limit, and the least recently used trajectory is deleted
    first. An instance is small and pickles, so it can be sent to a worker.

    Attributes:
        out: directory into which simulated trajectories are written; existing ones count and may be deleted.
        data: data set that is read first and never written, or None.
        limit: largest total size of the trajectory files in `out`, in bytes; None for no limit.
        sources: system name -> file that defines it, for a user's systems.

    Raises:
        DataError: a limit below one byte.
    """

    out: Path
    data: Path | None = None
    limit: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the limit."""
        if self.limit is not None and self.limit < 1:
            raise DataError(f"expected a limit of at least one byte, got {self.limit}; raise it")

    def get(self, key: Key, keep: bool = True) -> Trajectory:
        """Return the trajectory of a key.

        Args:
            key: of the trajectory.
            keep: write it to `out` if it has to be simulated because no file is there. One larger than the limit is
                returned and not kept.

        Raises:
            DataError: the file in `data` is damaged; a damaged one in `out` is simulated again.
            SimulationError: no draw passed the screens.
        """
        if self.is_given(key):
            assert self.data is not None
            return store.get(self.data, key)
        path = store.path_of(self.out, key)
        if not keep and not path.is_file():
            return self._simulate(key)
        try:
            trajectory = store.get(self.out, key)
        except DataError:
            return self.make(key)
        if self.limit is not None:
            # The time of last use is the modification time, since many disks do not record access times. Another
            # process may have deleted the file meanwhile.
            with contextlib.suppress(FileNotFoundError):
                os.utime(path)
        return trajectory

    def make(self, key: Key) -> Trajectory:
        """Simulate a trajectory, even if it is stored already, and write it to `out`."""
        trajectory = self._simulate(key)
        store.write(self.out, trajectory)
        self.make_room()
        return trajectory

    def lacks(self, keys: Iterable[Key]) -> list[Key]:
        """Return the keys that have a file neither in `data` nor in `out`."""
        return [key for key in keys if not self.is_given(key) and not store.path_of(self.out, key).is_file()]

    def unsound(self, keys: Iterable[Key]) -> list[Key]:
        """Return the keys that have no whole file in `out`; reads every file and compares its checksum."""
        return [key for key in keys if not store.has(self.out, key, verify=True)]

    def is_given(self, key: Key) -> bool:
        """Return whether the data set `data` has a file of this key."""
        return self.data is not None and store.path_of(self.data, key).is_file()

    def make_room(self, size: int = 0, keep: Iterable[Key] = ()) -> None:
        """Delete the least recently used files in `out` until so many bytes more are within the limit; some last.

        Args:
            size: bytes that somebody else is about to write.
            keep: keys of the files that are deleted last.
        """
        if self.limit is None:
            return
        last, known = {store.path_of(self.out, key) for key in keep}, self._files()
        total = size + sum(size for _, size, _ in known)
        for _, size, path in sorted(known, key=lambda file: file[2] in last):
            if total <= self.limit:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _simulate(self, key: Key) -> Trajectory:
        source = self.sources.get(key.system, key.system)
        return simulate(source, seed=key.index, regime=key.regime, split=key.split)

    def _files(self) -> list[tuple[int, int, Path]]:
        """Return (time of last use in ns, size in bytes, path) of every file, least recently used first."""
        found = []
        for path in (store.path_of(self.out, key) for key in store.keys(self.out)):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        return sorted(found)
