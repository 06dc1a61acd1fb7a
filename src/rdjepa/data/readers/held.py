"""A dataset of HDF5, as MATLAB's newer files have them too: whether its values are in the file."""

from pathlib import Path

import h5py
import numpy as np

from rdjepa.data import well
from rdjepa.data.readers.sizes import require_held


def held(array: h5py.Dataset, path: Path, entries: int | None = None) -> h5py.Dataset:
    """Return a dataset whose values are all in the file that was opened.

    Args:
        array: the dataset.
        path: the file that was opened.
        entries: how many along the first axis were written, where the file says so; all when None.

    Raises:
        DataError: it declares more than was written, or takes values from another file.
    """
    well.require_own(array, path)
    place = f"{path}:{array.name}"
    if array.chunks is None:
        require_held(int(array.size) * array.dtype.itemsize, array.id.get_storage_size(), place)
    elif array.size:
        shape = array.shape if entries is None else (entries, *array.shape[1:])
        expected = int(np.prod([-(-n // c) for n, c in zip(shape, array.chunks, strict=True)], dtype=object))
        piece = int(np.prod(array.chunks, dtype=object)) * array.dtype.itemsize
        require_held(expected * piece, array.id.get_num_chunks() * piece, place)
    return array
