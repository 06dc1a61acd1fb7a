"""Windows of stored trajectories as a dataset that PyTorch's `DataLoader` takes, for a training loop of one's own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rdjepa.checks import Count, Size, among, checked, of_class, usable_path
from rdjepa.data import store
from rdjepa.data.fields import block_means, channels_first
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import SPLITS, Key
from rdjepa.data.windows import FORECASTING, Window
from rdjepa.errors import ArgumentError
from rdjepa.pde.system import REGIMES
from rdjepa.systems import family_names


class WindowDataset:
    """Every window of the stored trajectories of some systems, standardized, read from its file when it is asked for.

    It has a length and an item for each index, which is what `torch.utils.data.DataLoader` asks of a dataset; worker
    processes may read it. An item is `Window(context, targets)`, (4, C, H, W) and (5, C, H, W) float32.

    Args:
        data: dataset directory, as `rdjepa data build` or `rdjepa.add_recordings` writes it.
        systems: a name or several.
        split: "pool" (to train on), "validation" or "test".
        regime: "id", "coeff-ood" or "ic-ood".
        grid: points per side; stored fields that are finer are averaged over blocks. As stored when None.
        stride: take every so many frames.
        normalizers: field statistics by system; those of its stored pool when None, which is then read once. In a
            family of equations those of each trajectory, by its key.

    Attributes:
        keys: of the trajectories.
        normalizers: the field statistics.

    Raises:
        ArgumentError: no trajectory of a system, or statistics that lack one.
        DataError: a trajectory that is damaged or shorter than a window, or a grid that does not divide the stored one.
    """

    def __init__(
        self,
        data: str | Path,
        systems: str | Sequence[str],
        split: str = "pool",
        *,
        regime: str = "id",
        grid: int | None = None,
        stride: int = 1,
        normalizers: Mapping[str, Normalizer] | None = None,
    ) -> None:
        self._data, self._grid = usable_path(data, "data"), checked(grid, Size | None, "grid")
        self._spec = replace(FORECASTING, stride=checked(stride, Count, "stride"))
        among(split, SPLITS, "a split")
        among(regime, REGIMES, "a regime")
        given = [systems] if isinstance(systems, str) else of_class(systems, Sequence, "systems")
        names = list(dict.fromkeys(given))
        if not names:
            raise ArgumentError("expected at least one system, got none; name one")
        self.keys = [key for name in names for key in self._stored(name, split, regime)]
        self.normalizers = dict(self._statistics(names) if normalizers is None else normalizers)
        for key in self.keys:
            of_class(self._normalizer(key), Normalizer, f"the field statistics of {key}")
        lengths = [store.get_record(self._data, key).shape[0] for key in self.keys]
        self._ends = np.cumsum([self._spec.count(length) for length in lengths])

    def __len__(self) -> int:
        """Return the number of windows."""
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Window:
        """Read a window.

        Raises:
            IndexError: there are fewer.
            DataError: its file is damaged.
        """
        key, start = self.place(index)
        fields = store.read_window(store.path_of(self._data, key), start, start + self._spec.length)
        return self._spec.cut(channels_first(self._normalizer(key).standardize(self._coarse(fields))), 0)

    def __iter__(self) -> Iterator[Window]:
        """Read one window after the other."""
        return (self[index] for index in range(len(self)))

    def place(self, index: int) -> tuple[Key, int]:
        """Return the key of a window's trajectory, and its first frame.

        Raises:
            ArgumentError: no whole number.
            IndexError: there are fewer windows.
        """
        of_class(index, int | np.integer, "the number of a window")
        number = range(len(self))[index]  # which refuses what lies outside
        which = int(np.searchsorted(self._ends, number, side="right"))
        return self.keys[which], number - int(self._ends[which - 1] if which else 0)

    def _stored(self, name: str, split: str, regime: str) -> list[Key]:
        found = store.keys(self._data, name, split, regime)
        if not found:
            raise ArgumentError(
                f"expected trajectories of {name} ({split}, {regime}) under {self._data}, got none; make some with "
                f"rdjepa data build --systems {name} --out {self._data}, or rdjepa data add"
            )
        return found

    def _statistics(self, names: Sequence[str]) -> Iterator[tuple[str, Normalizer]]:
        for name in names:
            if name in family_names():
                every = [key for key in self.keys if key.system == name]
                yield from ((str(key), self._fitted([key], "trajectory")) for key in every)
            else:
                yield name, self._fitted(self._stored(name, "pool", "id"), "pool")

    def _fitted(self, keys: Sequence[Key], source: str) -> Normalizer:
        return Normalizer.fit((self._coarse(store.get(self._data, key).fields) for key in keys), source)

    def _coarse(self, fields: np.ndarray) -> np.ndarray:
        return fields if self._grid is None else block_means(fields, self._grid)

    def _normalizer(self, key: Key) -> Normalizer:
        found = self.normalizers.get(key.system) or self.normalizers.get(str(key))
        if found is None:
            raise ArgumentError(f"expected the field statistics of {key}, got none; give those of its system")
        return found
