"""Data that this package did not make, each from its file to a forecast with interval and figure in one command.

    python benchmarks/formats.py make others
    python benchmarks/formats.py run others --out benchmarks/results/formats.csv
    python benchmarks/formats.py table benchmarks/results/formats.csv

`make` simulates five equations with py-pde (Zwicker 2020), two of which this package does not have, and stores each as
other people do: a file of py-pde, the layouts of PDEBench and of The Well, NetCDF by xarray, and a folder of gray
pictures. `run` calls `rdjepa first-look` for each, with each base, and writes what it measured on the held-out end.
"""

import argparse
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import fmean

import h5py
import numpy as np
import xarray
from PIL import Image
from scipy.ndimage import gaussian_filter

import pde
import rdjepa
from rdjepa.api import BASES
from rows import call, read, write

FIELDS = ("source", "equation", "stride", "base", "updates", "seconds", "forecaster", "horizon", "relative_l2")


def solved(
    terms: dict[str, str], start: list[np.ndarray], side: float, end: float, step: float, interval: float, wall: bool
) -> np.ndarray:
    """Solve equations by py-pde; return (T, N, N, C), frames an interval apart, the second axis along x."""
    points = start[0].shape[0]
    grid = pde.CartesianGrid([(0, side)] * 2, points, periodic=not wall)
    state = pde.FieldCollection([pde.ScalarField(grid, each) for each in start])
    storage = pde.MemoryStorage()
    equation = pde.PDE(terms, bc={"derivative": 0} if wall else "periodic")
    equation.solve(state, t_range=end, dt=step, tracker=[storage.tracker(interval)])
    frames = np.stack([np.asarray(frame.data) for frame in storage])
    return np.moveaxis(frames, 1, -1)


def noise(points: int, smooth: float, seed: int) -> np.ndarray:
    """Return a periodic random field of mean 0 and standard deviation 1."""
    field = gaussian_filter(np.random.default_rng(seed).standard_normal((points, points)), smooth, mode="wrap")
    return (field - field.mean()) / field.std()


def py_pde(folder: Path) -> Path:
    """Write a Brusselator as py-pde stores it."""
    path = folder / PLACES[py_pde]
    grid = pde.CartesianGrid([(0, 64)] * 2, 96, periodic=True)
    start = [pde.ScalarField(grid, level + noise(96, 1, seed) / 10) for seed, level in enumerate((1, 3))]
    equation = pde.PDE({"u": "laplace(u) + 1 - 4*u + u**2*v", "v": "0.1*laplace(v) + 3*u - u**2*v"})
    storage = pde.FileStorage(str(path), write_mode="truncate")
    equation.solve(pde.FieldCollection(start), t_range=16, dt=0.01, tracker=[storage.tracker(0.25)])
    storage.close()
    return path


def pdebench(folder: Path) -> Path:
    """Write PDEBench's diffusion-reaction equation, FitzHugh-Nagumo between walls, in its layout."""
    path = folder / PLACES[pdebench]
    start = [noise(128, 3, seed) for seed in (2, 3)]
    terms = {"u": "1e-3*laplace(u) + u - u**3 - 5e-3 - v", "v": "5e-3*laplace(v) + u - v"}
    frames = solved(terms, start, 2.0, 5.0, 0.002, 0.05, wall=True)
    centers = (np.arange(128) + 0.5) / 64 - 1
    with h5py.File(path, "w") as file:
        file["0000/data"] = frames.swapaxes(1, 2).astype(np.float32)
        file["0000/grid/x"], file["0000/grid/y"] = centers, centers
        file["0000/grid/t"] = 0.05 * np.arange(len(frames))
    return path


def the_well(folder: Path) -> Path:
    """Write Gray-Scott's maze, with the coefficients of The Well's data set, in its layout."""
    path = folder / PLACES[the_well]
    seeds = noise(128, 4, 4) > 1.2
    start = [np.where(seeds, 0.5, 1.0), np.where(seeds, 0.25, 0.0)]
    terms = {"A": "2e-5*laplace(A) - A*B**2 + 0.029*(1 - A)", "B": "1e-5*laplace(B) + A*B**2 - 0.086*B"}
    frames = solved(terms, start, 2.0, 2000.0, 0.5, 20.0, wall=False).astype(np.float32)
    with h5py.File(path, "w") as file:
        file.attrs.update(dataset_name="gray_scott", grid_type="cartesian", n_spatial_dims=2, n_trajectories=1)
        file.attrs["simulation_parameters"] = ["F", "k"]
        file.attrs.update(F=0.029, k=0.057)
        dimensions = file.create_group("dimensions")
        dimensions.attrs["spatial_dims"] = ["x", "y"]
        for name, values in (
            ("time", 20.0 * np.arange(len(frames))),
            ("x", np.arange(128) / 64 - 1),
            ("y", np.arange(128) / 64 - 1),
        ):
            dimensions[name] = values.astype(np.float32)
            dimensions[name].attrs.update(sample_varying=False, time_varying=name == "time")
        for axis in ("x", "y"):
            border = file.create_group(f"boundary_conditions/{axis}_periodic")
            border.attrs.update(
                associated_dims=[axis], associated_fields=["A", "B"], bc_type="PERIODIC", sample_varying=False,
                time_varying=False,
            )  # fmt: skip
            border["mask"] = np.isin(np.arange(128), (0, 127))
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = ["F", "k"]
        for name, value in (("F", 0.029), ("k", 0.057)):
            scalars[name] = np.float32(value)
            scalars[name].attrs.update(sample_varying=False, time_varying=False)
        for order in range(3):
            group = file.create_group(f"t{order}_fields")
            names = ["A", "B"] if order == 0 else []
            group.attrs.create("field_names", names, dtype=h5py.string_dtype())
            for component, name in enumerate(names):
                group[name] = frames[None, ..., component]
                group[name].attrs.update(dim_varying=[True, True], sample_varying=True, time_varying=True)
    return path


def netcdf(folder: Path) -> Path:
    """Write predators and prey (Rosenzweig and MacArthur) as an xarray dataset in NetCDF."""
    path = folder / PLACES[netcdf]
    start = [np.clip(0.4 + 0.2 * noise(96, 6, 5), 0.01, 1), np.clip(0.3 + 0.15 * noise(96, 6, 6), 0.01, 1)]
    terms = {
        "u": "laplace(u) + u*(1 - u) - u*v/(u + 0.4)",
        "v": "laplace(v) + 2*u*v/(u + 0.4) - 0.6*v",
    }
    frames = solved(terms, start, 144.0, 36.0, 0.1, 0.6, wall=False)
    times, place = 0.6 * np.arange(len(frames)), np.arange(96) * 1.5
    arrays = {
        name: (("time", "y", "x"), frames[..., component].swapaxes(1, 2))
        for component, name in enumerate(("prey", "predator"))
    }
    dataset = xarray.Dataset(arrays, coords={"time": times, "y": place, "x": place})
    dataset.to_netcdf(path, engine="h5netcdf")
    return path


def pictures(folder: Path) -> Path:
    """Write Swift and Hohenberg's stripes as gray pictures of eight bits, one for each frame."""
    path = folder / PLACES[pictures]
    path.mkdir(exist_ok=True)
    terms = {"u": "0.4*u - u - 2*laplace(u) - laplace(laplace(u)) + 0.3*u**2 - u**3"}
    frames = solved(terms, [0.3 * noise(96, 2, 7)], 96.0, 60.0, 0.01, 0.75, wall=False)[..., 0]
    low, high = frames.min(), frames.max()
    for number, frame in enumerate(frames):
        gray = np.round((frame.T - low) / (high - low) * 255).astype(np.uint8)
        Image.fromarray(gray).save(path / f"frame{number}.png")
    return path


SOURCES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "py-pde file": ("Brusselator", py_pde),
    "PDEBench layout": ("FitzHugh–Nagumo between walls", pdebench),
    "The Well layout": ("Gray–Scott", the_well),
    "xarray, NetCDF": ("predators and prey", netcdf),
    "pictures": ("Swift–Hohenberg, one component", pictures),
}
PLACES: dict[Callable[[Path], Path], str] = {
    py_pde: "brusselator.hdf5",
    pdebench: "2D_diff-react_NA_NA.h5",
    the_well: "gray_scott_maze.hdf5",
    netcdf: "predators.nc",
    pictures: "stripes",
}


def make(arguments: argparse.Namespace) -> None:
    """Simulate and store every source."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, (_, source) in SOURCES.items():
        print(f"{name}: {source(arguments.folder)}", flush=True)


def run(arguments: argparse.Namespace) -> None:
    """Take a first look at every source, as the command does, and keep its figure and errors."""
    rows: list[tuple] = []
    for base, (name, (equation, source)) in product(arguments.bases.split(","), SOURCES.items()):
        began = time.perf_counter()
        look = rdjepa.first_look(
            arguments.folder / PLACES[source], model=arguments.model, steps=arguments.updates, base=base
        )
        picture = look.draw().save(arguments.folder / f"{source.__name__}-{base}.png")
        few = Image.open(picture).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(picture, optimize=True)  # a fifth of the bytes, colors within 4 %
        seconds = round(time.perf_counter() - began)
        for forecaster, errors in look.errors.items():
            place = (name, equation, look.forecaster.stride, base, arguments.updates, seconds, forecaster)
            rows += [(*place, h, round(error, 4)) for h, error in errors.items()]
        print(f"{name}, base {base}: {seconds} s, figure {picture.name}", flush=True)
    write(arguments.out, FIELDS, rows)


def table(arguments: argparse.Namespace) -> None:
    """Print a row per source: the mean error over horizons of each forecaster."""
    rows = read(arguments.rows)
    names = list(dict.fromkeys(row["forecaster"] for row in rows))
    head = (*FIELDS[:6], *names)
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for place in dict.fromkeys(tuple(row[name] for name in FIELDS[:6]) for row in rows):
        own = [row for row in rows if tuple(row[name] for name in FIELDS[:6]) == place]
        means = [fmean(float(row["relative_l2"]) for row in own if row["forecaster"] == name) for name in names]
        print(f"| {' | '.join(place)} | {' | '.join(f'{mean:.4f}' for mean in means)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    build = verbs.add_parser("make")
    build.set_defaults(function=make)
    build.add_argument("folder", type=Path)
    go = verbs.add_parser("run")
    go.set_defaults(function=run)
    go.add_argument("folder", type=Path)
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--bases", default=",".join(BASES), help="what the forecasters add to")
    go.add_argument("--updates", type=int, default=100)
    go.add_argument("--out", type=Path, default=Path("benchmarks/results/formats.csv"))
    show = verbs.add_parser("table")
    show.set_defaults(function=table)
    show.add_argument("rows", type=Path)
    call(parser)


if __name__ == "__main__":
    main()
