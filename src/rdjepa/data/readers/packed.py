"""Numbers that a file keeps packed, by the conventions of NetCDF: value = stored * scale_factor + add_offset.

Times of which the attribute `units` says "minutes since" a date, or another unit of a fixed length, become seconds, as
dates do that xarray has decoded; see the CF conventions, section 4.4. So do durations that xarray wrote, whose `units`
are "minutes" and whose `dtype` says that they are times.

What equals `_FillValue` or `missing_value` as it is stored stands for no value and is read as NaN.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rdjepa.data.readers.recording import Lazy
from rdjepa.errors import DataError

SCALE, OFFSET, *MISSING = NAMES = ("scale_factor", "add_offset", "_FillValue", "missing_value")
UNITS = (
    (1e-9, "ns nanosec nanosecond"),
    (1e-6, "us microsec microsecond"),
    (1e-3, "ms msec millisec millisecond"),
    (1.0, "s sec second"),
    (60.0, "min minute"),
    (3600.0, "h hr hour"),
    (86400.0, "d day"),
    (604800.0, "week"),
)
SECONDS = {name + ending: value for value, names in UNITS for name in names.split() for ending in ("", "s")}


def seconds(attributes: Mapping[str, Any]) -> float:
    """Return the seconds of the unit of times since a date, or of durations of xarray; 1 of everything else."""
    unit, since, _ = str(attributes.get("units", "")).strip().lower().partition(" since ")
    timed = since or str(attributes.get("dtype", "")).startswith("timedelta64")
    return SECONDS.get(unit.strip(), 1.0) if timed else 1.0


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
    if (unit := seconds(attributes)) != 1:
        said |= {SCALE: unit * said.get(SCALE, np.ones(1)), OFFSET: unit * said.get(OFFSET, np.zeros(1))}
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
