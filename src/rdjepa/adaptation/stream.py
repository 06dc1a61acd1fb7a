"""Forecasts of every window of any number of trajectories, into one file, a few contexts at a time."""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.checks import of_class
from rdjepa.data.trajectory import Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import DataError
from rdjepa.forecasters.base import CONTEXT, HORIZONS
from rdjepa.io.atomic import replacing
from rdjepa.io.kinds import FORECASTS, is_forecasts, refuse_replacing
from rdjepa.progress import Progress

AT_ONCE = 16  # contexts in memory beside the trajectory that they are of


class Streamed(NamedTuple):
    """What was written: numbers of trajectories and of forecasts."""

    trajectories: int
    forecasts: int


def forecast_all(
    forecaster: Forecaster,
    trajectories: Iterable[Trajectory],
    path: str | Path,
    *,
    names: Sequence[str] = (),
    force: bool = False,
    progress: Progress | None = None,
) -> Streamed:
    """Forecast from every four consecutive frames of every trajectory, the newest included, and write HDF5.

    Trajectories are taken one at a time and let go, so an iterator over files needs memory for one. The file holds, one
    entry for each context:

        forecast     (N, 5, H, W, C) float32; entry [n, h - 1] is h intervals after the newest frame of context n
        trajectory   (N,) position of its trajectory, from 0
        start        (N,) position of the context's first frame in it, among those that are taken at a stride
        times        (N, 5) times of the forecast frames

    and `name`, for each trajectory its key, or what `names` says of one without.

    Args:
        forecaster: adapted forecaster.
        trajectories: on one grid; those shorter than a context are refused.
        path: file to write; one of forecasts is replaced.
        names: of the trajectories, for those without a key.
        force: replace a file of another kind too.
        progress: called after each trajectory with its number twice, as their total is unknown, and its key.

    Raises:
        ArgumentError: no forecaster, no path, or arrays instead of trajectories.
        DataError: no trajectory, one of fewer than four frames, of another grid than those before, or of another number
            of measured components than the forecaster takes.
        OutputError: the file cannot be written, or would replace one of another kind.
    """
    of_class(forecaster, Forecaster, "a forecaster")
    of_class(path, str | Path, "a file of forecasts")
    refuse_replacing(Path(path), kind="forecasts", same_kind=is_forecasts, force=force)
    with replacing(path) as part, _begun(part) as (file, disk):
        file.attrs["kind"], file.attrs["forecaster"] = FORECASTS, forecaster.model.name
        called: list[str] = []
        forecasts, whose, starts = None, _growing(file, "trajectory"), _growing(file, "start")
        later = file.create_dataset("times", (0, HORIZONS), "f8", maxshape=(None, HORIZONS), chunks=(1024, HORIZONS))
        for number, trajectory in enumerate(trajectories):
            fields = of_class(trajectory, Trajectory, f"trajectory {number}").fields
            if len(fields) < CONTEXT:
                raise DataError(
                    f"expected at least {CONTEXT} frames in trajectory {number}, got {len(fields)}; leave it out"
                )
            forecaster.require_fitting([trajectory])
            if forecasts is None:
                shape = (HORIZONS, *fields.shape[1:])
                forecasts = file.create_dataset(
                    "forecast", (0, *shape), "f4", maxshape=(None, *shape), chunks=(1, *shape)
                )
            if fields.shape[1:] != forecasts.shape[2:]:
                raise DataError(
                    f"expected trajectories on one grid, got {fields.shape[1:]} after {forecasts.shape[2:]} in "
                    f"trajectory {number}; forecast them one grid at a time"
                )
            contexts = np.arange(len(fields) - CONTEXT + 1)  # those that too few frames follow too
            times = forecaster.times_of(trajectory)
            ahead = (times[1] - times[0]) * np.arange(1, HORIZONS + 1)
            for first in range(0, len(contexts), AT_ONCE):
                some = contexts[first : first + AT_ONCE]
                _append(forecasts, forecaster.forecast(fields[FORECASTING.given(some)]))
                _append(starts, some)
                _append(later, times[some + CONTEXT - 1, None] + ahead)
                _append(whose, np.full(len(some), number))
                disk.require_written()
            called.append(str(trajectory.key or (names[number] if number < len(names) else "")))
            if progress:
                progress(number + 1, number + 1, called[-1])
        if forecasts is None:
            raise DataError("expected at least one trajectory to forecast, got none; give some")
        file.create_dataset("name", data=np.array(called, dtype=object), dtype=h5py.string_dtype())
        return Streamed(len(called), len(forecasts))


class _Patient(io.FileIO):
    """A file that keeps its first error for later: HDF5 ends the whole process after a write that fails."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of the data; after an error nothing."""
        left = memoryview(data).cast("B")
        try:
            while len(left) and self.error is None:
                left = left[super().write(left) :]
        except OSError as error:
            self.error = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Change the size; after an error not."""
        try:
            return self.tell() if self.error else super().truncate(size)
        except OSError as error:
            self.error = error
            return self.tell()

    def require_written(self) -> None:
        """Raise the error that was kept.

        Raises:
            OSError: a write has failed.
        """
        if self.error:
            raise self.error


@contextmanager
def _begun(path: Path) -> Iterator[tuple[h5py.File, _Patient]]:
    """Yield a new HDF5 file, and what it is written through."""
    with _Patient(path, "w+") as disk:
        with h5py.File(disk, "w") as file:
            yield file, disk
        disk.require_written()


def _growing(file: h5py.File, name: str) -> h5py.Dataset:
    return file.create_dataset(name, (0,), "i8", maxshape=(None,), chunks=(4096,))


def _append(dataset: h5py.Dataset, rows: np.ndarray) -> None:
    dataset.resize(len(dataset) + len(rows), axis=0)
    dataset[-len(rows) :] = rows
