"""PDEBench's file of 2D diffusion-reaction: a group for each trajectory.

The layout is that of Takamoto et al., NeurIPS 2022 (https://arxiv.org/abs/2210.07182).
"""

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from rdjepa.data.readers.geometry import cell_sides, domain_length
from rdjepa.data.readers.held import held
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Recording
from rdjepa.errors import Note, warn


def fits(file: h5py.File) -> bool:
    """Return whether a file has such a group."""
    return bool(_groups(file))


def _groups(file: h5py.File) -> list[str]:
    """Return the groups of PDEBench: with `data`, and a number for a name or a `grid` beside it."""
    found = [name for name in sorted(file) if isinstance(file.get(f"{name}/data"), h5py.Dataset)]
    return [name for name in found if name.isdecimal() or f"{name}/grid" in file]


def read(path: Path, file: h5py.File, reading: Reading) -> Iterator[Recording]:
    """Read the groups of PDEBench's 2D diffusion-reaction file: no-flux walls, `data` (t, y, x, component).

    The file has no checksum, so what seems lost is said.
    """
    names = _groups(file)
    numbers = [int(name) for name in names if name.isdecimal()]
    gaps = bool(numbers) and (len(numbers) < len(names) or max(numbers) - min(numbers) >= len(numbers))
    if gaps or len(names) < len(file):
        warn(
            f"expected groups with consecutive numbers and `data` in {path}, got {', '.join(sorted(file))[:200]}; "
            "those without data are left out",
            Note,
        )
    for name in names:
        group = file[name]
        data = held(group["data"], path)
        times, columns, rows = (group.get(f"grid/{axis}") for axis in "txy")
        grid = data.shape[1:3] if data.ndim == 4 else None
        yield Recording.of(
            "PDEBench file",
            f"{path}:{name}",
            [data],
            reading,
            layout="tyxc",
            times=None if times is None else np.asarray(times, dtype=np.float64),
            length=None if columns is None or grid is None else domain_length(columns, grid[1]),
            spacing=None if columns is None or rows is None or grid is None else cell_sides(rows, columns, grid),
            boundary="neumann",
        )
