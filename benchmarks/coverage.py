"""Coverage of forecast intervals, in distribution and outside, and whether the novelty of a context tells them apart.

    python benchmarks/coverage.py run --data datasets --out benchmarks/results/coverage.csv
    python benchmarks/coverage.py table benchmarks/results/coverage.csv

For every system, RD-JEPA is adapted to the first `--support` trajectories of the pool and calibrated on the next
`--calibration` ones, or with `--calibration 0` on what `--hold-out` keeps back of the support. Intervals of the stated
level are then compared with the truth on trajectories of the validation split (id) and, for systems that have them, of
the out-of-distribution regimes of the test split. `run` appends one line per trajectory and horizon and skips what the
file has: coverage is the share of points of all windows that lie within, width the mean width in standard deviations of
the support, novelty the median over windows, alarms the share of windows with a novelty above 1.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

import rdjepa
from rdjepa import systems
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import REGIMES, Key
from rdjepa.data.windows import FORECASTING

PLACE = ("system", "support", "calibration", "updates", "base", "level")
FIELDS = (*PLACE, "blocks", "regime", "trajectory", "horizon", "coverage", "width", "novelty", "alarms", "fingerprint")


def run(arguments: argparse.Namespace) -> None:
    """Measure the systems that the file does not have."""
    torch.set_num_threads(arguments.threads)
    done = {row["system"] for row in read(arguments.out)}
    model = rdjepa.load(arguments.model)
    acquirer = Acquirer(arguments.cache, arguments.data)
    for system in arguments.systems.split(","):
        if system in done:
            continue

        def get(split: str, index: int, regime: str = "id", system: str = system) -> rdjepa.Trajectory:
            return acquirer.get(Key(system, split, regime, index)).coarsened(model.config.grid)

        end = arguments.support + arguments.calibration
        pool = [get("pool", index) for index in range(end)]
        forecaster = rdjepa.adapt(
            model,
            pool[: arguments.support],
            steps=arguments.updates,
            base=arguments.base,
            calibrate=pool[arguments.support :] or None,
            hold_out=None if arguments.calibration else arguments.hold_out,
        )
        assert forecaster.calibration is not None
        place = (system, arguments.support, arguments.calibration, arguments.updates, arguments.base, arguments.level)
        rows = []
        for regime in (name for name in REGIMES if name in systems.get(system).regimes):
            split, count = ("validation", arguments.id) if regime == "id" else ("test", arguments.ood)
            for index in range(count):
                found = measure(forecaster, get(split, index, regime).fields, arguments)
                blocks, known = forecaster.calibration.blocks, model.fingerprint[:12]
                rows += [(*place, blocks, regime, index, h, *values, known) for h, values in enumerate(found, 1)]
        append(arguments.out, rows)
        inside = fmean(row[10] for row in rows if row[7] == "id")
        print(f"{system}: {inside:.3f} of {arguments.level:g} in distribution", flush=True)


def measure(
    forecaster: rdjepa.Forecaster, fields: np.ndarray, arguments: argparse.Namespace
) -> Iterator[tuple[float, ...]]:
    """Yield coverage, width, novelty and alarms of one trajectory for every horizon."""
    window = FORECASTING.stack(fields, FORECASTING.starts(len(fields))[:: arguments.stride])
    made = forecaster.interval(window.context, arguments.level)
    inside = (made.lower <= window.targets) & (window.targets <= made.upper)
    width = (made.upper - made.lower) / np.asarray(forecaster.normalizer.scale)
    novelty = forecaster.novelty(window.context)
    assert novelty is not None
    for h in range(inside.shape[1]):
        found = (inside[:, h].mean(), width[:, h].mean(), np.median(novelty), (novelty > 1).mean())
        yield tuple(round(float(value), 4) for value in found)


def append(path: Path, rows: list[tuple]) -> None:
    """Add lines to a CSV file, with a heading if it is new."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        csv.writer(file).writerows([FIELDS, *rows] if new else rows)


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines of a CSV file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(arguments: argparse.Namespace) -> None:
    """Print coverage by system and regime, the range over trajectories, widths, and how well novelty separates."""
    found: dict[tuple[str, ...], dict[str, dict[str, list[dict[str, str]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in read(arguments.rows):
        found[tuple(row[name] for name in PLACE)][row["regime"]][row["trajectory"]].append(row)
    print("| system | regime | coverage | lowest to highest trajectory | h = 1 | h = 5 | width | alarms | separated |")
    print("|" + "---|" * 9)
    for place, regimes in found.items():
        known = novelties(regimes["id"])
        for regime, trajectories in regimes.items():
            each = [fmean(float(row["coverage"]) for row in rows) for rows in trajectories.values()]
            every = [row for rows in trajectories.values() for row in rows]
            at = {h: fmean(float(row["coverage"]) for row in every if row["horizon"] == h) for h in ("1", "5")}
            width, alarms = (fmean(float(row[name]) for row in every) for name in ("width", "alarms"))
            others = novelties(trajectories)
            separated = "" if regime == "id" else f"{np.mean(np.subtract.outer(others, known) > 0):.2f}"
            print(
                f"| {place[0]} | {regime} | {fmean(each):.3f} | {min(each):.3f} to {max(each):.3f} | {at['1']:.3f} | "
                f"{at['5']:.3f} | {width:.2f} | {alarms:.2f} | {separated} |"
            )


def novelties(trajectories: dict[str, list[dict[str, str]]]) -> list[float]:
    """Return the novelty of every trajectory."""
    return [float(rows[0]["novelty"]) for rows in trajectories.values()]


def main() -> None:
    """Measure systems or print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    go = verbs.add_parser("run")
    go.set_defaults(function=run)
    go.add_argument("--model", default="nano")
    go.add_argument("--systems", default=",".join(name for name in systems.names() if "family" not in name))
    go.add_argument("--data", type=Path, help="data set that is read first and never written")
    go.add_argument("--cache", type=Path, default=Path("datasets"), help="where simulated trajectories are kept")
    go.add_argument("--support", type=int, default=1)
    go.add_argument("--calibration", type=int, default=4)
    go.add_argument("--hold-out", type=float, default=0.4)
    go.add_argument("--updates", type=int, default=2_000)
    go.add_argument("--base", choices=("none", "linear"), default="none")
    go.add_argument("--level", type=float, default=0.9)
    go.add_argument("--id", type=int, default=30)
    go.add_argument("--ood", type=int, default=30)
    go.add_argument("--stride", type=int, default=1, help="take every n-th window of a trajectory")
    go.add_argument("--threads", type=int, default=1)
    go.add_argument("--out", type=Path, default=Path("benchmarks/results/coverage.csv"))
    show = verbs.add_parser("table")
    show.set_defaults(function=table)
    show.add_argument("rows", type=Path)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
