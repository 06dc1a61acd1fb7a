"""From a file that this package did not write to what is said of it, and to a forecast on its own grid."""

from pathlib import Path

import numpy as np
import pytest

import rdjepa
from rdjepa.cli import main as cli
from rdjepa.errors import Note
from rdjepa.forecasters import build
from rdjepa.forecasters.fno import Config
from rdjepa.io import checkpoint

X = np.arange(24) / 24
T = np.arange(12)[:, None, None]
U = np.sin(2 * np.pi * (X[:, None] + X) + T / 4)
V = np.cos(2 * np.pi * (X[:, None] - X) + T / 4)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main([str(each) for each in arguments])
    shown = capsys.readouterr()
    return ended.value.code, " ".join(shown.out.split()), " ".join(shown.err.split())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a NetCDF file, an array of another order, and a forecaster on 16 x 16 points."""
    xarray = pytest.importorskip("xarray", reason="the extra `formats` is not installed")
    folder = tmp_path_factory.mktemp("made")
    names = ("time", "y", "x")
    found = xarray.Dataset({"u": (names, U), "v": (names, V)}, coords={"time": np.arange(12) * 0.5})
    found.to_netcdf(folder / "a.nc", engine="h5netcdf")
    np.save(folder / "b.npy", np.stack([U, V, U * 0], axis=1).transpose(2, 3, 1, 0))
    model = build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16))
    with pytest.warns(Note, match="averaged by Fourier series, continued periodically, 24 x 24 to 16 x 16 points"):
        rdjepa.adapt(model, folder / "a.nc", steps=1, resample=True).save(folder / "mine.safetensors")
    return folder


def test_inspect_says_what_a_file_holds_and_writes_nothing(here, capsys):
    before = sorted(Path().iterdir())
    status, text, _ = run(capsys, "inspect", "a.nc")
    assert status == 0 and sorted(Path().iterdir()) == before
    for words in ("NetCDF file", "24 x 24", "t y x (named in the source)", "0.5", "component u", "wrap around"):
        assert words in text
    assert "refined by Fourier series, continued periodically, 24 x 24 to 64 x 64 points" in text
    assert "4 windows of 4 + 5 frames" in text


def test_positions_of_trajectories_count_over_all_files_in_every_command(here, capsys):
    for name in ("c.npy", "d.npy"):
        np.save(name, np.random.default_rng(len(name)).standard_normal((2, 12, 16, 16, 2)))
    np.save("d.npy", np.load("d.npy") + 1)
    status, text, _ = run(capsys, "inspect", "c.npy", "d.npy", "--index", "0,2,3")
    assert status == 0 and "c.npy, d.npy" in text and "trajectories 3 " in text
    for place, verb in enumerate((("inspect",), ("forecast", "mine.safetensors"), ("evaluate", "mine.safetensors"))):
        status, _, error = run(capsys, *verb, "c.npy", "d.npy", "--index", "4")
        assert status == 2 and "positions from 0 to 3, as there are 4" in error, place
    assert run(capsys, "forecast", "mine.safetensors", "c.npy", "d.npy", "--index", 2, "--out", "of.npz")[0] == 0
    with np.load("of.npz") as made:
        assert np.array_equal(made["context"], np.load("d.npy")[0, -4:].astype(np.float32))


@pytest.mark.parametrize("verb", ["forecast", "evaluate", "view"])
def test_a_forecaster_is_read_to_the_device_that_is_named(here, capsys, verb):
    status, _, error = run(capsys, verb, "mine.safetensors", "a.nc", "--resample", "--device", "abacus")
    assert status == 2 and "device auto, cpu or a GPU of this machine, got 'abacus'" in error


def test_options_of_reading_are_the_same_everywhere(here, capsys, monkeypatch, narrow):
    monkeypatch.setattr(checkpoint, "shipped", lambda: {checkpoint.DEFAULT: narrow})
    said = ("--axes", "y x c t", "--components", "0,1", "--interval", "0.5", "--length", "3")
    assert run(capsys, "inspect", "b.npy", "--axes", "y x c t")[0] == 0
    status, text, _ = run(capsys, "inspect", "b.npy", *said)
    assert status == 0 and "y x c t (as given)" in text and "4 windows" in text
    for verb in (("evaluate", "mine.safetensors"), ("forecast", "mine.safetensors"), ("adapt",)):
        steps = ("--steps", 1, "--out", "other.safetensors") if verb == ("adapt",) else ()
        status, _, error = run(capsys, *verb, "b.npy", "--resample", *said, *steps)
        if verb == ("adapt",):
            assert status == 0 and "note: fields are refined" in error
        else:
            assert status == 0 and "note: fields are averaged by Fourier series" in error
        assert run(capsys, *verb, "b.npy", "--resample", *said[:2], *steps)[0] == 2


def test_a_forecast_is_brought_back_to_the_grid_of_the_data(here, capsys):
    assert run(capsys, "forecast", "mine.safetensors", "a.nc", "--out", "near", "--resample")[0] == 0
    assert run(capsys, "forecast", "mine.safetensors", "a.nc", "--out", "own", "--back")[0] == 0
    with np.load("near") as near, np.load("own") as own:
        assert near["forecast"].shape == (5, 16, 16, 2) and own["forecast"].shape == (5, 24, 24, 2)
        np.testing.assert_allclose(own["forecast"].mean((1, 2)), near["forecast"].mean((1, 2)), atol=1e-5)
        assert np.abs(own["context"][..., 0] - U[-4:]).max() < 0.08


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "absent.nc"),
        ("inspect", "a.nc", "--field", "w"),
        ("inspect", "a.nc", "--axes", "t y"),
        ("inspect", "a.nc", "--interval", "0"),
        ("inspect", "mine.safetensors"),
        ("forecast", "mine.safetensors", "a.nc"),
        ("adapt", "b.npy", "--axes", "y x c t", "--resample"),
        ("adapt", "a.nc", "--components", "u,w"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(here, capsys, arguments):
    before = sorted(Path().iterdir())
    status, _, error = run(capsys, *arguments)
    assert status == 2 and "error: expected" in error and "Traceback" not in error
    assert sorted(Path().iterdir()) == before


def test_what_is_refused_for_its_uneven_coordinates_is_read_with_the_spacing_that_is_asked_for(here, capsys):
    import xarray

    with xarray.open_dataset("a.nc", engine="h5netcdf") as found:
        found.assign_coords(y=X, x=X**2).to_netcdf("uneven.nc", engine="h5netcdf")
    for command in (("inspect",), *((verb, "mine.safetensors", "--resample") for verb in ("evaluate", "forecast"))):
        status, _, said = run(capsys, *command, "uneven.nc")
        assert status == 2 and "expected equally spaced coordinates x" in said and "give --spacing" in said
        assert run(capsys, *command, "uneven.nc", "--spacing", "1,1")[0] == 0
