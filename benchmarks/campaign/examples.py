"""Examples of every kind of file that the package reads, made by the package itself or in the formats of others."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from campaign import sandbox, small
from campaign.commands import prepare
from campaign.kinds import mapped


def make(inputs: Path) -> None:
    """Make the examples, unless they are there, in forks, so that this process stays without threads."""
    if (inputs / "pretrain" / "other").exists():  # made last
        return
    prepare(inputs, ("data", "pretrain", "adapt", "study run", "export", "data build"))
    for work in (_make_build, _make_frames, _make_forecasters, _make_pretraining, _make_foreign, _make_other):
        ended = sandbox.forked(partial(work, inputs), inputs / ".said", 60, memory=None)
        if ended.status:
            raise RuntimeError(f"{work.__name__}: {ended.text}")


def _make_build(inputs: Path) -> None:
    shutil.rmtree(inputs / "build", ignore_errors=True)
    shutil.copytree(inputs / "data build", inputs / "build")


def _make_frames(inputs: Path) -> None:
    folder = inputs / "frames"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs / "pretrain", folder)
    mapped(folder, folder)


def _make_forecasters(inputs: Path) -> None:
    import rdjepa

    folder = inputs / "forecasters"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(inputs / "adapt" / "forecaster.safetensors", folder / "a.safetensors")
    support = inputs / "data" / "turning" / "data" / "train" / "id-00002.hdf5"
    rdjepa.adapt(inputs / "pretrain" / "model", support, steps=1, base="linear").save(folder / "b.safetensors")


def _make_pretraining(inputs: Path) -> None:
    """The checkpoint of the run, as one that a study made."""
    import rdjepa
    from rdjepa.io import sealed
    from rdjepa.pretraining.config import PROFILES
    from rdjepa.study.pretrainings import Pretraining, PretrainingRecord

    start = Pretraining(small.PRESET, ((small.SYSTEM, 3),), PROFILES[small.PRESET])
    folder = inputs / "pretrainings" / start.name
    shutil.rmtree(folder.parent, ignore_errors=True)
    shutil.copytree(inputs / "pretrain" / "model", folder / "model")
    shutil.copy(inputs / "study run" / "study.json", folder.parent)
    weights = rdjepa.load(folder / "model").fingerprint
    record = PretrainingRecord(start.name, start.identity(), weights, 1.0, {"torch": "2"}, "2026-01-01T00:00:00+00:00")
    sealed.write(folder / "record.json", vars(record))


def _make_foreign(inputs: Path) -> None:
    import h5py
    import scipy.io
    import xarray
    import zarr
    from PIL import Image

    folder = inputs / "foreign"
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    fields: Any = None
    for name in "ab":
        fields = rng.standard_normal((12, 8, 8, 2)).astype(np.float32)
        np.save(folder / f"{name}.npy", fields)
        np.savez_compressed(folder / f"{name}.npz", fields=fields, times=np.arange(12.0))
    with h5py.File(folder / "well.hdf5", "w") as file:
        file.attrs["n_trajectories"] = 2
        group = file.create_group("t0_fields")
        group.attrs["field_names"] = ["u", "v"]
        for name in "uv":
            group.create_dataset(name, data=rng.standard_normal((2, 12, 8, 8)).astype(np.float32), compression="gzip")
        for name, values in (("time", 12), ("x", 8), ("y", 8)):
            file.create_dataset(f"dimensions/{name}", data=np.arange(values, dtype=np.float32))
        for name, shape in (("feed", ()), ("kill", (2,))):
            scalar = file.create_dataset(f"scalars/{name}", data=rng.random(shape))
            scalar.attrs["sample_varying"], scalar.attrs["time_varying"] = bool(shape), False
        wall = file.create_group("boundary_conditions/x_periodic")
        wall.attrs["bc_type"] = "PERIODIC"
    with h5py.File(folder / "pdebench.h5", "w") as file:
        for number in range(2):
            group = file.create_group(f"{number:04d}")
            group["data"] = rng.standard_normal((12, 8, 8, 2)).astype(np.float32)
            group["grid/t"], group["grid/x"] = np.linspace(0, 5, 12), np.linspace(-1, 1, 8)

    dims, coordinates = ("time", "y", "x"), {"time": np.arange(12) * 0.5}
    both = xarray.Dataset({name: (dims, fields[..., n]) for n, name in enumerate("uv")}, coordinates)
    both.to_netcdf(folder / "a.nc", engine="h5netcdf")
    both.to_netcdf(folder / "b.nc", engine="scipy")
    zarr.save_array(str(folder / "zarr"), fields)
    scipy.io.savemat(folder / "a.mat", {"w": fields, "t": np.arange(12.0)}, do_compression=True)
    scipy.io.savemat(folder / "b.mat", {"w": fields, "t": np.arange(12.0)})
    (folder / "pictures").mkdir(exist_ok=True)
    for number, frame in enumerate((50 * fields + 128).clip(0, 255).astype(np.uint8)):
        Image.fromarray(frame, mode="LA").save(folder / "pictures" / f"{number:02d}.png")


def _make_other(inputs: Path) -> None:
    """A second checkpoint's configuration, of other weights."""
    folder = inputs / "pretrain" / "other"
    folder.mkdir(exist_ok=True)
    record = json.loads((inputs / "pretrain" / "model" / "config.json").read_text())
    record["sha256"] = record["sha256"][::-1]
    (folder / "config.json").write_text(json.dumps(record))
