"""Held-out systems stored at half, once and twice their frame interval: what a frame stride is worth.

    python benchmarks/stride.py run --out benchmarks/results/stride.csv
    python benchmarks/stride.py table benchmarks/results/stride.csv

Every trajectory is simulated once, with frames at half the system's interval; every second and every fourth of them are
what a recorder with the longer intervals would have stored, and what `--stride 2` and `--stride 4` take of the finest.
RD-JEPA is adapted to one trajectory at each interval, with the same number of updates, and measured on another. Errors
are compared at equal times after the newest frame, in units of the system's own interval; windows are spread over the
trajectory, which with a longer interval begin later. `run` appends, and skips what the file has.
"""

import argparse
from dataclasses import replace

import numpy as np
import torch

import rdjepa
from rdjepa.data import pace
from rdjepa.data.simulate import simulate
from rdjepa.data.survey import inspect
from rdjepa.data.trajectory import Trajectory
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.forecasters.persistence import extrapolation, persistence
from rdjepa.systems import get
from rows import Row, append, call, commands, read, refuse_other

FINEST = 0.5  # of the system's interval
STRIDES = (1, 2, 4)
WINDOWS = 8
SETTINGS = ("model", "asked")
FIELDS = ("system", "interval", "change", "suggested", "forecaster", "updates", "time", "relative_l2", *SETTINGS)


def earlier(row: Row) -> Row:
    """Return what rows did not say before they were told apart by it."""
    return {"model": "nano", "asked": "100"}


def recorded(system: str, index: int, split: str, grid: int) -> Trajectory:
    """Return a trajectory whose frames lie half as far apart as the system's own."""
    known = get(system)
    finer = replace(known.numerics, frames=round((known.numerics.frames - 1) / FINEST) + 1)
    return simulate(replace(known, numerics=finer), seed=index, split=split).coarsened(grid)


def strided(trajectory: Trajectory, stride: int) -> Trajectory:
    return replace(
        trajectory, fields=np.ascontiguousarray(trajectory.fields[::stride]), times=trajectory.times[::stride]
    )


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    settings = dict(zip(SETTINGS, (arguments.model, arguments.updates), strict=True))
    refuse_other(arguments.out, settings, earlier)
    done = {(row["system"], float(row["interval"])) for row in read(arguments.out)}
    grid = rdjepa.load(arguments.model).config.grid
    for system in arguments.systems.split(","):
        if all((system, FINEST * stride) in done for stride in STRIDES):
            continue
        learning, unseen = recorded(system, 0, "pool", grid), recorded(system, 0, "test", grid)
        for stride in STRIDES:
            if (system, FINEST * stride) not in done:
                rows = measure(strided(learning, stride), strided(unseen, stride), FINEST * stride, arguments)
                append(arguments.out, FIELDS, [(system, *row, *settings.values()) for row in rows], earlier)


def measure(learning: Trajectory, unseen: Trajectory, interval: float, arguments: argparse.Namespace) -> list[tuple]:
    """Return the rows of one system at one interval."""
    change = inspect([learning]).change
    suggested = pace.stride(change, len(learning.fields))
    adapted = rdjepa.adapt(
        arguments.model, [learning], steps=arguments.updates, decoder="fresh", retain=0, augment=False
    )
    rows = []
    for name, forecast in (
        ("rd-jepa", adapted.forecast),
        ("persistence", persistence),
        ("extrapolation", extrapolation),
    ):
        stride = max(1, (len(unseen.fields) - 8) // WINDOWS)
        errors = per_horizon(evaluate(forecast, [unseen], metrics=("relative_l2",), stride=stride), "relative_l2")
        updates = arguments.updates if name == "rd-jepa" else 0
        rows += [
            (interval, f"{change:.3f}", suggested, name, updates, interval * h, f"{error:.4f}")
            for h, error in errors.items()
        ]
    return rows


def table(arguments: argparse.Namespace) -> None:
    """Print a row per system and interval: change per frame, suggested stride, errors at equal times."""
    rows = read(arguments.rows)
    times = sorted({float(row["time"]) for row in rows if float(row["time"]).is_integer()})
    head = ("system", "interval", "change", "suggested", "forecaster", *(f"t = {time:g}" for time in times))
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for place in dict.fromkeys(tuple(row[name] for name in FIELDS[:5]) for row in rows):
        errors = {float(row["time"]): row["relative_l2"] for row in rows if tuple(row[n] for n in FIELDS[:5]) == place}
        print(f"| {' | '.join(place)} | {' | '.join(errors.get(time, '') for time in times)} |")


def main() -> None:
    parser, go, _ = commands(__doc__, run, table, "stride.csv")
    go.add_argument("--systems", default="barkley,oregonator")
    go.add_argument("--model", default="nano")
    go.add_argument("--updates", type=int, default=100)
    call(parser)


if __name__ == "__main__":
    main()
