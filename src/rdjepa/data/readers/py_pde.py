"""Files that py-pde's FileStorage writes (Zwicker, JOSS 5, 2158, 2020)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.checks import Index, checked
from rdjepa.data.readers.geometry import mixed_sides
from rdjepa.data.readers.held import held
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Lazy, Recording
from rdjepa.io import sealed


def fits(file: h5py.File) -> bool:
    """Return whether a file has data, times and what py-pde says of its fields."""
    return "field_attributes" in file.attrs and isinstance(file.get("data"), h5py.Dataset) and "times" in file


def read(path: Path, file: h5py.File, reading: Reading) -> Iterator[Recording]:
    """Read a FileStorage of py-pde: `data` (t, [field,] x, y) and `times`, of which the first may be written only."""
    said = _json(path, file.attrs.get("data_length", "null"), Index | None)
    written = len(file["data"]) if said is None else min(said, len(file["data"]))
    data = _First(held(file["data"], path, written), written)
    about = _json(path, file.attrs["field_attributes"], dict[str, Any])
    given = _json(path, about.get("fields", "[]"), list[Any])
    parts = [_json(path, each, dict[str, Any]) if isinstance(each, str) else each for each in given] or [about]
    grid = _json(path, parts[0].get("grid", "{}"), dict[str, Any])
    labels = [_json(path, part["label"], str | None) for part in parts if "label" in part]
    bounds = checked(grid.get("bounds", [(0.0, 1.0)] * 2), list[tuple[float, float]], f"bounds in {path}")
    sides = [float(high) - float(low) for low, high in bounds]  # of x and of y
    components = data.shape[1] if len(data.shape) == 4 else 1  # a vector is one part of several
    yield Recording.of(
        "py-pde file",
        str(path),
        [data],
        reading,
        layout="tcxy" if len(data.shape) == 4 else "txy",
        names=tuple(map(str, labels)) if all(labels) and len(labels) == len(parts) == components else (),
        times=np.asarray(file["times"][:written], dtype=np.float64),
        length=sides[0] if grid else None,
        boundary=None if "periodic" not in grid else "periodic" if all(grid["periodic"]) else "walls",
        remarks=mixed_sides(path, grid.get("periodic", ()), reading),
        spacing=(sides[1] / data.shape[-1], sides[0] / data.shape[-2]) if grid and len(sides) == 2 else None,
    )


class _First:
    """An array without all but the first entries along its first axis."""

    def __init__(self, array: Lazy, entries: int) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, (entries, *array.shape[1:])

    def __getitem__(self, index: tuple[int | slice, ...]) -> Any:
        first, *others = index
        return self.array[slice(*first.indices(self.shape[0])) if isinstance(first, slice) else first, *others]


def _json(path: Path, text: str, kind: Any) -> Any:
    """Return one of the texts of JSON that py-pde keeps in each other."""
    return sealed.decode(text, kind, f"in {path}", "write the file again")
