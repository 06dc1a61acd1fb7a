"""Numbers that a file keeps packed, by the conventions of NetCDF: value = stored * scale_factor + add_offset.

What equals `_FillValue` or `missing_value` as it is stored stands for no value and is read as NaN.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rdjepa.data.readers.recording import Lazy
from rdjepa.errors import DataError

SCALE, OFFSET, *MISSING = NAMES = ("scale_factor", "add_offset", "_FillValue", "missing_value")


def unpacked(array: Lazy, attributes: Mapping[str, Any], place: str) -> Lazy:
    """Return an array that unpacks its parts when they are read; the array itself where no attribute asks for it.

    Raises:
        DataError: one of the attributes is no number.
    """
    said = {name: np.ravel(attributes[name]) for name in NAMES if name in attributes}
    for name, values in said.items():
        if values.dtype.kind not in "fiu" or not len(values) or (name in (SCALE, OFFSET) and len(values) > 1):
            raise DataError(
                f"expected a number in the attribute {name} of {place}, got {attributes[name]!r}; correct or remove it"
            )
    return _Unpacked(array, said) if said and np.dtype(array.dtype).kind in "fiu" else array


class _Unpacked:
    """An array whose parts are unpacked when it is indexed."""

    def __init__(self, array: Lazy, said: Mapping[str, np.ndarray]) -> None:
        self.array, self.shape = array, tuple(array.shape)
        self.scale, self.offset = (float(said[n][0]) if n in said else None for n in (SCALE, OFFSET))
        self.missing = np.concatenate([np.empty(0), *(said[name] for name in MISSING if name in said)])
        floating = self.scale is None and self.offset is None and np.dtype(array.dtype).kind == "f"
        self.dtype = np.dtype(array.dtype if floating else np.float64)

    def __getitem__(self, index: Any) -> np.ndarray:
        stored = np.asarray(self.array[index])
        given = self.missing
        if stored.dtype.kind == "f":  # as it was rounded; a number that whole ones cannot hold stands for none of them
            with np.errstate(over="ignore"):
                given = given.astype(stored.dtype)
        missing = np.isin(stored, given)
        values = stored.astype(self.dtype)
        if self.scale is not None:
            values *= self.scale
        if self.offset is not None:
            values += self.offset
        values[missing] = np.nan
        return values
