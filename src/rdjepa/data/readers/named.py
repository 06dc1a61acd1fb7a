"""Arrays with named dimensions: objects of xarray, and NetCDF files, which xarray opens."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rdjepa.checks import require_packages
from rdjepa.data.readers import catalog, hdf5
from rdjepa.data.readers.damage import DAMAGED, intact
from rdjepa.data.readers.packed import seconds
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import Recording
from rdjepa.errors import DataError

NETCDF_STARTS = (b"CDF\x01", b"CDF\x02")


def is_xarray(source: Any) -> bool:
    """Return whether an object is a Dataset or DataArray, without importing xarray."""
    return type(source).__module__.partition(".")[0] == "xarray" and hasattr(source, "dims")


def is_netcdf(path: Path, start: bytes) -> bool:
    """Return whether a file is NetCDF, classic or HDF5 with dimensions that have names."""
    if start.startswith(NETCDF_STARTS):
        return True
    if not start.startswith(b"\x89HDF"):
        return False
    try:
        with h5py.File(path, "r") as file:
            return "_NCProperties" in file.attrs
    except DAMAGED:
        return False


def read_object(source: Any, reading: Reading, kind: str = "xarray object", place: str = "") -> Iterator[Recording]:
    """Read a Dataset, or a DataArray, whose values may still lie in a file."""
    if hasattr(source, "data_vars"):
        variables: Mapping[str, Any] = {**source.data_vars, **source.coords}
    else:
        variables = {str(source.name or "values"): source, **source.coords}
    arrays: dict[str, Any] = {str(name): _Values(variable) for name, variable in variables.items() if variable.ndim}
    dimensions = {str(name): [str(each) for each in variable.dims] for name, variable in variables.items()}
    said = {str(name): variable.attrs for name, variable in variables.items()}
    yield catalog.recording(kind, place or f"an {kind}", arrays, reading, dimensions, attributes=said.__getitem__)


def read_netcdf(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read a NetCDF file; times are the numbers that it holds, in its own unit, and in seconds where it has dates.

    One whose fields are in groups, of which xarray opens one at a time, is read as HDF5.
    """
    with path.open("rb") as file:
        classic = file.read(4).startswith(NETCDF_STARTS)
    packages = ("xarray",) if classic else ("xarray", "h5netcdf")
    require_packages(f"to read {path}", "formats", *packages, error=DataError)
    import xarray  # an extra

    options: dict[str, Any] = {"engine": "scipy" if classic else "h5netcdf", "decode_times": False, "cache": False}
    with intact("NetCDF file", str(path)), xarray.open_dataset(path, **options) as source:
        if classic or any(variable.ndim >= 3 for variable in source.variables.values()):
            yield from read_object(source, reading, "NetCDF file", str(path))
            return
    yield from hdf5.read(path, reading)


class _Values:
    """A variable of xarray as an array: indexing reads, and dates become seconds."""

    def __init__(self, variable: Any) -> None:
        self.variable, self.shape = variable.variable, tuple(variable.shape)
        self.unit = seconds(variable.attrs) if variable.dtype.kind in "fiu" else 1.0
        self.dtype = np.dtype(np.float64) if variable.dtype.kind in "mM" or self.unit != 1 else variable.dtype

    def __getitem__(self, index: Any) -> np.ndarray:
        values = catalog.in_seconds(np.asarray(self.variable[index].values))
        return values if self.unit == 1 else values * self.unit
