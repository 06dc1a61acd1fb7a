"""All windows of many trajectories are forecast into one file, in bounded batches, one trajectory at a time."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import rdjepa
from rdjepa.adaptation import stream
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.adaptation.stream import forecast_all
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.errors import ArgumentError, DataError
from rdjepa.forecasters.linear import Linear


def trajectory(seed, frames=20, side=8):
    fields = np.random.default_rng(seed).standard_normal((frames, side, side, 2)).astype(np.float32)
    return Trajectory(fields, np.arange(frames, dtype=float), key=Key("mine", index=seed))


class Counting(Forecaster):
    """Counts the contexts of every call."""

    def __init__(self):
        import torch

        model = Linear.fit([torch.from_numpy(trajectory(99).fields).movedim(-1, 1)])
        super().__init__(model, rdjepa.Normalizer((0.5, 0.0), (2.0, 1.0)), {})
        self.sizes = []

    def forecast(self, context):
        self.sizes.append(len(context))
        return super().forecast(context)


def test_every_window_has_the_forecast_that_it_has_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "AT_ONCE", 5)
    forecaster, given = Counting(), [trajectory(0), trajectory(1, 4), trajectory(2, 11)]
    done = forecast_all(forecaster, given, tmp_path / "all.h5")
    assert (done.trajectories, done.forecasts) == (3, 17 + 1 + 8) and max(forecaster.sizes) == 5
    with h5py.File(tmp_path / "all.h5") as file:
        assert [name.decode() for name in file["name"]] == [str(each.key) for each in given]
        for whose, start, found in zip(file["trajectory"], file["start"], file["forecast"], strict=True):
            alone = forecaster.forecast(given[whose].fields[None, start : start + 4])[0]
            assert np.allclose(found, alone, atol=1e-6)
        pairs = list(zip(file["trajectory"], file["start"], strict=True))
        assert np.allclose(file["times"][:], file["start"][:][:, None] + np.arange(4, 9))
    assert pairs == sorted({(i, s) for i, each in enumerate(given) for s in range(len(each.fields) - 3)})


def test_trajectories_without_a_key_have_the_names_that_are_given(tmp_path):
    given = [trajectory(0), *(Trajectory(trajectory(i).fields, np.arange(20.0)) for i in (1, 2))]
    forecast_all(Counting(), given, tmp_path / "all.h5", names=("a.npy", "b.npy"))
    with h5py.File(tmp_path / "all.h5") as file:
        assert [name.decode() for name in file["name"]] == [str(given[0].key), "b.npy", ""]


def test_memory_is_bounded_by_one_trajectory_and_one_batch(tmp_path):
    arrays, forecaster = [], Counting()

    def arriving():
        for seed in range(200):
            made = trajectory(seed)
            arrays.append(weakref.ref(made.fields))
            gc.collect(0)
            assert sum(array() is not None for array in arrays) <= 2  # this one, and the one before
            yield made

    done = forecast_all(forecaster, arriving(), tmp_path / "all.h5")
    assert done.forecasts == 3400 and max(forecaster.sizes) == 16


FULL = """
import resource
from rdjepa.adaptation.stream import forecast_all
from test_stream import Counting, trajectory
for limit in (100, 5_000, 40_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        forecast_all(Counting(), [trajectory(0)], "all.h5")
    except OSError as error:
        print(error)
"""


def test_a_disk_that_is_full_ends_in_one_sentence_and_leaves_no_file(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    ended = subprocess.run([sys.executable, "-c", FULL], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.splitlines()
    assert len(said) == 3 and len(set(said)) == 1
    assert said[0].startswith("expected to write all.h5, got a limit on the size of files; raise it")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "at least one trajectory"),
        ([trajectory(0), trajectory(1, 3)], "at least 4 frames in trajectory 1, got 3"),
        ([trajectory(0, 1)], "at least 4 frames in trajectory 0, got 1"),
        ([trajectory(0), trajectory(1, side=6)], r"one grid, got \(6, 6, 2\) after \(8, 8, 2\)"),
    ],
)
def test_unfit_trajectories_leave_no_file(tmp_path, given, words):
    with pytest.raises(DataError, match=words):
        forecast_all(Counting(), given, tmp_path / "all.h5")
    assert list(tmp_path.iterdir()) == []


def test_arrays_and_what_is_no_path_are_refused(tmp_path):
    arrays: Any = [trajectory(0).fields]
    with pytest.raises(ArgumentError, match="expected trajectory 0 to be a Trajectory, got"):
        forecast_all(Counting(), arrays, tmp_path / "all.h5")
    number: Any = 3
    with pytest.raises(ArgumentError, match="expected a file of forecasts to be a str or Path, got 3"):
        forecast_all(Counting(), [trajectory(0)], number)
    assert list(tmp_path.iterdir()) == []
