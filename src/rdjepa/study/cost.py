"""The expected cost of a study on this machine, from a few timed updates and forecasts of every forecaster."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from rdjepa import api, systems
from rdjepa.adaptation import retention
from rdjepa.data.build import trajectory_bytes
from rdjepa.data.simulate import simulate
from rdjepa.data.statistics import Normalizer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.evaluation.metrics import METRICS
from rdjepa.evaluation.spectra import RadialSpectra
from rdjepa.io import sealed
from rdjepa.io.provenance import software
from rdjepa.models.rdjepa import PRESETS, build
from rdjepa.pretraining import objectives, parts
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.engine import fastest
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.state import TrainingState
from rdjepa.progress import Progress
from rdjepa.study import changes
from rdjepa.study.cell import Cell
from rdjepa.study.contenders import decided, forecaster, untrained
from rdjepa.study.directory import RECORD
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import Profile
from rdjepa.study.supply import Supply, keys_of, pool_keys

TIMINGS = "timings.json"
Timings = dict[str, dict[str, dict[str, float]]]  # device -> what was timed -> seconds by part
FRAMES = 40
TIMED_WINDOWS = 4
TIMED_UPDATES = 2
WARM_UP, MORE = 12, 50  # steps and updates on a GPU, where graphs are captured in the first ones
CELL_BYTES = 2**21  # size of a cell's files, assumed until one is finished


@dataclass(frozen=True)
class Step:
    """Measured seconds of one forecaster.

    Attributes:
        support: features of one support trajectory, all windows.
        decide: what is decided before the first update, for one support trajectory.
        update: one parameter update.
        test: forecasts and metrics of one test trajectory, all windows.
    """

    support: float
    decide: float
    update: float
    test: float

    def of(self, cell: Cell, profile: Profile) -> float:
        """Return the expected seconds of a cell."""
        reading = (self.support + self.decide) * cell.k
        final = self.test * len(cell.test(profile.test))
        if not cell.trained:
            return reading + final
        kinds = 2 if profile.adapt.averaging else 1  # of weights that are measured on the way
        curve = final / profile.stride * kinds * len(profile.observed)
        return reading + self.update * profile.adapt.steps + curve + final


@dataclass(frozen=True)
class Cost:
    """The expected cost of the missing cells of a study.

    Attributes:
        seconds: of adapting and evaluating, by forecaster.
        pretraining_seconds: of the pretrainings that are missing; those of runs that were stopped count whole.
        data_seconds: of simulating the trajectories that are missing.
        data_bytes: of trajectories that will be kept.
        cell_bytes: of its results.
    """

    seconds: Mapping[str, float]
    pretraining_seconds: float
    data_seconds: float
    data_bytes: int
    cell_bytes: int

    @property
    def hours(self) -> float:
        """Expected hours of one worker, data included."""
        return (sum(self.seconds.values()) + self.pretraining_seconds + self.data_seconds) / 3600


def cost(
    missing: Sequence[Cell],
    profile: Profile,
    supply: Supply,
    device: torch.device,
    progress: Progress | None = None,
    starts: Sequence[Pretraining] = (),
) -> Cost:
    """Return the expected cost of some cells, one after the other on one device.

    Args:
        missing: the cells.
        profile: sizes and settings of the runs.
        supply: source of their trajectories; its study directory keeps the timings.
        device: device to be timed.
        progress: called with the number of timings done, their total and the name of the next.
        starts: the missing pretrainings that the cells start from.
    """
    contenders = list(dict.fromkeys(_contender(cell) for cell in missing))
    own, lacking = supply.lacking_for(starts), supply.lacks(keys_of(missing, profile))
    simulated = lacking + [
        key
        for system in dict.fromkeys(cell.system for cell in missing)
        if not supply.has_statistics(system, profile.statistics)
        for key in supply.lacks(pool_keys(system, profile.statistics))
    ]
    simulating = dict.fromkeys([*(cell.system for cell in missing), *(key.system for key in [*simulated, *own])])
    wanted = [(name, _cell_of(name, k, profile), partial(measure, name, profile, device, k)) for name, k in contenders]
    wanted += [(system, f"simulate {system}", partial(draw, system)) for system in simulating]
    kinds = {_kind(start): start for start in starts}
    wanted += [(kind, kind, partial(measure_pretraining, start, device)) for kind, start in kinds.items()]
    remembered = _Remembered(supply, device)
    timed: dict[str, dict[str, float]] = {}
    for number, (text, what, measured) in enumerate(wanted):
        if progress:
            progress(number, len(wanted), text)
        timed[what] = remembered.get(what, measured)
    if progress:
        progress(len(wanted), len(wanted), "")
    seconds = {cell.forecaster: 0.0 for cell in missing}
    for cell in missing:
        seconds[cell.forecaster] += Step(**timed[_cell_of(*_contender(cell), profile)]).of(cell, profile)
    return Cost(
        seconds,
        sum(timed[_kind(start)]["step"] * start.config.steps for start in starts),
        sum(timed[f"simulate {key.system}"]["draw"] for key in [*simulated, *own]),
        min(_bytes_of(lacking), supply.limit) + _bytes_of(own),
        len(missing) * _bytes_of_a_cell(supply),
    )


def _bytes_of(keys: Iterable[Key]) -> int:
    return sum(trajectory_bytes(systems.get(key.system)) for key in keys)


def _contender(cell: Cell) -> tuple[str, int]:
    """Return the forecaster of a cell, and the least number of trajectories with which it is the same one."""
    several = decided(cell.forecaster, cell.k) != cell.forecaster
    return cell.forecaster, retention.SEVERAL if several else 1


def measure(name: str, profile: Profile, device: torch.device, k: int = 1) -> dict[str, float]:
    """Return the seconds of a `Step`, timed on a few windows of noise after a warm-up update.

    On a GPU every adaptation captures its graphs first; there an update is what more updates take longer.

    Args:
        name: of a forecaster or of a change.
        profile: sizes and settings.
        device: device to be timed.
        k: number of trajectories, where that decides what the forecaster is.
    """
    frames = FORECASTING.frames(TIMED_WINDOWS)
    fields = np.random.default_rng(0).standard_normal((frames, profile.grid, profile.grid, 2)).astype(np.float32)
    share = FORECASTING.count(FRAMES) / TIMED_WINDOWS  # windows of a whole trajectory over the timed ones
    normalizer = Normalizer((0.0, 0.0), (1.0, 1.0))
    support = decide = update = 0.0
    found = changes.baseline(name)
    if not found.trained:
        forecast, _ = untrained(name, profile, normalizer, device)
    else:
        adapt = partial(
            api.adapt,
            forecaster(name, profile, k=k),
            fields,
            normalizer=normalizer,
            base=found.base,
            retain=found.retains,
            augment=found.augments,
            device=device,
        )
        adapt(config=replace(profile.adapt, steps=1))
        adapted = adapt(config=replace(profile.adapt, steps=TIMED_UPDATES))
        support, decide, update = (adapted.record["seconds"][part] for part in ("features", "decide", "adapt"))
        update /= TIMED_UPDATES
        if device.type == "cuda":
            longer = adapt(config=replace(profile.adapt, steps=TIMED_UPDATES + MORE)).record["seconds"]
            update = (longer["adapt"] - adapted.record["seconds"]["adapt"]) / MORE
        forecast = adapted.forecast
    trajectory = Trajectory(fields, np.arange(frames, dtype=np.float64), key=Key("noise"))
    spectra = RadialSpectra(normalizer.mean, normalizer.scale)
    test = _timed(lambda: evaluate(forecast, [trajectory], metrics=tuple(METRICS), observe=spectra.add), device)
    return {
        "support": support * share,
        "decide": decide * share,
        "update": update,
        "test": test * share,
    }


def measure_pretraining(start: Pretraining, device: torch.device) -> dict[str, float]:
    """Return {"step": seconds of one step of a pretraining}, on noise and after warm-up steps, by the usual engine."""
    sizes, config = parts.without(start.without, PRESETS[start.preset], objectives.resolved(start.config))
    if not objectives.get(config.objective).trained:
        return {"step": 0.0}
    fields = np.random.default_rng(0).standard_normal((FRAMES, sizes.components, sizes.grid, sizes.grid))
    frames = Frames.of({"noise": [fields.astype(np.float32)]}).to(device)
    begun = build(sizes) if start.start else None
    if begun:
        begun.pretrained = ("encoder", "predictor")  # any weights take as long
    training = TrainingState(start.preset, config, device, fastest(device), model=sizes, start=begun)

    def step() -> None:
        dataset = Dataset(frames, {})
        batch = dataset.batch(config.seed, training.step, config.batch, training.side, training.objective)
        training.update([batch.to(device)])

    warm_up, timed = (WARM_UP, MORE) if device.type == "cuda" else (1, TIMED_UPDATES)
    for _ in range(warm_up):
        step()
    return {"step": sum(_timed(step, device) for _ in range(timed)) / timed}


def _kind(start: Pretraining) -> str:
    """Return what decides the seconds of a pretraining step."""
    config = start.config
    return f"pretrain {config.objective} {start.preset} {config.batch} {config.precision} {' '.join(start.without)}"


def _cell_of(name: str, k: int, profile: Profile) -> str:
    """Return what decides the seconds of a cell's parts; changes differ only in whether the encoder is tuned."""
    change = changes.find(name)
    kind = name if change is None else "change, encoder tuned" if change.encoder else "change"
    kind = kind if decided(name, k) == name else f"{kind} as {decided(name, k)}"
    return f"cell of {kind} {profile.preset_of(name)} {profile.adapt.batch} {profile.adapt.precision}"


def draw(system: str) -> dict[str, float]:
    """Return {"draw": seconds of one draw of a trajectory}, without compilation."""
    simulate(system)  # compiles
    started = time.perf_counter()
    trajectory = simulate(system)
    return {"draw": (time.perf_counter() - started) / (trajectory.attempt + 1)}


class _Remembered:
    """Timings of a device, kept in timings.json of the study directory."""

    def __init__(self, supply: Supply, device: torch.device) -> None:
        self.path = supply.root / TIMINGS
        self.device = f"{software(device)['device']}, {device.type}, {torch.get_num_threads()} threads"
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
