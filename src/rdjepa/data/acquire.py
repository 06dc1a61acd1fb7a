"""Read or simulate: the only place that decides where the trajectory of a key comes from, and whether it is kept.

The full benchmark is 61 GB and two core-hours, so a part of it can be made again faster than it is fetched.
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
    """Trajectories by key: read from a data set that has them, else from a directory of our own, else simulated.

    The directory of our own never grows beyond a limit: the trajectory used longest ago goes first. Small enough to be
    sent to a worker.

    Attributes:
        out: directory into which simulated trajectories are written; those already there count and may be dropped.
        data: data set that is read first and never written, or None.
        limit: bytes of trajectory files to keep in `out` at most; None for no limit.
        sources: system name -> file that defines it, for systems of the user.

    Raises:
        DataError: a limit below one byte.
    """

    out: Path
    data: Path | None = None
    limit: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a limit that means nothing."""
        if self.limit is not None and self.limit < 1:
            raise DataError(f"expected a limit of at least one byte, got {self.limit}; raise it")

    def get(self, key: Key, keep: bool = True) -> Trajectory:
        """Return the trajectory of a key.

        Args:
            key: of the trajectory.
            keep: write it to `out` if it has to be simulated because no file is there. One larger than the limit is
                returned and not kept.

        Raises:
            DataError: the file in `data` is damaged; a damaged one in `out` is made again.
            SimulationError: no draw passed the screens.
        """
        if self.is_given(key):
            assert self.data is not None
            return store.read(store.path_of(self.data, key))
        path = store.path_of(self.out, key)
        if not keep and not path.is_file():
            return self._simulate(key)
        try:
            trajectory = store.read(path)
        except DataError:
            return self.make(key)
        if self.limit is not None:
            with contextlib.suppress(FileNotFoundError):  # another process on this directory may have dropped it
                os.utime(path)
        return trajectory

    def make(self, key: Key) -> Trajectory:
        """Simulate a trajectory, whatever is there, and write it to `out`."""
        trajectory = self._simulate(key)
        store.write(self.out, trajectory)
        self._shrink()
        return trajectory

    def lacks(self, keys: Iterable[Key]) -> list[Key]:
        """Return those of the keys that have a file neither in `data` nor in `out`."""
        return [key for key in keys if not self.is_given(key) and not store.path_of(self.out, key).is_file()]

    def unsound(self, keys: Iterable[Key]) -> list[Key]:
        """Return those of the keys that have no whole file in `out`, every checksum compared."""
        return [key for key in keys if not store.is_complete(store.path_of(self.out, key), verify=True)]

    def is_given(self, key: Key) -> bool:
        """Return whether `data` has a file of this key."""
        return self.data is not None and store.path_of(self.data, key).is_file()

    def size(self) -> int:
        """Return the bytes of the trajectory files in `out`."""
        return sum(size for _, size, _ in self._files())

    def _simulate(self, key: Key) -> Trajectory:
        source = self.sources.get(key.system, key.system)
        return simulate(source, seed=key.index, regime=key.regime, split=key.split)

    def _files(self) -> list[tuple[int, int, Path]]:
        """Time of last use, bytes and path of every file, in the order of last use."""
        found = []
        for path in (store.path_of(self.out, key) for key in store.keys(self.out)):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        return sorted(found)

    def _shrink(self) -> None:
        if self.limit is None:
            return
        known = self._files()
        total = sum(size for _, size, _ in known)
        for _, size, path in known:
            if total <= self.limit:
                return
            path.unlink(missing_ok=True)
            total -= size
