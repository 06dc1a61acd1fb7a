"""A file is told by what is in it, and one of another kind is not replaced unasked."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.adaptation.stream import forecast_all
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Trajectory
from rdjepa.errors import OutputError
from rdjepa.forecasters.linear import Linear
from rdjepa.io.kinds import is_demonstration, is_forecast, is_forecaster, is_forecasts, is_rows, refuse_replacing

FIELDS = np.random.default_rng(0).standard_normal((9, 6, 6, 2)).astype(np.float32)
KINDS = (is_demonstration, is_forecast, is_forecaster, is_forecasts, is_rows)


@pytest.fixture
def forecaster():
    return Forecaster(Linear.fit([torch.from_numpy(FIELDS).movedim(-1, 1)]), Normalizer((0.0, 0.0), (1.0, 1.0)))


def test_each_kind_is_known_from_the_others(tmp_path, forecaster):
    forecaster.save(tmp_path / "a")
    forecast_all(forecaster, [Trajectory(FIELDS, np.arange(9.0))], tmp_path / "b")
    with (tmp_path / "c").open("wb") as file:
        np.savez(file, context=FIELDS[:4], forecast=FIELDS[4:])
    (tmp_path / "d").write_text('{"forecaster": "linear", "metric": "mse", "horizon": 1, "value": 0.5}\n')
    found = {name: [each.__name__ for each in KINDS if each(tmp_path / name)] for name in "abcd"}
    assert found == {"a": ["is_forecaster"], "b": ["is_forecasts"], "c": ["is_forecast"], "d": ["is_rows"]}
    (tmp_path / "e").write_bytes(b"notes")
    assert not any(each(path) for each in KINDS for path in (tmp_path / "e", tmp_path / "absent"))


@pytest.mark.parametrize("content", ["data.npy", "other.h5"])
def test_writers_in_python_replace_their_own_kind_alone_unless_forced(tmp_path, forecaster, content):
    def save(path, **options):
        forecaster.save(path, **options)

    def every(path, **options):
        forecast_all(forecaster, [Trajectory(FIELDS, np.arange(9.0))], path, **options)

    path = tmp_path / content
    for write in (save, every):
        if content.endswith("npy"):
            np.save(path, FIELDS)
        else:
            with h5py.File(path, "w") as file:
                file["fields"] = FIELDS
        before = path.read_bytes()
        with pytest.raises(OutputError, match=r"no other file .*, got one at .*; choose another path, or .*force=True"):
            write(path)
        assert path.read_bytes() == before
        write(path, force=True)
        write(path)
        assert path.read_bytes() != before


def test_a_device_is_another_kind():
    with pytest.raises(OutputError, match="got one at /dev/null"):
        refuse_replacing(Path("/dev/null"), kind="forecaster", same_kind=is_forecaster)
