"""Coverage of forecast intervals, in distribution and outside.

    python benchmarks/intervals.py run --data datasets --out benchmarks/results/intervals.csv
    python benchmarks/intervals.py table benchmarks/results/intervals.csv

For every system, a forecaster is adapted to the first `--support` trajectories of the pool and calibrated on the next
`--calibration` ones, or with `--calibration 0` on what `--hold-out` keeps back of the support. Intervals of the stated
level are then compared with the truth on trajectories of the validation split (id) and, for systems that have them, of
the out-of-distribution regimes of the test split. `run` appends one line per trajectory and horizon and skips what the
file has: coverage is the share of points of all windows that lie within, width the mean width in standard deviations of
the support. `--forecaster linear` is the least-squares forecast of every point from its last four values alone
(`rdjepa.forecasters.linear`), which takes no training. Everything but the number of updates is as `rdjepa.adapt`
decides.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

import rdjepa
from rdjepa import systems
from rdjepa.adaptation.adapt import fitted
from rdjepa.adaptation.intervals import calibrate, hold_out
from rdjepa.api.adapting import BASES
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.linear import Linear
from rdjepa.models.rdjepa import RDJEPA
from rdjepa.pde.system import REGIMES
from rows import Row, append, call, commands, done, read

PLACE = ("forecaster", "system", "support", "calibration", "updates", "base", "level")
START = ("fingerprint", "hold_out")  # of the pretrained weights, and what is kept back of the support
FIELDS = (*PLACE, "blocks", "regime", "trajectory", "horizon", "coverage", "width", *START)


def run(arguments: argparse.Namespace) -> None:
    """Measure the systems that the file does not have with these settings."""
    torch.set_num_threads(arguments.threads)
    measured = done(arguments.out, (*PLACE, *START))
    model = rdjepa.load(arguments.model)
    start = (model.fingerprint[:12], str(arguments.hold_out))
    acquirer = Acquirer(arguments.cache, arguments.data)
    for system in arguments.systems.split(","):
        settings = (arguments.support, arguments.calibration, arguments.updates, arguments.base, arguments.level)
        place = (arguments.forecaster, system, *map(str, settings))
        if (*place, *start) in measured:
            continue

        def get(split: str, index: int, regime: str = "id", system: str = system) -> rdjepa.Trajectory:
            return acquirer.get(Key(system, split, regime, index)).coarsened(model.config.grid)

        end = arguments.support + arguments.calibration
        pool = [get("pool", index) for index in range(end)]
        forecaster = calibrated(model, pool[: arguments.support], pool[arguments.support :], arguments)
        assert forecaster.calibration is not None
        lines: list[tuple] = []
        for regime in (name for name in REGIMES if name in systems.get(system).regimes):
            split, count = ("validation", arguments.id) if regime == "id" else ("test", arguments.ood)
            for index in range(count):
                found = measure(forecaster, get(split, index, regime).fields, arguments)
                blocks = forecaster.calibration.blocks
                lines += [(*place, blocks, regime, index, h, *values, *start) for h, values in enumerate(found, 1)]
        append(arguments.out, FIELDS, lines)
        inside = fmean(line[FIELDS.index("coverage")] for line in lines if line[FIELDS.index("regime")] == "id")
        print(f"{arguments.forecaster} {system}: {inside:.3f} of {arguments.level:g} in distribution", flush=True)


def calibrated(
    model: RDJEPA, support: list[rdjepa.Trajectory], others: list[rdjepa.Trajectory], arguments: argparse.Namespace
) -> rdjepa.Forecaster:
    """Return an adapted and calibrated forecaster."""
    if arguments.forecaster != "linear":
        own = arguments.forecaster == "rd-jepa"
        return rdjepa.adapt(
            model if own else rdjepa.forecasters.build(arguments.forecaster, model.name, seed=777),
            support,
            steps=arguments.updates,
            base=arguments.base,
            augment=False,
            calibrate=others or None,
            hold_out=None if others else arguments.hold_out,
        )
    learning, kept = [each.fields for each in support], [each.fields for each in others]
    if not kept:
        learning, kept = hold_out(learning, arguments.hold_out)
    normalizer = rdjepa.Normalizer.fit(learning, "support")
    forecaster = rdjepa.Forecaster(fitted(Linear(), learning, normalizer), normalizer)
    forecaster.calibration = calibrate(forecaster.forecast, normalizer, kept)
    return forecaster


def measure(
    forecaster: rdjepa.Forecaster, fields: np.ndarray, arguments: argparse.Namespace
) -> Iterator[tuple[float, float]]:
    """Yield coverage and width of one trajectory for every horizon."""
    window = FORECASTING.stack(fields, FORECASTING.starts(len(fields))[:: arguments.stride])
    made = forecaster.interval(window.context, arguments.level)
    inside = (made.lower <= window.targets) & (window.targets <= made.upper)
    width = (made.upper - made.lower) / np.asarray(forecaster.normalizer.scale)
    for h in range(inside.shape[1]):
        yield round(float(inside[:, h].mean()), 4), round(float(width[:, h].mean()), 4)


def table(arguments: argparse.Namespace) -> None:
    """Print coverage by system and regime, the range over trajectories, widths, and how well novelty separates."""
    found: dict[tuple[str, ...], dict[str, dict[str, list[Row]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in read(arguments.rows):
        found[tuple(row[name] for name in (*PLACE, *START))][row["regime"]][row["trajectory"]].append(row)
    heading = [
        "forecaster",
        "system",
        "calibration",
        "regime",
        "n",
        "coverage",
        "lowest to highest",
        "h = 1",
        "h = 5",
        "width",
    ]
    print(f"| {' | '.join(heading)} |\n|{'---|' * len(heading)}")
    for place, regimes in found.items():
        for regime, trajectories in regimes.items():
            each = [fmean(float(row["coverage"]) for row in rows) for rows in trajectories.values()]
            every = [row for rows in trajectories.values() for row in rows]
            at = [fmean(float(row["coverage"]) for row in every if row["horizon"] == h) for h in ("1", "5")]
            width = fmean(float(row["width"]) for row in every)
            shown = [f"{fmean(each):.3f}", f"{min(each):.3f} to {max(each):.3f}", *(f"{value:.3f}" for value in at)]
            cells = [*place[:2], place[3], regime, str(len(each)), *shown, f"{width:.2f}"]
            print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Measure systems or print their table."""
    parser, go, _ = commands(__doc__, run, table, "intervals.csv")
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--forecaster", default="rd-jepa", choices=["linear", *rdjepa.forecasters.names()])
    go.add_argument("--systems", default=",".join(systems.names()))
    go.add_argument("--data", type=Path, help="data set that is read first and never written")
    go.add_argument("--cache", type=Path, default=Path("datasets"), help="where simulated trajectories are kept")
    go.add_argument("--support", type=int, default=1)
    go.add_argument("--calibration", type=int, default=4)
    go.add_argument("--hold-out", type=float, default=0.4)
    go.add_argument("--updates", type=int, default=100)
    go.add_argument("--base", choices=BASES, default="auto")
    go.add_argument("--level", type=float, default=0.9)
    go.add_argument("--id", type=int, default=30)
    go.add_argument("--ood", type=int, default=30)
    go.add_argument("--stride", type=int, default=1, help="take every n-th window of a trajectory")
    call(parser)


if __name__ == "__main__":
    main()
