"""The expected cost of a study on this machine, from a few timed updates and forecasts of every forecaster."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from rdjepa import api
from rdjepa.data.simulate import simulate
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.evaluation.metrics import METRICS
from rdjepa.evaluation.spectra import RadialSpectra
from rdjepa.forecasters import registry as forecasters
from rdjepa.io import sealed
from rdjepa.io.provenance import software
from rdjepa.progress import Progress
from rdjepa.study.cell import Cell, forecaster, untrained
from rdjepa.study.directory import RECORD
from rdjepa.study.profiles import Profile
from rdjepa.study.supply import TRAJECTORY_BYTES, Supply, keys_of, pool_keys

TIMINGS = "timings.json"
Timings = dict[str, dict[str, dict[str, float]]]  # device -> what was timed -> seconds by part
FRAMES = 40
TIMED_WINDOWS = 4
TIMED_UPDATES = 2
CELL_BYTES = 2**21  # size of a cell's files, assumed until one is finished


@dataclass(frozen=True)
class Step:
    """Measured seconds of one forecaster.

    Attributes:
        support: features of one support trajectory, all windows.
        update: one parameter update.
        test: forecasts and metrics of one test trajectory, all windows.
    """

    support: float
    update: float
    test: float

    def of(self, cell: Cell, profile: Profile) -> float:
        """Return the expected seconds of a cell."""
        updates = profile.adapt.steps if cell.trained else 0
        return self.support * cell.k + self.update * updates + self.test * len(cell.test(profile.test))


@dataclass(frozen=True)
class Cost:
    """The expected cost of the missing cells of a study.

    Attributes:
        seconds: of computing it, by forecaster.
        data_seconds: of simulating the trajectories that are missing.
        data_bytes: of trajectories that will be kept.
        cell_bytes: of its results.
    """

    seconds: Mapping[str, float]
    data_seconds: float
    data_bytes: int
    cell_bytes: int

    @property
    def hours(self) -> float:
        """Expected hours of one worker, data included."""
        return (sum(self.seconds.values()) + self.data_seconds) / 3600


def cost(
    missing: Sequence[Cell],
    profile: Profile,
    supply: Supply,
    device: torch.device,
    progress: Progress | None = None,
) -> Cost:
    """Return the expected cost of some cells, one after the other on one device.

    Args:
        missing: the cells.
        profile: sizes and settings of the runs.
        supply: source of their trajectories; its study directory keeps the timings.
        device: device to be timed.
        progress: called with the number of timings done, their total and the name of the next.
    """
    names = list(dict.fromkeys(cell.forecaster for cell in missing))
    system_names = list(dict.fromkeys(cell.system for cell in missing))
    remembered = _Remembered(supply, device)
    total = len(names) + len(system_names)

    def report(number: int, text: str) -> None:
        if progress:
            progress(number, total, text)

    steps, draws = {}, {}
    for number, name in enumerate(names):
        report(number, name)
        what = f"{name} {profile.preset_of(name)} {profile.adapt.batch} {profile.adapt.precision}"
        steps[name] = Step(**remembered.get(what, partial(measure, name, profile, device)))
    for number, system in enumerate(system_names):
        report(len(names) + number, system)
        draws[system] = remembered.get(f"simulate {system}", partial(draw, system))["draw"]
    report(total, "")
    seconds = dict.fromkeys(names, 0.0)
    for cell in missing:
        seconds[cell.forecaster] += steps[cell.forecaster].of(cell, profile)
    lacking = supply.lacks(keys_of(missing, profile))
    simulated = lacking + [
        key
        for system in system_names
        if not supply.has_statistics(system, profile.statistics)
        for key in supply.lacks(pool_keys(system, profile.statistics))
    ]
    return Cost(
        seconds,
        sum(draws[key.system] for key in simulated),
        min(len(lacking) * TRAJECTORY_BYTES, supply.limit),
        len(missing) * _bytes_of_a_cell(supply),
    )


def measure(name: str, profile: Profile, device: torch.device) -> dict[str, float]:
    """Return the seconds of a `Step`, timed on a few windows of noise after a warm-up update."""
    frames = FORECASTING.frames(TIMED_WINDOWS)
    fields = np.random.default_rng(0).standard_normal((frames, profile.grid, profile.grid, 2)).astype(np.float32)
    share = FORECASTING.count(FRAMES) / TIMED_WINDOWS  # windows of a whole trajectory over the timed ones
    normalizer = Normalizer((0.0, 0.0), (1.0, 1.0))
    support = update = 0.0
    if not forecasters.get(name).trained:
        forecast = untrained(name, profile, normalizer, device)
    else:
        adapt = partial(api.adapt, forecaster(name, profile), fields, normalizer=normalizer, device=device)
        adapt(config=replace(profile.adapt, steps=1))
        adapted = adapt(config=replace(profile.adapt, steps=TIMED_UPDATES))
        support, update = adapted.record["seconds"]["features"], adapted.record["seconds"]["adapt"]
        forecast = adapted.forecast
    trajectory = Trajectory(fields, np.arange(frames, dtype=np.float64), key=Key("noise"))
    spectra = RadialSpectra(normalizer.mean, normalizer.scale)
    test = _timed(lambda: evaluate(forecast, [trajectory], metrics=tuple(METRICS), observe=spectra.add), device)
    return {"support": support * share, "update": update / TIMED_UPDATES, "test": test * share}


def draw(system: str) -> dict[str, float]:
    """Return {"draw": seconds of one draw of a trajectory}, without compilation."""
    simulate(system)  # compiles
    started = time.perf_counter()
    trajectory = simulate(system)
    return {"draw": (time.perf_counter() - started) / (trajectory.attempt + 1)}


def left(missing: Iterable[Cell], records: Sequence[Mapping]) -> float | None:
    """Return the expected seconds of cells from the records of finished ones; None before the first is finished.

    A cell is expected to take as long as the mean of the finished ones of its forecaster, or of all.
    """
    taken: dict[str, list[float]] = {}
    for record in records:
        taken.setdefault(record["forecaster"], []).append(sum(record["seconds"].values()))
    everything = [value for values in taken.values() for value in values]
    if not everything:
        return None
    return float(sum(np.mean(taken.get(cell.forecaster, everything)) for cell in missing))


class _Remembered:
    """Timings of a device, kept in timings.json of the study directory."""

    def __init__(self, supply: Supply, device: torch.device) -> None:
        self.path = supply.root / TIMINGS
        self.device = f"{software()['device']}, {device.type}, {torch.get_num_threads()} threads"
        self.known = sealed.read(self.path, Timings, "delete it") if self.path.is_file() else {}

    def get(self, what: str, measured: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Return a kept timing; measure and keep it where there is none."""
        here = self.known.setdefault(self.device, {})
        if what not in here:
            here[what] = measured()
            sealed.write(self.path, self.known)
        return here[what]


def _bytes_of_a_cell(supply: Supply) -> int:
    sizes = [path.stat().st_size for path in (supply.root / "cells").glob("*/*")]
    folders = len(list((supply.root / "cells").glob(f"*/{RECORD}")))
    return sum(sizes) // folders if folders else CELL_BYTES


def _timed(function: Callable[[], object], device: torch.device) -> float:
    """Return the wall-clock seconds of a call."""
    started = time.perf_counter()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started
