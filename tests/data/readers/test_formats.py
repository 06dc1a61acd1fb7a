"""Every format, written by the library that owns it, is read back equal."""

import contextlib
import tracemalloc
import warnings
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
import pytest
import scipy.io
from comparing import check
from PIL import Image

from rdjepa.cli.options import Data
from rdjepa.data.fields import with_second
from rdjepa.data.readers import Reading, load
from rdjepa.data.readers.packed import seconds
from rdjepa.data.readers.registry import FORMATS
from rdjepa.data.survey import inspect
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import DataError, Note

xarray = pytest.importorskip("xarray", reason="the extra `formats` is not installed")
zarr = pytest.importorskip("zarr", reason="the extra `formats` is not installed")

ONE = np.random.default_rng(0).normal(size=(10, 6, 8, 2)).astype(np.float32)
MANY = np.random.default_rng(1).normal(size=(3, 10, 6, 8, 2)).astype(np.float32)
PICTURES = np.random.default_rng(2).integers(0, 255, size=(12, 16, 16, 2)).astype(np.uint8)


pytestmark = pytest.mark.filterwarnings("ignore::rdjepa.errors.Note")


@pytest.fixture
def dataset():
    """u and v over time, y and x, with coordinates."""
    names = ("time", "y", "x")
    values = {name: (names, ONE[..., number].copy()) for number, name in enumerate("uv")}
    return xarray.Dataset(values, coords={"time": np.arange(10) * 0.5, "x": np.arange(8) * 0.25})


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])
def test_netcdf(tmp_path, dataset, engine):
    dataset.to_netcdf(tmp_path / "a", engine=engine)
    check(tmp_path / "a", ONE[None], 0.5, 2.0)
    check(tmp_path / "a", ONE[None, ..., ::-1], 0.5, 2.0, reading=Reading(field="v,u"))


def test_packed_netcdf_is_unpacked_and_missing_values_are_refused(tmp_path, dataset):
    packed = {name: {"dtype": "int16", "scale_factor": 0.001, "_FillValue": -32768} for name in "uv"}
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=packed)
    np.testing.assert_allclose(load(tmp_path / "a.nc")[0].fields, ONE, atol=6e-4)
    dataset["u"][3, 2, 1] = np.nan
    dataset.to_netcdf(tmp_path / "b.nc", engine="h5netcdf", encoding=packed)
    with pytest.raises(DataError, match="got 1 values that are NaN or infinite in frame 3"):
        load(tmp_path / "b.nc")


def test_packed_numbers_of_hdf5_and_zarr_are_unpacked_as_those_of_netcdf(tmp_path):
    stored = (ONE * 1000).astype(np.int16)
    values = (stored * 1e-3 + 5.0).astype(np.float32)
    attributes = {"scale_factor": 1e-3, "add_offset": 5.0, "_FillValue": -32768}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["fields"] = stored
        file["fields"].attrs.update(attributes)
    zarr.save_array(tmp_path / "a.zarr", stored)
    zarr.open(tmp_path / "a.zarr").attrs.update(attributes)
    for name in ("a.h5", "a.zarr"):
        (found,) = load(tmp_path / name)
        assert np.allclose(found.fields, values, atol=1e-6) and found.fields.dtype == np.float32


@pytest.mark.parametrize("missing", ["_FillValue", "missing_value"])
def test_missing_values_of_hdf5_and_zarr_are_refused(tmp_path, missing):
    for name, stored in (("floats", ONE.copy()), ("whole", (ONE * 1000).astype(np.int16))):
        stored[3] = -30_000
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["fields"] = stored
            file["fields"].attrs[missing] = np.array([-30_000], stored.dtype)
        zarr.save_array(tmp_path / f"{name}.zarr", stored)
        zarr.open(tmp_path / f"{name}.zarr").attrs[missing] = -30_000
        for path in (tmp_path / f"{name}.h5", tmp_path / f"{name}.zarr"):
            with pytest.raises(DataError, match="got 96 values that are NaN or infinite in frame 3"):
                load(path)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["fields"] = ONE
        file["fields"].attrs[missing] = "none"
    with pytest.raises(DataError, match=rf"a number in the attribute {missing} of .*a.h5:fields, got 'none'"):
        load(tmp_path / "a.h5")


@pytest.mark.parametrize(("kind", "missing"), [("u1", -9999.0), ("i2", np.nan), ("i2", 1e20)])
def test_a_missing_value_that_whole_numbers_cannot_hold_is_none_of_them(tmp_path, kind, missing):
    stored = (np.arange(ONE.size) % 256).reshape(ONE.shape).astype(kind)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["fields"] = stored
        file["fields"].attrs["_FillValue"] = missing
    assert np.array_equal(load(tmp_path / "a.h5")[0].fields, stored)


@pytest.mark.parametrize(
    ("text", "sentence"), [("NaN", None), ("none", "expected a number in the attribute _FillValue")]
)
def test_a_missing_value_of_zarr_in_words_is_read_or_refused_for_what_it_is(tmp_path, text, sentence):
    fields = np.random.default_rng(0).standard_normal((10, 8, 8, 2)).astype(np.float32)
    zarr.open_group(tmp_path / "a.zarr", mode="w").create_array("fields", data=fields).attrs["_FillValue"] = text
    if sentence is None:
        np.testing.assert_array_equal(load(tmp_path / "a.zarr")[0].fields, fields)
        return
    with pytest.raises(DataError, match=sentence):
        load(tmp_path / "a.zarr")


def test_a_missing_value_that_xarray_wrote_to_zarr_as_text_is_a_number(tmp_path, dataset):
    dataset["u"][3] = np.nan
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False, encoding={"u": {"_FillValue": -999.5}})
    assert isinstance(zarr.open(tmp_path / "a.zarr")["u"].attrs["_FillValue"], str)
    with pytest.raises(DataError, match="got 48 values that are NaN"):
        load(tmp_path / "a.zarr")


@pytest.mark.parametrize("missing", [-999.5, 0.0])
def test_the_fill_value_of_what_xarray_wrote_to_zarr_2_is_a_missing_one(tmp_path, dataset, missing):
    dataset = dataset.assign_coords(y=list("abcdef"))  # whose fill value is no number
    encoding = {name: {"_FillValue": missing} for name in "uv"}
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=2, consolidated=False, encoding=encoding)
    check(tmp_path / "a.zarr", ONE[None], 0.5, 2.0)
    dataset["u"][3] = np.nan
    dataset.to_zarr(tmp_path / "b.zarr", zarr_format=2, consolidated=False, encoding=encoding)
    assert "_FillValue" not in zarr.open(tmp_path / "b.zarr")["u"].attrs
    with pytest.raises(DataError, match="got 48 values that are NaN"):
        load(tmp_path / "b.zarr")


def test_the_fill_value_of_other_stores_of_zarr_2_is_a_number_as_any(tmp_path):
    fields = np.where(ONE < 0, 0, ONE)
    zarr.save_array(tmp_path / "a.zarr", fields, zarr_format=2)
    assert zarr.open(tmp_path / "a.zarr").fill_value == 0
    check(tmp_path / "a.zarr", fields[None])


def test_xarray_objects_in_any_order_of_dimensions(dataset):
    check(dataset, ONE[None], 0.5, 2.0)
    check(dataset.transpose("x", "time", "y"), ONE[None], 0.5, 2.0)
    labels = {"species": ["a", "b"]}
    array = xarray.DataArray(MANY, dims=("sample", "time", "y", "x", "species"), coords=labels)
    check(array.transpose("time", "species", "x", "sample", "y"), MANY)
    check(array, MANY[..., ::-1], reading=Reading(components=("b", "a")))


@pytest.mark.parametrize("order", [("time", "x", "y"), ("x", "time", "y"), ("y", "x", "time")])
def test_a_variable_with_another_order_of_dimensions_is_brought_to_that_of_the_first(tmp_path, dataset, order):
    dataset["v"] = dataset["v"].transpose(*order)
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    dataset.to_zarr(tmp_path / "a.zarr", consolidated=False)
    for source in (dataset, tmp_path / "a.nc", tmp_path / "a.zarr"):
        check(source, ONE[None], 0.5, 2.0)
        check(source, ONE[None, ..., ::-1], 0.5, 2.0, reading=Reading(field="v,u"))


def test_variables_with_other_dimensions_are_refused_unless_their_order_is_said(dataset):
    other = dataset.assign(v=(("time", "row", "column"), dataset["v"].values))
    with pytest.raises(DataError, match="the same dimensions, got time, y, x and time, row, column"):
        load(other)
    check(other, ONE[None], 0.5, 2.0, reading=Reading(axes="t y x"))
    levels = dataset.assign(u=dataset["u"].expand_dims("low", 1), v=dataset["v"].expand_dims("high", 1))
    check(levels, ONE[None], 0.5, 2.0)


def test_dates_become_seconds(dataset):
    start = np.datetime64("2024-02-28T23:00:00")
    check(dataset.assign_coords(time=start + np.arange(10) * np.timedelta64(90, "s")), ONE[None], 90.0, 2.0)


@pytest.mark.parametrize(
    ("unit", "step", "interval"),
    [
        *(("nanoseconds", 250, 2.5e-7), ("microseconds", 250, 2.5e-4), ("milliseconds", 3, 0.003)),
        *(("seconds", 90, 90), ("minutes", 30, 1800), ("hours", 2, 7200), ("days", 1, 86400)),
    ],
)
def test_dates_in_a_file_become_the_seconds_of_those_in_memory(tmp_path, dataset, unit, step, interval):
    ahead = np.arange(10) * np.timedelta64(round(interval * 1e9), "ns")
    dated = dataset.assign_coords(time=np.datetime64("2024-02-28T23:00:00") + ahead)
    dated.time.encoding["units"] = f"{unit} since 2024-02-28 23:00:00"
    dated.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    dated.to_zarr(tmp_path / "a.zarr", consolidated=False, zarr_format=2)
    with xarray.open_dataset(tmp_path / "a.nc", decode_times=False) as stored:
        assert stored.time.values[1] - stored.time.values[0] == step
    for source in (dated, tmp_path / "a.nc", tmp_path / "a.zarr"):
        check(source, ONE[None], interval, 2.0)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"units": "Minutes since 2024-01-01"}, 60),
        ({"units": "d since 2024-01-01"}, 86400),
        ({"units": "weeks since 2024-01-01"}, 604800),
        ({"units": "decades since 2024-01-01"}, 1),
        ({"units": "months since 2024-01-01"}, 1),
        ({"units": "minutes"}, 1),
        ({"units": "minutes", "dtype": "timedelta64[ns]"}, 60),
    ],
)
def test_only_units_of_a_fixed_length_become_seconds(attributes, expected):
    assert seconds(attributes) == expected


def test_durations_in_a_file_become_the_seconds_of_those_in_memory(tmp_path, dataset):
    lasting = dataset.assign_coords(time=np.arange(10) * np.timedelta64(90 * 60, "s"))
    lasting.time.encoding["units"] = "minutes"
    lasting.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    for source in (lasting, tmp_path / "a.nc"):
        check(source, ONE[None], 5400, 2.0)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(tmp_path, dataset, version):
    dataset.to_zarr(tmp_path / "named", zarr_format=version, consolidated=False)
    check(tmp_path / "named", ONE[None], 0.5, 2.0)
    zarr.save_array(str(tmp_path / "array"), MANY, zarr_format=version)
    check(tmp_path / "array", MANY)


def test_zarr_that_names_some_dimensions_only_is_read_as_one_without_names(tmp_path):
    zarr.create_array(tmp_path / "a", data=ONE, dimension_names=("time", None, None, None))
    check(tmp_path / "a", ONE[None])


def test_a_zip_archive_of_zarr(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(store, name="fields", data=MANY)
    check(tmp_path / "a.zip", MANY)


def test_pieces_that_zarr_did_not_store_are_said(tmp_path):
    array = zarr.create_array(str(tmp_path / "a"), shape=ONE.shape, chunks=(5, 6, 8, 2), dtype="f4", fill_value=0)
    array[:5] = ONE[:5]
    with pytest.warns(Note, match="1 of 2 pieces"):
        load(tmp_path / "a")


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_5(tmp_path, compressed):
    content = {"w": ONE, "t": np.arange(10) * 0.1, "x": np.arange(8) * 0.5, "note": "measured on a Tuesday"}
    scipy.io.savemat(tmp_path / "a.mat", content, do_compression=compressed)
    check(tmp_path / "a.mat", ONE[None], 0.1, 4.0)


def test_matlab_7_3_has_its_axes_reversed(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["w"], file["t"] = MANY.T, np.arange(10.0)[:, None] * 0.1
    with (tmp_path / "a.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")
    check(tmp_path / "a.mat", MANY, 0.1)


@pytest.mark.parametrize("reserved", [None, 20])
@pytest.mark.parametrize("compression", [True, False])
def test_py_pde(tmp_path, reserved, compression):
    pde = pytest.importorskip("pde")
    grid = pde.CartesianGrid([[0, 2], [0, 3]], [8, 6], periodic=[True, False])
    fields = [pde.FieldCollection([pde.ScalarField(grid, frame[..., c].T) for c in (0, 1)]) for frame in ONE]
    storage = pde.FileStorage(tmp_path / "a.hdf5", max_length=reserved, compression=compression)
    storage.start_writing(fields[0])
    for number, each in enumerate(fields):
        storage.append(each, time=number * 0.5)
    storage.end_writing()
    storage.close()
    check(tmp_path / "a.hdf5", ONE[None], 0.5, 2.0)
    with pytest.warns(Note, match="only some sides of the domain are periodic"):
        (found,) = load(tmp_path / "a.hdf5")
    assert (found.boundary, found.spacing) == ("walls", (3 / 6, 2 / 8))
    assert any(
        "only some sides of the domain are periodic" in remark for remark in inspect(tmp_path / "a.hdf5").remarks
    )
    (squeezed,) = load(tmp_path / "a.hdf5", grid=4)
    assert squeezed.spacing == (3 / 4, 2 / 4)
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:  # one more than was written, where frames are pieces
        file.attrs["data_length"] = "11"
    if reserved and compression:
        with pytest.raises(DataError, match="expected a file that holds the array it declares"):
            load(tmp_path / "a.hdf5")


def test_a_label_of_a_vector_of_py_pde_is_no_name_of_its_components(tmp_path):
    pde = pytest.importorskip("pde")
    grid = pde.CartesianGrid([[0, 2], [0, 3]], [8, 6])
    fields = [pde.VectorField(grid, frame.transpose(2, 1, 0), label="flow") for frame in ONE]
    with contextlib.closing(pde.FileStorage(tmp_path / "a.hdf5")) as storage:
        storage.start_writing(fields[0])
        for number, each in enumerate(fields):
            storage.append(each, time=number * 0.5)
        storage.end_writing()
    check(tmp_path / "a.hdf5", ONE[None], 0.5, 2.0)
    assert load(tmp_path / "a.hdf5")[0].names == ()


def test_distances_between_points_are_those_of_the_coordinates(tmp_path, dataset):
    assert load(dataset)[0].spacing == (1.0, 1.0)  # the rows have none
    oblong = dataset.assign_coords(y=10 - 0.75 * np.arange(6))
    oblong.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    oblong.to_zarr(tmp_path / "a.zarr", consolidated=False)
    for source in (oblong, tmp_path / "a.nc", tmp_path / "a.zarr"):
        assert load(source)[0].spacing == (0.75, 0.25)
        assert load(source, reading=Reading(spacing=(2, 1)))[0].spacing == (2, 1)


def test_coordinates_count_whatever_their_dimensions_are_called(tmp_path, dataset):
    other = dataset.assign_coords(y=0.75 * np.arange(6)).rename(time="frame", y="row", x="col")
    other.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    other.to_zarr(tmp_path / "a.zarr", consolidated=False)
    for source in (other, tmp_path / "a.nc", tmp_path / "a.zarr"):
        check(source, ONE[None], 0.5, 2.0)
        assert load(source)[0].spacing == (0.75, 0.25) and load(source)[0].timed


@pytest.mark.parametrize(("rows", "columns"), [("y", "x"), ("x", "y")])
def test_arrays_called_x_and_y_say_the_distances_where_dimensions_have_no_names(tmp_path, rows, columns):
    height, width = ONE.shape[1:3]
    assert height != width
    lines: dict[str, Any] = {rows: 0.75 * np.arange(height), columns: 3 + 0.25 * np.arange(width)}
    np.savez(tmp_path / "a.npz", fields=ONE, **lines)
    scipy.io.savemat(tmp_path / "a.mat", {"fields": ONE, **lines})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run/fields"] = ONE
        for name, line in lines.items():
            file[f"run/{name}"] = line
    for kind in ("npz", "mat", "h5"):
        (found,) = load(tmp_path / f"a.{kind}")
        assert found.spacing == pytest.approx((0.75, 0.25)), kind
        (said,) = load(tmp_path / f"a.{kind}", reading=Reading(spacing=(1, 2)))
        assert said.spacing == (1, 2)
    np.savez(tmp_path / "a.npz", fields=ONE, y=np.arange(height) ** 2)
    with pytest.raises(DataError, match="expected equally spaced coordinates y"):
        load(tmp_path / "a.npz")
    assert load(tmp_path / "a.npz", reading=Reading(spacing=(1, 2)))[0].spacing == (1, 2)


def test_a_trajectory_comes_back_from_xarray_with_its_cells_and_names():
    for spacing in ((1.0, 1.0), (1.0, 0.25)):
        given = Trajectory(ONE, np.arange(10) * 0.5, length=4.0, spacing=spacing, names=("predator", "prey"))
        check(given.to_xarray(), ONE[None], 0.5, 4.0)
        (found,) = load(given.to_xarray())
        assert found.spacing[0] / found.spacing[1] == pytest.approx(spacing[0] / spacing[1])
        assert found.names == ("predator", "prey")


@pytest.mark.filterwarnings("ignore:The data type")  # version 3 has no specification of text yet
@pytest.mark.parametrize("version", [2, 3])
def test_a_trajectory_comes_back_from_zarr_with_its_walls_and_names(tmp_path, version):
    given = Trajectory(ONE, np.arange(10) * 0.5, boundary="neumann", length=4.0, names=("predator", "prey"))
    given.to_xarray().to_zarr(tmp_path / "a.zarr", zarr_format=version, consolidated=False)
    check(tmp_path / "a.zarr", ONE[None], 0.5, 4.0)
    (found,) = load(tmp_path / "a.zarr")
    assert (found.boundary, found.names) == ("neumann", ("predator", "prey"))


@pytest.mark.parametrize(
    ("given", "found"),
    [*((kind, kind) for kind in ("periodic", "neumann", "walls")), ("unknown", "unknown"), ("half open", "unknown")],
)
def test_a_boundary_comes_back_from_netcdf_where_it_is_a_known_one(tmp_path, given, found):
    Trajectory(ONE, np.arange(10.0), boundary=given).to_xarray().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert load(tmp_path / "a.nc")[0].boundary == found
    assert inspect(tmp_path / "a.nc").boundary == (None if found == "unknown" else found)


def test_any_hdf5_by_the_names_of_its_arrays(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, name in enumerate(("c1", "c2")):
            file[f"runs/{name}"] = MANY[..., number]
        file["runs/other"], file["time"] = np.zeros((3, 10, 6, 8)), np.arange(10) * 0.1
        file["alone"] = np.moveaxis(MANY, -1, 2)
    for text in ("runs/c1,runs/c2", "c1,c2", "runs/c"):
        check(tmp_path / "a.h5", MANY, 0.1, reading=Reading(field=text))
    check(tmp_path / "a.h5", MANY, 0.1, reading=Reading(field="alone"))
    check(tmp_path / "a.h5", MANY, 0.1, reading=Reading(field="runs", components=("c1", "c2")))
    with pytest.raises(DataError, match=r"got alone, runs/c1, runs/c2, runs/other .* choose with --field"):
        load(tmp_path / "a.h5")
    with pytest.raises(DataError, match="a different array for each component, got runs/c1, runs/c1"):
        load(tmp_path / "a.h5", reading=Reading(field="c1,runs/c1"))
    with pytest.raises(DataError, match="expected an array named 'absent'"):
        load(tmp_path / "a.h5", reading=Reading(field="absent"))


@pytest.mark.parametrize("naming", ["labels", "scales"])
def test_the_axes_that_an_hdf5_file_names_are_those(tmp_path, naming):
    square = ONE[:, :6, :6]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        lines = {"time": 0.5 * np.arange(10), "x": 1.0 * np.arange(6), "y": 2.0 * np.arange(6)}
        for name, line in lines.items():
            file[name] = line
        for number, component in enumerate("uv"):
            file[component] = square[..., number].swapaxes(1, 2)
            for axis, name in zip(file[component].dims, lines, strict=True):
                if naming == "labels":
                    axis.label = name
                else:
                    file[name].make_scale()
                    axis.attach_scale(file[name])
    check(tmp_path / "a.h5", square[None], 0.5, 6.0)
    assert load(tmp_path / "a.h5")[0].spacing == (2.0, 1.0)


def test_netcdf_with_its_fields_in_a_group(tmp_path, dataset):
    xarray.Dataset(attrs={"title": "a run"}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    turned = dataset.transpose("time", "x", "y").drop_vars("time")
    turned.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", group="run", mode="a")
    check(tmp_path / "a.nc", ONE[None], 1.0, 2.0)
    check(tmp_path / "a.nc", ONE[None, ..., ::-1], 1.0, 2.0, reading=Reading(field="run/v,run/u"))


def test_components_whose_paths_end_alike_are_told_apart_in_every_source(tmp_path):
    expected = MANY[:2]
    for number, fields in enumerate(expected):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["u/values"], file["v/values"] = fields[..., 0], fields[..., 1]
    check(tmp_path, expected)
    assert load(tmp_path)[1].names == ("u/values", "v/values")
    check(tmp_path, expected[..., ::-1], reading=Reading(field="v/values,u/values"))
    check(tmp_path, expected, reading=Reading(names=("values", "values")))  # as forecasters of before remember them


def test_names_that_are_not_one_for_each_component_say_nothing(dataset):
    given = Trajectory(ONE, np.arange(10.0), names=("u",))
    check(given, ONE[None])
    assert [each.name for each in inspect(given).components] == ["0", "1"]
    single = load(dataset["u"].expand_dims(component=["u"], axis=-1))  # the second component is the frame before
    check(single, with_second(ONE[..., :1])[None], 0.5, 2.0)
    assert load(single)[0].names == ("u",) and load([*single, given])[0].names == ("u",)


def test_names_that_are_the_same_do_not_choose_components():
    alike = [Trajectory(fields, np.arange(10.0), names=("c", "c")) for fields in MANY[:2]]
    check(alike, MANY[:2])


@pytest.mark.parametrize("names", [("u", "v"), ("run1", "run2")])
def test_arrays_called_data_are_not_taken_for_pdebench(tmp_path, names):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, name in enumerate(names):
            file[f"{name}/data"] = ONE[..., number]
    check(tmp_path / "a.h5", ONE[None])
    assert load(tmp_path / "a.h5")[0].boundary == "unknown"


def test_an_archive_with_an_array_for_each_component(tmp_path):
    np.savez(tmp_path / "a.npz", u=ONE[..., 0], v=ONE[..., 1], t=np.arange(10) * 0.1)
    check(tmp_path / "a.npz", ONE[None], 0.1)


@pytest.mark.parametrize("name", ["Time", "TIME", "Times"])
def test_times_are_found_whatever_their_capitals(tmp_path, name):
    arrays: dict[str, Any] = {"fields": ONE, name: np.arange(10) * 0.1}
    np.savez(tmp_path / "a.npz", **arrays)
    check(tmp_path / "a.npz", ONE[None], 0.1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run/fields"], file[f"run/{name}"] = ONE, np.arange(10) * 0.1
    check(tmp_path / "a.h5", ONE[None], 0.1)


@pytest.mark.parametrize("name", ["time", "t", "Time"])
def test_times_that_are_not_one_for_each_frame_are_left_out_with_a_note(tmp_path, name):
    arrays: dict[str, Any] = {"fields": ONE, name: np.arange(5)}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.warns(Note, match=rf"{name.lower()} of shape \(5,\) in .*a.npz is left out, .* each of 10 frames"):
        check(tmp_path / "a.npz", ONE[None])
    assert not any("left out" in each for each in inspect(tmp_path / "a.npz", Reading(interval=2.0)).remarks)
    assert "is left out" in inspect(tmp_path / "a.npz").remarks[0]
    np.savez(tmp_path / "b.npz", fields=ONE, T=np.arange(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(tmp_path / "b.npz", ONE[None])


def test_a_forecast_of_this_package_is_not_taken_for_data_without_a_word(tmp_path):
    path = tmp_path / "far.npz"
    np.savez(path, context=ONE[:4], forecast=ONE, times=np.arange(10.0))
    with pytest.warns(UserWarning, match=rf"expected data, got a forecast of this package in {path}") as said:
        (found,) = load(path)
    assert np.array_equal(found.fields, ONE) and len(said) == 1 and not issubclass(said[0].category, Note)
    assert "got a forecast of this package" in inspect(path).remarks[0]
    np.savez(path, forecast=ONE)
    assert load(path)


def test_a_folder_may_mix_formats(tmp_path, dataset):
    np.save(tmp_path / "a.npy", ONE)
    dataset.to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    zarr.save_array(str(tmp_path / "c.zarr"), ONE)
    Image.fromarray(PICTURES[0, ..., 0]).save(tmp_path / "figure.png")
    check(tmp_path, np.stack([ONE] * 3))


def test_the_files_of_a_folder_are_read_in_natural_order(tmp_path):
    for number in (10, 2, 1):
        np.save(tmp_path / f"run{number}.npy", ONE + number)
    check(tmp_path, np.stack([ONE + 1, ONE + 2, ONE + 10]))


def test_order_interval_and_length_are_what_the_user_says(tmp_path):
    np.save(tmp_path / "a.npy", np.moveaxis(MANY, (0, 1), (2, 4)))
    check(tmp_path / "a.npy", MANY, 0.25, 7.0, reading=Reading(axes="y x b c t", interval=0.25, length=7.0))
    with pytest.raises(DataError, match="one letter for each axis of shape"):
        load(tmp_path / "a.npy", reading=Reading(axes="t y x c"))


def test_only_what_is_asked_for_is_read(tmp_path, monkeypatch):
    from rdjepa.data.readers.recording import Recording

    read = []
    whole = Recording.read

    def counted(self, index, *rest):
        read.append(index)
        return whole(self, index, *rest)

    monkeypatch.setattr(Recording, "read", counted)
    monkeypatch.setattr("rdjepa.data.readers.recording.CHUNK", 4 * ONE[0].nbytes)
    np.save(tmp_path / "a.npy", MANY)
    assert np.array_equal(load(tmp_path / "a.npy", limit=1)[0].fields, MANY[0]) and read == [0, 0, 0]


def test_reading_in_pieces_takes_little_more_memory_than_what_is_read(tmp_path, monkeypatch):
    fields = np.random.default_rng(0).normal(size=(64, 32, 32, 2)).astype(np.float32)
    np.save(tmp_path / "a.npy", fields)
    load(tmp_path / "a.npy")  # imports
    monkeypatch.setattr("rdjepa.data.readers.recording.CHUNK", 4 * fields[0].nbytes)
    tracemalloc.start()
    (found,) = load(tmp_path / "a.npy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(found.fields, fields) and peak < 1.5 * fields.nbytes


def test_a_bad_value_in_a_later_piece_is_in_its_frame_of_the_trajectory(tmp_path, monkeypatch):
    monkeypatch.setattr("rdjepa.data.readers.recording.CHUNK", 4 * ONE[0].nbytes)
    fields = ONE.copy()
    fields[6, 2, 1] = np.nan
    fields[8] = np.nan
    np.save(tmp_path / "a.npy", fields)
    for source in (fields, tmp_path / "a.npy"):
        with pytest.raises(DataError, match=r"got 2 values that are NaN or infinite in frame 6, the first with such;"):
            load(source)


def test_walls_that_only_later_frames_show_are_seen_in_a_file_as_in_an_array(tmp_path, monkeypatch):
    monkeypatch.setattr("rdjepa.data.readers.recording.CHUNK", 2 * 32 * 32 * 2 * 8)
    y, x = np.meshgrid(*[np.linspace(-1, 1, 32)] * 2, indexing="ij")
    spot, slope = np.exp(-20 * (x**2 + y**2)), 0.5 * (x + y)
    frames = [np.stack([spot + growth * slope, spot - growth * slope], -1) for growth in np.linspace(0, 1, 12)]
    np.save(tmp_path / "a.npy", frames)
    (whole,), (pieces,) = load(np.array(frames), grid=24), load(tmp_path / "a.npy", grid=24)
    assert (whole.boundary, pieces.boundary) == ("walls", "walls")
    np.testing.assert_allclose(pieces.fields, whole.fields, atol=1e-6)
    (said,) = load(tmp_path / "a.npy", grid=24, reading=Reading(boundary="periodic"))
    assert said.boundary == "periodic"


def test_a_missing_package_is_named_with_its_extra(tmp_path, dataset, monkeypatch):
    import sys

    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(DataError, match=r"pip install 'rdjepa\[formats\]'"):
        load(tmp_path / "a.nc")


def test_documents_and_help_list_every_format():
    text = (Path(__file__).parents[3] / "docs/how-to/your-own-data.md").read_text()
    for each in FORMATS:
        name = each.name.split()[0]
        assert name in get_args(Data)[1].help and name in text
