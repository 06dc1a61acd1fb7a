"""Every kind of file that the package reads: an example, another of the same kind, and the public function for it."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from campaign import small
from campaign.content import VOLATILE


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: in the table.
        folder: everything that its reader needs, below the folder of examples; copied for every trial.
        file: the file to be damaged, in that folder.
        other: another file of the kind, in that folder.
        read: takes the copy of the folder and the path of the file; returns all that the reader returns.
        foreign: whether it is a user's own file, without a checksum: then only shapes are compared.
        named: whether the user names the file itself, so that another whole one in its place is what was asked for.
    """

    name: str
    folder: str
    file: str
    other: str
    read: Callable[[Path, Path], Any]
    foreign: bool = False
    named: bool = False


def kinds() -> list[Kind]:
    """Return all kinds."""
    data, run, study, own = "data", "pretrain", "study run", "foreign"
    first, second = (f"turning/data/train/id-0000{n}.hdf5" for n in (0, 1))
    cells = "cells/{}/"
    return [
        Kind("trajectory", data, first, second, lambda folder, path: _store("get", folder)),
        Kind("trajectory, as a user's file", data, first, second, lambda folder, path: _load(path), named=True),
        Kind("record of a trajectory", data, first, second, lambda folder, path: _store("get_record", folder)),
        Kind("trajectory, verified", "build", first, second, _verified),
        Kind("manifest", "build", "manifest.json", "recipe.json", _manifest),
        Kind("recipe", "build", "recipe.json", "manifest.json", _recipe),
        Kind("support sets", "build", "turning/support.json", "recipe.json", _support),
        Kind("weights", run, "model/model.safetensors", "state/step-00000006.safetensors", _checkpoint),
        Kind("configuration of a checkpoint", run, "model/config.json", "other/config.json", _checkpoint),
        Kind("data of a checkpoint", run, "model/data.json", "model/config.json", _audit),
        Kind("run state", run, "state/step-00000006.safetensors", "state/step-00000004.safetensors", _state),
        Kind("data of a run", run, "data.json", "model/config.json", _resumed),
        Kind("metrics of a run", run, "metrics.jsonl", "data.json", _resumed),
        Kind("frames of a run", "frames", "frames/*.frames", "metrics.jsonl", mapped),
        Kind("statistics of the frames", "frames", "frames/*.json", "data.json", mapped),
        Kind("forecaster", "forecasters", "a.safetensors", "b.safetensors", _forecaster, named=True),
        Kind("settings of a study", study, "study.json", cells.format(0) + "record.json", _status),
        Kind("statistics of a study", study, "statistics/*.json", "study.json", _statistics),
        Kind("record of a cell", study, cells.format(0) + "record.json", cells.format(1) + "record.json", _collected),
        Kind("rows of a cell", study, cells.format(0) + "rows.parquet", cells.format(1) + "rows.parquet", _collected),
        Kind(
            "spectra of a cell",
            study,
            cells.format(0) + "spectra.parquet",
            cells.format(1) + "spectra.parquet",
            _collected,
        ),
        Kind(
            "curve of a cell", study, cells.format(0) + "curve.parquet", cells.format(1) + "curve.parquet", _collected
        ),
        Kind("example of a cell", study, cells.format(0) + "example.npz", cells.format(1) + "example.npz", _collected),
        Kind("record of a pretraining", "pretrainings", "*/record.json", "study.json", _pretrained),
        Kind("exported rows", "export", "rows.parquet", "curve.parquet", _collected),
        Kind("exported spectra", "export", "spectra.parquet", "curve.parquet", _collected),
        Kind("exported curve", "export", "curve.parquet", "rows.parquet", _collected),
        Kind("exported records", "export", "records.json", "examples.npz", _collected),
        Kind("exported examples", "export", "examples.npz", "records.json", _collected),
        Kind("npy of a user", own, "a.npy", "b.npy", lambda folder, path: _load(path), True),
        Kind("npz of a user", own, "a.npz", "b.npz", lambda folder, path: _load(path), True),
        Kind("The Well", own, "well.hdf5", "pdebench.h5", lambda folder, path: _load(path), True),
        Kind("PDEBench", own, "pdebench.h5", "well.hdf5", lambda folder, path: _load(path), True),
        Kind("NetCDF 4", own, "a.nc", "b.nc", lambda folder, path: _load(path), True),
        Kind("NetCDF 3", own, "b.nc", "a.nc", lambda folder, path: _load(path), True),
        Kind("MATLAB, compressed", own, "a.mat", "b.mat", lambda folder, path: _load(path), True),
        Kind("MATLAB", own, "b.mat", "a.mat", lambda folder, path: _load(path), True),
        Kind("description of a Zarr array", own, "zarr/zarr.json", "a.npy", _zarr, True),
        Kind("piece of a Zarr array", own, "zarr/c/0/0/0/0", "a.npy", _zarr, True),
        Kind("picture", own, "pictures/05.png", "pictures/06.png", lambda folder, path: _load(path.parent), True),
    ]


def place(folder: Path, pattern: str) -> Path:
    """Return the file of a pattern: cells/0/... is the first cell by name that was trained."""
    if pattern.startswith("cells/"):
        _, number, name = pattern.split("/")
        trained = [path.parent for path in sorted(folder.glob("cells/*/example.npz")) if _trained(path.parent)]
        return trained[int(number)] / name
    return next(folder.glob(pattern), folder / pattern)


def _trained(cell: Path) -> bool:
    return bool(json.loads((cell / "record.json").read_text())["updates"])


def digest(value: Any) -> str:
    """Return a hash of anything that a reader returns."""
    total = hashlib.sha256()

    def add(each: Any) -> None:
        total.update(f"<{type(each).__name__}>".encode())
        if hasattr(each, "detach"):
            each = each.detach().float().cpu().numpy()
        if hasattr(each, "to_csv"):
            each = {name: each[name].astype(str).tolist() for name in each.columns}
        if isinstance(each, np.ndarray):
            total.update(f"{each.shape}{each.dtype}".encode())
            total.update(np.ascontiguousarray(each).tobytes())
        elif isinstance(each, Mapping):
            for key in sorted(each.keys() - {"seal"}, key=str):
                add(str(key))
                add(each[key])
        elif isinstance(each, list | tuple):
            for item in each:
                add(item)
        elif dataclasses.is_dataclass(each):
            add(vars(each))
        else:
            total.update(repr(each).encode())

    add(value)
    return total.hexdigest()


def _store(function: str, folder: Path) -> Any:
    from rdjepa.data import store
    from rdjepa.data.trajectory import Key

    return getattr(store, function)(folder, Key("turning"))


def _load(path: Path) -> Any:
    from rdjepa.data import readers

    return [vars(trajectory) for trajectory in readers.load(path)]


def _zarr(folder: Path, path: Path) -> Any:
    return _load(folder / "zarr")


def _verified(folder: Path, path: Path) -> Any:
    """What `data verify` says is refusal enough: it names the file and ends with status 1."""
    from rdjepa.data import manifest, store
    from rdjepa.errors import DataError

    verdict = manifest.verify(folder)
    if not verdict.good:
        raise DataError(f"expected files as in the manifest, got wrong ones: {dict(verdict.wrong)}{verdict.unlisted}")
    return [verdict, [store.read(store.path_of(folder, key), verify=False) for key in store.keys(folder)]]


def _manifest(folder: Path, path: Path) -> Any:
    from rdjepa.data import manifest

    entries = manifest.read(folder)
    _verified(folder, path)
    return {str(key): entry for key, entry in entries.items()}


def _recipe(folder: Path, path: Path) -> Any:
    """A recipe returns nothing: it is accepted, and then has to say what it said."""
    from rdjepa import systems
    from rdjepa.data import manifest

    manifest.check(folder, [systems.get(small.SOURCE)])
    return {key: value for key, value in json.loads(path.read_text()).items() if key not in VOLATILE}


def _support(folder: Path, path: Path) -> Any:
    from rdjepa import systems
    from rdjepa.data import manifest
    from rdjepa.study import cards

    found = cards.summarize(folder, systems.get(small.SOURCE), manifest.read(folder))
    return [found.support, found.coinciding]


def _checkpoint(folder: Path, path: Path) -> Any:
    from rdjepa import load
    from rdjepa.io import checkpoint

    model = load(folder / "model")
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("decoder.")}
    return [weights, model.name, model.fingerprint, model.config, checkpoint.read_config(folder / "model")[1]]


def _audit(folder: Path, path: Path) -> Any:
    from rdjepa.errors import CheckpointError
    from rdjepa.study.leaks import audit

    found, leaks = audit(str(folder / "model"))
    if any("fingerprint" in each for each in leaks):
        raise CheckpointError(f"expected the data of the run, got others: {leaks}")
    return [found, leaks, json.loads(path.read_text())]


def _state(folder: Path, path: Path) -> Any:
    import torch

    from rdjepa.pretraining.config import PROFILES
    from rdjepa.pretraining.state import TrainingState

    training = TrainingState(small.PRESET, PROFILES[small.PRESET], torch.device("cpu"))
    training.load(path)
    return [training.step, training.tensors()]


def _resumed(folder: Path, path: Path) -> Any:
    """Resume the finished run at its last step: nothing is trained, but everything is read."""
    import torch

    from rdjepa.data.statistics import Normalizer
    from rdjepa.pretraining.config import PROFILES
    from rdjepa.pretraining.dataset import Dataset
    from rdjepa.pretraining.loop import pretrain

    dataset = Dataset.open(folder.parent / "data", [small.SOURCE], dtype=torch.bfloat16, grid=64)
    assert isinstance(dataset.normalizers[small.SOURCE], Normalizer)
    model = pretrain(small.PRESET, dataset, folder, PROFILES[small.PRESET], resuming=True)
    log = folder / "metrics.jsonl"
    lines = log.read_text().splitlines() if log.is_file() else []  # a log: that none is dropped without a word
    return [list(model.encoder.parameters()), len(lines), json.loads((folder / "data.json").read_text())]


def mapped(folder: Path, path: Path) -> Any:
    import torch

    from rdjepa.pretraining.dataset import Dataset

    found = Dataset.open(
        folder.parent / "data", [small.SOURCE], dtype=torch.bfloat16, mapped=folder / "frames", grid=64
    )
    return [found.frames.take(torch.arange(56)), found.normalizers, found.checksums]


def _forecaster(folder: Path, path: Path) -> Any:
    from rdjepa import load_forecaster

    found = load_forecaster(path)
    return [
        found.model.state_dict(), type(found.model).__name__, found.model.name, found.model.preset, found.base,
        found.normalizer, found.record, found.losses, found.calibration, found.familiar,
    ]  # fmt: skip


def _status(folder: Path, path: Path) -> Any:
    from rdjepa.study import runner
    from rdjepa.study.directory import Directory
    from rdjepa.study.profiles import profile

    found = runner.status(folder, runner.cells(small.STUDY), profile(small.PRESET))
    return [found.done, Directory(folder).read(), _collected(folder, path)]


def _statistics(folder: Path, path: Path) -> Any:
    from rdjepa.study.supply import Supply

    return Supply(folder, grid=64).normalizer(small.SOURCE, 2)


def _pretrained(folder: Path, path: Path) -> Any:
    from rdjepa.study import pretrainings

    return pretrainings.read_record(path.parent), pretrainings.weights(path.parent).name


def _collected(folder: Path, path: Path) -> Any:
    from rdjepa.study import collect

    records = collect.read_records(folder)
    tables = [collect.collect(folder), collect.spectra(folder), collect.curve(folder)]
    return [records, tables, [collect.examples(folder)(record["id"]) for record in records]]
