"""The demonstration: forecast a held-out system after adaptation to one trajectory.

Simulate, adapt, train the control from scratch, evaluate on unseen trajectories after some and after all updates, draw.
Every number is of this run.
"""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rdjepa import api, forecasters
from rdjepa.adaptation.adapt import AVERAGED, LAST, PROFILES, AdaptConfig
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import OutputError
from rdjepa.evaluation.aggregate import horizon_average, per_horizon
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.evaluation.metrics import DEFAULT_METRICS
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.persistence import persistence
from rdjepa.io.atomic import write_bytes
from rdjepa.io.checkpoint import DEFAULT, read_config
from rdjepa.io.kinds import is_demonstration, is_forecaster
from rdjepa.io.provenance import software
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.progress import Progress
from rdjepa.study import protocol
from rdjepa.viz import figures

RD_JEPA, SCRATCH, PERSISTENCE = "RD-JEPA", "from scratch", "persistence"
RESULT, FORECASTER = "result.json", "forecaster.safetensors"
CURVE, FORECAST, MOVIE = "curve.png", "forecast.png", "forecast.gif"
STRIDE = 4  # on the way every fourth window is evaluated

Bar = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class DemoConfig:
    """Settings of the demonstration.

    Attributes:
        system: name of a system, usually one held out of pretraining.
        model: name or directory of a pretrained model.
        k: support trajectories.
        updates: of the adaptation and of the control.
        test: unseen test trajectories.
        support_seed: which support set, 777, 778 or 779 in the paper.
        seed: of fresh weights and window order, 777 in the paper.
        device: "auto", "cpu", "cuda".
    """

    system: str = "barkley"
    model: str = DEFAULT
    k: int = 1
    updates: int = 100
    test: int = 6
    support_seed: int = protocol.SUPPORT_SEEDS[0]
    seed: int = 777
    device: str = "auto"

    @property
    def observed(self) -> tuple[int, ...]:
        """Numbers of updates after which errors are measured on the way: an eighth, a quarter and half of all."""
        return tuple(sorted({max(1, self.updates // part) for part in (8, 4, 2)} - {self.updates}))


def run(config: DemoConfig, out: Path, bar: Bar) -> dict[str, Any]:
    """Run the demonstration; write `result.json`, two figures, an animation and the trajectories to `out`.

    Args:
        config: settings.
        out: directory; trajectories already there are used again.
        bar: makes a progress bar from a label, as `rdjepa.cli.console.progress`.

    Returns:
        The content of `result.json`: settings, timings, fingerprint, versions, errors by forecaster, metric and
        horizon, and under "curve" the mean relative L2 error by forecaster and number of updates.

    Raises:
        OutputError: in `out` are files of these names that no demonstration wrote.
    """
    _refuse_overwriting(out)
    _, checkpoint = read_config(config.model)
    seconds: dict[str, float] = {}
    started = time.perf_counter()
    data = _simulated(config, checkpoint.model["grid"], out, bar)
    seconds["simulate"] = time.perf_counter() - started
    learning, unseen = data[: config.k], data[config.k :]

    started_from: dict[str, RDJEPA | ForecastModel] = {
        RD_JEPA: api.load(config.model),
        SCRATCH: forecasters.build("scratch", checkpoint.name, seed=config.seed),
    }
    adapted: dict[str, Forecaster] = {}
    curve: dict[str, dict[int, float]] = {}
    weights = AVERAGED if PROFILES.get(checkpoint.name, AdaptConfig()).averaging else LAST
    for name, model in started_from.items():
        with bar(f"train {name}") as update:
            adapted[name], curve[name] = _adapted(config, model, learning, unseen, weights, update)
        seconds[f"train {name}"] = sum(adapted[name].record["seconds"].values())

    rows = {}
    started = time.perf_counter()
    compared: dict[str, Any] = {**adapted, PERSISTENCE: persistence}
    for name, forecast in compared.items():
        with bar(f"evaluate {name}") as update:
            rows[name] = api.evaluate(forecast, unseen, progress=update)
    seconds["evaluate"] = time.perf_counter() - started

    for name, found in curve.items():
        found[config.updates] = horizon_average(rows[name], DEFAULT_METRICS[0])
    result = {
        "config": vars(config),
        "support": [str(each.key) for each in learning],
        "test": [str(each.key) for each in unseen],
        "windows_per_trajectory": FORECASTING.count(len(unseen[0].fields)),
        "fingerprint": checkpoint.sha256,
        "training": {name: forecaster.record for name, forecaster in adapted.items()},
        "errors": {
            name: {metric: per_horizon(part, metric) for metric in DEFAULT_METRICS} for name, part in rows.items()
        },
        "curve": curve,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "software": software(),
    }
    write_bytes(out / RESULT, json.dumps(result, indent=2).encode())  # first: it says whose the others are
    _draw(config, unseen[0].fields, adapted, out)
    flat = horizon_average(rows[PERSISTENCE], DEFAULT_METRICS[0])
    title = f"{config.system}, K = {config.k}, {config.test} unseen trajectories"
    figures.learning(curve, {PERSISTENCE: flat}, out / CURVE, title=title)
    adapted[RD_JEPA].save(out / FORECASTER)
    return result


def _refuse_overwriting(out: Path) -> None:
    """Refuse a directory with files that would be replaced, unless a demonstration wrote the result beside them.

    Raises:
        OutputError: there is one.
    """
    ours = is_demonstration(out / RESULT)
    for name in (RESULT, CURVE, FORECAST, MOVIE, FORECASTER):
        path = out / name
        if path.exists() and not (ours and (name != FORECASTER or is_forecaster(path))):
            raise OutputError(
                f"expected none but a demonstration's files in {out}, got {path}; choose another --out, or move it away"
            )


def _simulated(config: DemoConfig, grid: int, out: Path, bar: Bar) -> list[Trajectory]:
    """Return the support trajectories, then the test trajectories, on the grid of the model; kept below `out`."""
    keys = protocol.support(config.system, config.k, config.support_seed)
    keys += [Key(config.system, "test", "id", i) for i in range(config.test)]
    data: list[Trajectory] = []
    acquirer = Acquirer(out / "data")
    with bar(f"simulate {config.system}") as update:
        for number, key in enumerate(keys):
            update(number, len(keys), str(key))
            data.append(acquirer.get(key).coarsened(grid))
        update(len(keys), len(keys), "")
    return data


def _adapted(
    config: DemoConfig,
    model: RDJEPA | ForecastModel,
    learning: list[Trajectory],
    unseen: list[Trajectory],
    weights: str,
    progress: Progress,
) -> tuple[Forecaster, dict[int, float]]:
    """Return the network alone after all updates, and its mean error on the way by the number of updates."""
    errors: dict[int, float] = {}

    def measure(updates: int, kind: str, snapshot: Forecaster) -> None:
        if kind == weights:
            found = evaluate(snapshot.forecast, unseen, metrics=DEFAULT_METRICS[:1], stride=STRIDE)
            errors[updates] = horizon_average(found, DEFAULT_METRICS[0])

    adapted = api.adapt(
        model,
        learning,
        steps=config.updates,
        seed=config.seed,
        base="none",
        retain=0.0,  # the control has nothing to go back to
        device=config.device,
        progress=progress,
        observe=measure,
        at=config.observed,
    )
    return adapted, errors


def _draw(config: DemoConfig, fields: np.ndarray, adapted: dict[str, Forecaster], out: Path) -> None:
    """Draw the middle window, and animate all windows, of one unseen trajectory."""
    middle = FORECASTING.middle(fields)
    shown = {name: forecaster.forecast(middle.context) for name, forecaster in adapted.items()}
    shown[PERSISTENCE] = persistence(middle.context[None])[0]
    title = f"{config.system}, unseen trajectory, u; K = {config.k}, {config.updates} updates"
    figures.forecast(middle.targets, shown, out / FORECAST, title=title)
    context, targets = FORECASTING.stack(fields)
    moving = {name: forecaster.forecast(context)[:, -1] for name, forecaster in adapted.items()}
    moving_title = f"{title}: each frame forecast five frames ahead"
    figures.animation(targets[:, -1], moving, out / MOVIE, title=moving_title)
