"""Every bad input is answered by one sentence, from reading and from looking, and nothing in it is executed."""

import io
import json
import os
import pickle
import struct
import warnings
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from PIL import Image

from rdjepa.data.readers import Reading, catalog, load
from rdjepa.data.readers.sizes import available_memory
from rdjepa.data.survey import inspect
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import Note, RdjepaError

xarray = pytest.importorskip("xarray", reason="the extra `formats` is not installed")
zarr = pytest.importorskip("zarr", reason="the extra `formats` is not installed")

FIELDS = np.random.default_rng(0).normal(size=(10, 6, 8, 2)).astype(np.float32)
HUGE = (10**6, 10**5, 10**4, 2)  # 7 PiB


class Evil:
    def __reduce__(self):
        return Path("executed").touch, ()


@pytest.fixture(autouse=True)
def _nothing_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert not Path("executed").exists()


def header(shape):
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(text, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return text.getvalue()


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def archive(path, content, name="fields.npy"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)


def truncated_hdf5(path):
    with h5py.File(path, "w") as file:
        file["fields"] = np.repeat(FIELDS, 20, 0)
    half(path)


def damaged_hdf5(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("fields", data=np.repeat(FIELDS, 50, 0), chunks=FIELDS.shape, compression="gzip")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 500] = bytes(500)
    path.write_bytes(content)


def hdf5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name.replace("_", "/")] = values


def huge_hdf5(path, **settings):
    with h5py.File(path, "w") as file:
        file.create_dataset("fields", shape=HUGE, dtype="f4", **settings)


def matlab(path, values, **settings):
    scipy.io.savemat(path, {"w": values}, appendmat=False, **settings)


def truncated_matlab(path):
    matlab(path, FIELDS, do_compression=True)
    half(path)


def netcdf(path, engine):
    xarray.Dataset({"u": (("time", "y", "x"), FIELDS[..., 0])}).to_netcdf(path, engine=engine)
    half(path)


def zarr_with(path, **changes):
    zarr.save_array(str(path), FIELDS, zarr_format=2)
    about = path / ".zarray"
    about.write_text(json.dumps(json.loads(about.read_text()) | changes))
    for piece in (each for each in path.iterdir() if not each.name.startswith(".")):
        piece.write_bytes(pickle.dumps(Evil()))


def huge_zarr(path):
    zarr.create_array(str(path), shape=HUGE, chunks=(1, 100, 100, 2), dtype="f4")


def zarr_of_a_terabyte(path):
    path.mkdir()
    (path / "zarr.json").touch()
    os.truncate(path / "zarr.json", 2**40)


def zarr_of_a_pipe(path):
    path.mkdir()
    os.mkfifo(path / "zarr.json")


def pictures(path, change):
    path.mkdir()
    for number in range(12):
        Image.fromarray(np.random.default_rng(number).integers(0, 255, (16, 16)).astype(np.uint8)).save(
            path / f"{number}.png"
        )
    change(path / "3.png")


def deep_png(path, values):
    """Save (H, W, 2) or (H, W, 3) as 16 bits, which Pillow does not."""
    height, width, channels = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    about = struct.pack(">IIBBBBB", width, height, 16, {2: 4, 3: 2}[channels], 0, 0, 0)
    chunks = ((b"IHDR", about), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks)
    )


def tiff(path, values, tag, number, other):
    """Save a TIFF and write another number into one of its tags."""
    Image.fromarray(values).save(path, "TIFF")
    before, after = (struct.pack("<HHII", tag, 3, 1, each) for each in (number, other))
    assert path.read_bytes().count(before) == 1
    path.write_bytes(path.read_bytes().replace(before, after))


def save(path, array, **others):
    with path.open("wb") as file:
        np.savez(file, fields=array, **others)


FILES = {
    "pickle": (lambda path: path.write_bytes(pickle.dumps(Evil())), "got a file that begins with"),
    "npy of objects": (lambda path: np.save(path.open("wb"), np.array([Evil()] * 10)), "NumPy cannot read"),
    "npz of objects": (lambda path: save(path, np.array([Evil()] * 10)), "got object .* objects are never unpickled"),
    "npz with times of objects": (
        lambda path: save(path, FIELDS, times=np.array([Evil()] * 10)),
        "real numbers or dates, got object",
    ),
    "npz of a pickle": (lambda path: archive(path, pickle.dumps(Evil())), "NumPy cannot read"),
    "npz of text": (lambda path: archive(path, "t,u,v", "a.txt"), "got no array"),
    "npy of 7 PiB": (lambda path: path.write_bytes(header(HUGE) + bytes(100)), "NumPy cannot read"),
    "npy of negative size": (lambda path: path.write_bytes(header((-1, 6, 8, 2)) + bytes(100)), "NumPy cannot read"),
    "npz of 7 PiB": (lambda path: archive(path, header(HUGE) + bytes(100)), "got 7.11 PiB declared"),
    "HDF5 of 7 PiB": (huge_hdf5, "got 7.11 PiB declared and 0 bytes stored"),
    "HDF5 of 7 PiB in pieces": (lambda path: huge_hdf5(path, chunks=(1, 100, 100, 2)), "declared and 0 bytes stored"),
    "HDF5, truncated": (truncated_hdf5, "truncated, damaged or incomplete"),
    "HDF5, damaged": (damaged_hdf5, "truncated, damaged or incomplete"),
    "HDF5 of complex numbers": (lambda path: hdf5(path, a=FIELDS + 1j), "got complex64 .* real and imaginary part"),
    "PDEBench of a scalar": (lambda path: hdf5(path, **{"0000_data": 5.0}), "one letter for each axis of shape"),
    "PDEBench, times as text": (
        lambda path: hdf5(path, run_data=FIELDS, run_grid_t=np.array([b"now"] * 10)),
        "expected a whole HDF5 file",
    ),
    "MATLAB, truncated": (truncated_matlab, "expected a whole MATLAB file"),
    "MATLAB of complex numbers": (lambda path: matlab(path, FIELDS + 1j), "got complex64"),
    "MATLAB of text": (lambda path: matlab(path, "hello"), "got no array"),
    "MATLAB 5 of noise": (
        lambda path: path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" * 99),
        "whole MATLAB",
    ),
    "MATLAB 7.3 of noise": (lambda path: path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(999)), "whole MATLAB"),
    "NetCDF 3, truncated": (lambda path: netcdf(path, "scipy"), "expected a whole NetCDF file"),
    "NetCDF 4, truncated": (lambda path: netcdf(path, "h5netcdf"), "truncated, damaged or incomplete"),
    "NetCDF of noise": (lambda path: path.write_bytes(b"CDF\x01" + bytes(range(200))), "expected a whole NetCDF file"),
    "Zarr that unpickles": (lambda path: zarr_with(path, filters=[{"id": "pickle"}]), "expected .* Zarr|pickles"),
    "Zarr of objects": (
        lambda path: zarr_with(path, dtype="|O", filters=[{"id": "pickle"}]),
        "expected .* Zarr|pickles",
    ),
    "Zarr of noise": (zarr_with, "expected a whole Zarr store"),
    "Zarr with a description of a terabyte": (
        zarr_of_a_terabyte,
        "expected a whole Zarr store",
    ),
    "Zarr whose description is a pipe": (
        zarr_of_a_pipe,
        "expected data files directly in",
    ),
    "Zarr of 7 PiB": (huge_zarr, "got 0 of .* pieces stored"),
    "Zarr without a description": (
        lambda path: (path.mkdir(), (path / "zarr.json").write_text("{")),
        "expected a whole Zarr store",
    ),
    "a truncated picture": (lambda path: pictures(path, half), "expected a whole picture"),
    "a smaller picture": (
        lambda path: pictures(path, lambda one: Image.fromarray(np.zeros((8, 8), np.uint8)).save(one)),
        "expected pictures of one size",
    ),
    "a picture with a palette": (
        lambda path: pictures(path, lambda one: Image.open(one).convert("P").save(one)),
        "got mode P",
    ),
    "a picture of 16 bits with two channels": (
        lambda path: pictures(path, lambda one: deep_png(one, 1000 + np.arange(512).reshape(16, 16, 2))),
        "RGB or RGBA of 8 bits, got others in",
    ),
    "a picture of 16 bits with three channels": (
        lambda path: pictures(path, lambda one: deep_png(one, 1000 + np.arange(768).reshape(16, 16, 3))),
        "RGB or RGBA of 8 bits, got others in",
    ),
    "TIFF with a channel that Pillow leaves out": (
        lambda path: tiff(path, np.zeros((16, 16, 2), np.uint8), 338, 2, 0),
        "RGB or RGBA of 8 bits, got others in|that is damaged or holds others",  # what Pillow makes of it
    ),
    "TIFF of float64": (
        lambda path: tiff(path, np.zeros((16, 16), np.float32), 258, 32, 64),
        "such as float64 .* save each component as gray TIFF of float32",
    ),
    "TIFF of noise": (lambda path: path.write_bytes(b"II*\x00" + bytes(range(99))), "expected a whole TIFF file"),
    "a pipe": (os.mkfifo, "got nothing at"),
    "an empty file": (lambda path: path.touch(), "got a file that begins with b''"),
    "times of two numbers": (lambda path: save(path, FIELDS, times=np.arange(2)), "expected one time per frame"),
    "times as text": (lambda path: save(path, FIELDS, times=np.array(["now"] * 10)), "expected times that are real"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(tmp_path, name):
    write, words = FILES[name]
    path = tmp_path / "source"
    write(path)
    before = sorted(tmp_path.rglob("*"))
    for function in (load, inspect):
        if function is inspect and name == "times of two numbers":
            assert words in inspect(path).plan
            continue
        with pytest.raises(RdjepaError, match=words) as caught:
            function(path)
        message = str(caught.value)
        assert message.startswith("expected ") and "; " in message and "\n" not in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (np.ma.masked_less(FIELDS, -2), "masked ones"),
        (Trajectory(np.ma.masked_less(FIELDS, -2), np.arange(10.0)), "masked ones"),
        ([np.ma.masked_less(FIELDS, -2)], "masked ones"),
        (FIELDS + 1j, "real and imaginary part"),
        (FIELDS > 0, "floating dtype, got bool"),
        (np.array([["a"]]), "floating dtype"),
        (FIELDS.astype(np.float64) * 1e60, "range of float32"),
        (np.zeros_like(FIELDS), "component 0 between 0 and 0"),
        (np.stack([FIELDS[..., 0], np.ones((10, 6, 8))], -1), "component 1 between 1 and 1"),
        (1000 + FIELDS * 1e-5, "components that vary"),
        (np.where(np.arange(10)[:, None, None, None] == 4, np.nan, FIELDS), "got 96 values .* in frame 4"),
        (FIELDS[:8], "at least 9 frames"),
        (np.concatenate([FIELDS, FIELDS[..., :1]], -1), "expected 2 components, got 3 .* --components 0,1"),
        (np.moveaxis(FIELDS, 0, 1)[..., 0], "at least 9 frames .* say the order of axes"),
    ],
)
def test_bad_arrays(fields, words):
    with pytest.raises(RdjepaError, match=words):
        load(fields)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (np.arange(10)[::-1], "times that increase, got 9 and then 8 in frame 1"),
        (np.repeat(np.arange(5), 2), "times that increase, got 0 and then 0"),
        (np.where(np.arange(10) == 3, np.nan, np.arange(10)), "finite times"),
        (np.arange(10) ** 2, "equally spaced times, got intervals from 1 to 17"),
    ],
)
def test_bad_times_unless_an_interval_is_given(tmp_path, times, words):
    save(tmp_path / "a.npz", FIELDS, times=times)
    with pytest.raises(RdjepaError, match=words):
        load(tmp_path / "a.npz")
    assert words.split(",")[0] in inspect(tmp_path / "a.npz").plan
    with pytest.warns(Note, match="replaced by an interval of 0.5"):
        (found,) = load(tmp_path / "a.npz", reading=Reading(interval=0.5))
    assert np.array_equal(found.times, np.arange(10) * 0.5)


def test_times_of_a_trajectory_may_be_a_list_and_texts_are_refused():
    listed = Trajectory(FIELDS, list(range(10)))  # type: ignore[arg-type]
    (found,) = load(listed)
    assert isinstance(found.times, np.ndarray) and np.array_equal(found.times, np.arange(10))
    assert inspect(listed).interval == 1.0
    text = Trajectory(FIELDS, np.arange(10).astype(str))
    with pytest.raises(RdjepaError, match="times that are real numbers, got <U"):
        load(text)
    assert "times that are real numbers" in inspect(text).plan


def test_dates_in_a_file_are_seconds_and_texts_are_none(tmp_path):
    days = np.arange("2000-01-01", "2000-01-11", dtype="datetime64[D]")
    save(tmp_path / "a.npz", FIELDS, times=days)
    (found,) = load(tmp_path / "a.npz")
    assert np.array_equal(found.times, np.arange(10) * 86_400.0)
    save(tmp_path / "d.npz", FIELDS, times=days - days[0] + np.timedelta64(36, "h"))
    (found,) = load(tmp_path / "d.npz")
    assert np.array_equal(found.times, (np.arange(10) + 1.5) * 86_400.0)  # durations are not dates
    save(tmp_path / "m.npz", FIELDS, times=np.arange("2000-01", "2000-11", dtype="datetime64[M]"))
    with pytest.raises(RdjepaError, match=r"equally spaced times, got intervals from 2\.5056e\+06 to 2\.67"):
        load(tmp_path / "m.npz")
    years = np.arange("2001", "2011", dtype="datetime64[Y]")
    assert catalog.in_seconds(years)[1] == 365 * 86_400.0
    save(tmp_path / "b.npz", FIELDS, times=days.astype(str))
    with pytest.raises(RdjepaError, match="real numbers or dates, got <U"):
        load(tmp_path / "b.npz")
    (found,) = load(tmp_path / "b.npz", reading=Reading(interval=0.5))
    assert np.array_equal(found.times, np.arange(10) * 0.5)


@pytest.mark.parametrize("line", [np.logspace(0, 2, 8), np.abs(np.arange(8) - 3.0)])
def test_uneven_coordinates_unless_distances_are_given(tmp_path, line):
    values = {name: (("time", "y", "x"), FIELDS[..., number]) for number, name in enumerate("uv")}
    uneven = xarray.Dataset(values, coords={"y": np.arange(6.0), "x": line})
    uneven.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    uneven.to_zarr(tmp_path / "a.zarr", consolidated=False)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, name in enumerate("uv"):
            file[f"t0_fields/{name}"] = FIELDS[None, ..., number].swapaxes(2, 3)
        for name, coordinates in (("time", np.arange(10.0)), ("x", line), ("y", np.arange(6.0))):
            file[f"dimensions/{name}"] = coordinates
    for source in (uneven, tmp_path / "a.nc", tmp_path / "a.zarr", tmp_path / "a.h5"):
        with pytest.raises(
            RdjepaError, match=r"equally spaced coordinates x, got distances .*; interpolate to an even"
        ):
            load(source)
        assert load(source, reading=Reading(spacing=(1, 2)))[0].spacing == (1, 2)


def test_coordinates_that_were_rounded_are_equally_spaced():
    line = (1000 + np.arange(8) * 0.001).astype(np.float32)
    values = {name: (("time", "y", "x"), FIELDS[..., number]) for number, name in enumerate("uv")}
    (found,) = load(xarray.Dataset(values, coords={"y": np.arange(6) * 0.001, "x": line}))
    assert found.spacing == pytest.approx((0.001, 0.001), rel=0.1)


def test_times_that_were_rounded_are_equally_spaced():
    from rdjepa.data.soundness import require_times

    require_times((1e4 + np.arange(100) * 0.01).astype(np.float32), 100)
    require_times(np.zeros(1), 1)


@pytest.mark.parametrize(("kind", "words"), [(np.int16, "whole numbers"), (np.float16, "three digits")])
def test_harmless_numbers_are_converted_with_a_note(kind, words):
    fields = (FIELDS * 100).astype(kind)
    with pytest.warns(Note, match=words):
        (found,) = load(fields)
    assert found.fields.dtype == np.float32 and np.array_equal(found.fields, fields.astype(np.float32))


def test_more_than_fits_into_memory_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr("rdjepa.data.readers.sizes.available_memory", lambda: FIELDS.nbytes - 1)
    with pytest.raises(RdjepaError, match=r"expected fields that fit into the 3.75 KiB of free memory, got 3.75 KiB"):
        load(FIELDS)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(FIELDS)


def test_the_limit_of_a_container_counts_and_what_it_would_give_back(tmp_path, monkeypatch):
    monkeypatch.setattr("rdjepa.data.readers.sizes.GROUP", tmp_path)
    machine = available_memory()
    for name, text in {"current": "2500", "stat": "anon 2000\ninactive_file 400\n", "max": "4000"}.items():
        assert abs(available_memory() - machine) < machine / 2
        (tmp_path / f"memory.{name}").write_text(text)
    assert available_memory() == 4000 - 2500 + 400
    with pytest.raises(RdjepaError, match=r"expected fields that fit into the 1.86 KiB of free memory, got 3.75 KiB"):
        load(FIELDS)
    (tmp_path / "memory.max").write_text("max\n")
    load(FIELDS)


def test_objects_beside_the_fields_are_left_alone(tmp_path):
    save(tmp_path / "a.npz", FIELDS, notes=np.array([Evil()]), x=np.array([Evil()] * 8), meta=np.array({"a": 1}))
    (found,) = load(tmp_path / "a.npz")
    assert np.array_equal(found.fields, FIELDS)


def test_values_of_another_file_are_not_read(tmp_path):
    hdf5(tmp_path / "other.h5", fields=np.ascontiguousarray(FIELDS.T))
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["fields"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "fields")
    with (tmp_path / "a.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(512))
    with pytest.raises(RdjepaError, match="got those of another file"):
        load(tmp_path / "a.mat")


def test_what_was_never_written_or_is_said_in_words_beside_the_fields_is_left_alone(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["fields"] = FIELDS
        file.create_dataset("later", (5, 6, 7), "f4")
        file["counts"] = np.arange(3)
        file["counts"].attrs["missing_value"] = "none"
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["fields"] = np.ascontiguousarray(FIELDS.T)
        file.create_dataset("later", (5, 6, 7), "f4")
    with (tmp_path / "a.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(512))
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("fields", data=FIELDS)
    group.create_array("later", shape=(500, 60, 70), chunks=(1, 60, 70), dtype="f4")
    group.create_array("counts", data=np.arange(3)).attrs["missing_value"] = "none"
    for name in ("a.h5", "a.mat", "a.zarr"):
        for reading in (None, Reading(field="fields")):
            assert np.array_equal(load(tmp_path / name, reading=reading)[0].fields, FIELDS)
        with pytest.raises(RdjepaError, match=r"declared and 0 bytes stored|got 0 of 500 pieces stored"):
            load(tmp_path / name, reading=Reading(field="later", axes="t y x"))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.create_dataset("x", (8,), "f4")
    with pytest.raises(RdjepaError, match=r"got 32 bytes declared and 0 bytes stored in .*/x"):
        load(tmp_path / "a.h5")


def test_a_file_that_another_program_has_locked_is_one_sentence(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["fields"] = FIELDS
    with (tmp_path / "a.h5").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RdjepaError, match=r"one that a program has locked at .*a\.h5; close it there"):
            load(tmp_path / "a.h5")
    assert load(tmp_path / "a.h5")


@pytest.mark.parametrize(("method", "name"), [("open", "a.npy"), ("iterdir", "."), ("is_file", "a.npy")])
def test_what_may_not_be_read_is_one_sentence(tmp_path, monkeypatch, method, name):
    path = tmp_path / name
    np.save(tmp_path / "a.npy", FIELDS)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, method, refuse)
    for read in (load, inspect):
        with pytest.raises(RdjepaError, match=r"a file or directory that can be read, got .* \(permission denied\)"):
            read(path)
