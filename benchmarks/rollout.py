"""How long a rollout stays near the truth: forecasts fed back to the end of the trajectory, with each kind of base.

    python benchmarks/rollout.py run --data datasets --out benchmarks/results/rollout.csv
    python benchmarks/rollout.py table benchmarks/results/rollout.csv

RD-JEPA is adapted to one pool trajectory, as `rdjepa.adapt` decides but for the number of updates, and rolled out from
the first four frames of validation trajectories. `run` appends the relative L2 error of every frame, of the rollout, of
persistence and of climatology (the mean of the support), and the number of stable frames, and skips what the file has.
`table` prints means over trajectories and supports.
"""

import argparse
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

import rdjepa
from rdjepa.adaptation.adapt import PROFILES
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key
from rdjepa.evaluation.growth import Growth, growth
from rdjepa.forecasters.base import CONTEXT
from rows import append, call, commands, done, read

PLACE = ("system", "base", "support", "updates")
START = ("precision", "fingerprint")  # of the adaptation, and of the weights that it starts from
FIELDS = (*PLACE, "trajectory", "stable", "frame", *Growth._fields, *START)
SYSTEMS = ("gray-scott", "brusselator", "ginzburg-landau", "lambda-omega", "barkley")
SHOWN = (1, 5, 10, 20, 35)  # frames


def run(arguments: argparse.Namespace) -> None:
    """Measure what the file does not have."""
    torch.set_num_threads(arguments.threads)
    measured = done(arguments.out, (*PLACE, *START))
    model = rdjepa.load(arguments.model)
    start = (arguments.precision, model.fingerprint[:12])
    acquirer = Acquirer(arguments.cache, arguments.data)
    config = replace(PROFILES["nano"], precision=arguments.precision)
    for support in range(arguments.supports):
        for system in arguments.systems.split(","):

            def get(split: str, index: int, system: str = system) -> rdjepa.Trajectory:
                return acquirer.get(Key(system, split, "id", index)).coarsened(model.config.grid)

            for base in arguments.bases.split(","):
                place = (system, base, str(support), str(arguments.updates))
                if (*place, *start) in measured:
                    continue
                learning = [get("pool", support)]
                forecaster = rdjepa.adapt(
                    model, learning, steps=arguments.updates, config=config, base=base, augment=False, device="cpu"
                )
                rows: list[tuple] = []
                for index in range(arguments.tests):
                    fields = get("validation", index).fields
                    context, reference = fields[:CONTEXT], fields[CONTEXT:]
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)  # of an unstable rollout, which is counted
                        made = forecaster.rollout(context, len(reference))
                    stable = forecaster.stable_frames(context, made)
                    errors = growth(made, reference, context[-1], np.array(forecaster.normalizer.mean))
                    frames = zip(*(each.tolist() for each in errors), strict=True)
                    rows += [
                        (*place, index, stable, frame, *(f"{value:.5g}" for value in values), *start)
                        for frame, values in enumerate(frames, 1)
                    ]
                append(arguments.out, FIELDS, rows)
                print(*place, flush=True)


def table(arguments: argparse.Namespace) -> None:
    """Print one row per system and kind of forecast: the mean error at some frames, skilful and stable frames."""
    found: dict[tuple, dict[tuple, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in read(arguments.rows):
        of = tuple(row[name] for name in ("system", "base", "updates", *START))
        found[of][row["support"], row["trajectory"]].append(row)
    print(f"| system | base | updates | n | {' | '.join(f'frame {n}' for n in SHOWN)} | better than both | stable |")
    print("|---" * (6 + len(SHOWN)) + "|")
    shown = set()
    for (system, base, updates, *_), trajectories in found.items():
        grown = [Growth(*(np.array([float(row[name]) for row in rows]) for name in Growth._fields))
                 for rows in trajectories.values()]  # fmt: skip
        if system not in shown:
            for name in ("persistence", "climatology"):
                print(f"| {system} | {name} |  | {len(grown)} | {line([getattr(e, name) for e in grown])} |  |  |")
            shown.add(system)
        skilful = fmean(each.skilful for each in grown)
        stable = [int(rows[0]["stable"]) for rows in trajectories.values()]
        whole = sum(n == len(rows) for n, rows in zip(stable, trajectories.values(), strict=True))
        print(
            f"| {system} | rd-jepa, {base} | {updates} | {len(grown)} | {line([e.forecast for e in grown])} | "
            f"{skilful:.1f} | {whole} of {len(grown)} |"
        )


def line(errors: list[np.ndarray]) -> str:
    """Return the mean errors of the frames that are shown."""
    return " | ".join(f"{fmean(each[n - 1] for each in errors):.3f}" for n in SHOWN)


def main() -> None:
    """Measure, or print the table of what was measured."""
    parser, go, _ = commands(__doc__, run, table, "rollout.csv")
    go.add_argument("--data", type=Path)
    go.add_argument("--cache", type=Path, default=Path("build/own-data"))
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--systems", default=",".join(SYSTEMS))
    go.add_argument("--bases", default="auto,none,linear")
    go.add_argument("--supports", type=int, default=1)
    go.add_argument("--tests", type=int, default=4)
    go.add_argument("--updates", type=int, default=100)
    go.add_argument("--precision", default="bfloat16")
    call(parser)


if __name__ == "__main__":
    main()
