"""Trajectories made when they are asked for, within a size that the user sets.

The full benchmark is 61 GB and two core-hours, so a part of it can be made again faster than it is fetched.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from rdjepa.data import store
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import DataError


class Cache:
    """A dataset directory that never grows beyond a limit: the trajectory used longest ago goes first.

    Args:
        base: dataset directory; trajectories already there count and may be dropped.
        limit: bytes of trajectory files to keep at most.
        sources: system name -> file that defines it, for systems of the user.

    Raises:
        DataError: a limit below one byte.
    """

    def __init__(self, base: Path | str, limit: int, sources: Mapping[str, str] | None = None) -> None:
        if limit < 1:
            raise DataError(f"expected a limit of at least one byte, got {limit}; raise it")
        self.base, self.limit, self.sources = Path(base), limit, dict(sources or {})

    def get(self, key: Key) -> Trajectory:
        """The trajectory of a key: read if it lies here whole, simulated and kept otherwise.

        One larger than the limit is returned and not kept.
        """
        path = store.path_of(self.base, key)
        try:
            trajectory = store.read(path)
        except DataError:
            source = self.sources.get(key.system, key.system)
            trajectory = simulate(source, seed=key.index, regime=key.regime, split=key.split)
            store.write(self.base, trajectory)
            self._shrink()
            return trajectory
        with contextlib.suppress(FileNotFoundError):  # another process on this directory may have dropped it
            os.utime(path)
        return trajectory

    def size(self) -> int:
        """Bytes of the trajectory files that lie here."""
        return sum(size for _, size, _ in self._files())

    def _files(self) -> list[tuple[int, int, Path]]:
        """Time of last use, bytes and path of every file, in the order of last use."""
        found = []
        for path in (store.path_of(self.base, key) for key in store.keys(self.base)):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        return sorted(found)

    def _shrink(self) -> None:
        known = self._files()
        total = sum(size for _, size, _ in known)
        for _, size, path in known:
            if total <= self.limit:
                return
            path.unlink(missing_ok=True)
            total -= size
