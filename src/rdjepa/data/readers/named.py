"""Arrays with named dimensions: objects of xarray, and NetCDF files, which xarray opens."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np

from rdjepa.data.borders import WALLS
from rdjepa.data.readers import catalog
from rdjepa.data.readers.extras import needed
from rdjepa.data.readers.reading import Reading
from rdjepa.data.readers.recording import DAMAGED, Recording, intact
from rdjepa.pde.boundary import Kind

BOUNDARIES = (*get_args(Kind), WALLS)
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
    found = catalog.recording(kind, place or f"an {kind}", arrays, reading, dimensions)
    yield _described(found, variables, dimensions)


def read_netcdf(path: Path, reading: Reading) -> Iterator[Recording]:
    """Read a NetCDF file; times stay the numbers that the file holds, in its own unit."""
    xarray = needed("xarray", str(path))
    with path.open("rb") as file:
        classic = file.read(4).startswith(NETCDF_STARTS)
    if not classic:
        needed("h5netcdf", str(path))
    options = {"engine": "scipy" if classic else "h5netcdf", "decode_times": False, "cache": False}
    with intact("NetCDF file", str(path)), xarray.open_dataset(path, **options) as source:
        yield from read_object(source, reading, "NetCDF file", str(path))


class _Values:
    """A variable of xarray as an array: indexing reads, and dates become seconds."""

    def __init__(self, variable: Any) -> None:
        self.variable, self.shape = variable.variable, tuple(variable.shape)
        self.dtype = np.dtype(np.float64) if variable.dtype.kind in "mM" else variable.dtype

    def __getitem__(self, index: Any) -> np.ndarray:
        return catalog.in_seconds(np.asarray(self.variable[index].values))


def _described(found: Recording, variables: Mapping[str, Any], dimensions: Mapping[str, list[str]]) -> Recording:
    """Return the recording with the boundary that its attribute says, and the names that the coordinate of its
    components gives, where it has one.
    """
    name = next(n for n, v in variables.items() if v.variable is getattr(found.arrays[0], "variable", None))
    if (said := str(variables[name].attrs.get("boundary"))) in BOUNDARIES:  # as `Trajectory.to_xarray` writes it
        found = replace(found, boundary=said)
    own = dict(zip(found.axes, dimensions[str(name)], strict=True))
    labels = variables.get(own.get("c", ""))
    if labels is None or labels.ndim != 1:
        return found
    return replace(found, names=tuple(str(each) for each in _Values(labels)[...]))
