"""What it costs to know the statistics of one trajectory alone: `adapt` as a user has it, beside the cells of a study.

    python benchmarks/own_statistics.py run --seeds 779
    python benchmarks/own_statistics.py table benchmarks/results/own-statistics.csv

In a study fields are standardized with the mean and standard deviation of 1,000 pool trajectories, as in the paper
(S2.6, S3.1). `rdjepa.adapt` takes those of the trajectories that it is given. `run` adapts to the support trajectory of
a study with these, and appends a line for each forecaster and test trajectory, all of its windows; it skips what the
file has. `table` puts the same trajectories of the study's cells beside them.
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

import rdjepa
from rdjepa.data.statistics import Normalizer
from rdjepa.study import protocol
from rdjepa.study.collect import collect
from rows import Row, append, call, commands, done, refuse_other

SETTINGS = ("model", "asked", "test")
FIELDS = ("system", "support_seed", "forecaster", "trajectory", "relative_l2", "made", "mean", "std", *SETTINGS)
NAMES = {"rd-jepa": "`adapt --no-augment`", "rd-jepa-alone": "network alone"}
STUDY = ("study-wide", "study-wide-alone")


def earlier(row: Row) -> Row:
    """Return what rows did not say before they were told apart by it."""
    return {"model": "nano-wide", "asked": "auto", "test": "6"}


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    settings = dict(zip(SETTINGS, (arguments.model, arguments.updates, arguments.test), strict=True))
    refuse_other(arguments.out, settings, earlier)
    grid = rdjepa.load(arguments.model).config.grid
    for seed in map(int, arguments.seeds.split(",")):
        for system in arguments.systems.split(","):
            if (system, str(seed)) in done(arguments.out, ("system", "support_seed"), earlier):
                continue
            (key,) = protocol.support(system, 1, seed)
            learning = rdjepa.simulate(system, seed=key.index).coarsened(grid)
            forecaster = rdjepa.adapt(arguments.model, learning, steps=arguments.updates, augment=False)
            test = [rdjepa.simulate(system, seed=i, split="test").coarsened(grid) for i in range(arguments.test)]
            found = rdjepa.compare(forecaster, test, metrics=("relative_l2",))
            own = Normalizer.fit([learning.fields], "support")
            units = [" ".join(f"{value:.4g}" for value in values) for values in (own.mean, own.std)]
            rows = pd.concat([pd.DataFrame(found[name]).assign(forecaster=name) for name in NAMES if name in found])
            errors = rows.groupby(["forecaster", "trajectory"])["value"].mean().items()
            made = len(forecaster.losses)
            measured = [(system, seed, *place, f"{e:.6f}", made, *units, *settings.values()) for place, e in errors]
            append(arguments.out, FIELDS, measured, earlier)
            print(f"{system} {seed}: {rows.groupby('forecaster')['value'].mean().round(4).to_dict()}", flush=True)


def table(arguments: argparse.Namespace) -> None:
    """Print a row for each system, selection and forecaster: means over the same test trajectories."""
    own = pd.read_csv(arguments.rows)
    folder = Path(__file__).parent / "results"
    decided, alone = (collect(folder / name, "decoder", "nano") for name in STUDY)
    alone = pd.concat([alone, decided[decided["forecaster"] == "rd-jepa-alone"]]).assign(forecaster="rd-jepa-alone")
    decided = decided[decided["forecaster"] == "rd-jepa-auto"].assign(forecaster="rd-jepa")
    study = pd.concat([decided, alone]).query("k == 1 and metric == 'relative_l2'")
    heads = ("system", "selection", "forecaster", "test trajectories", "statistics of 1,000", "of the one", "change")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for (system, seed, name), part in own.groupby(["system", "support_seed", "forecaster"], sort=False):
        same = study.query("system == @system and support_seed == @seed and forecaster == @name")
        known = same.groupby("trajectory")["value"].mean()
        pairs = pd.DataFrame({"pool": known, "own": part.set_index("trajectory")["relative_l2"]}).dropna()
        pool, mine = pairs.mean()
        change = f"{100 * (mine / pool - 1):+.0f} %"
        print(f"| {system} | {seed} | {NAMES[name]} | {len(pairs)} | {pool:.4f} | {mine:.4f} | {change} |")


def main() -> None:
    parser, go, _ = commands(__doc__, run, table, "own-statistics.csv")
    go.add_argument("--systems", default="barkley,oregonator,lambda-omega")
    go.add_argument("--seeds", default="777,778,779", help="of the support")
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--updates", default="auto", type=lambda text: text if text == "auto" else int(text))
    go.add_argument("--test", type=int, default=6, help="test trajectories")
    call(parser)


if __name__ == "__main__":
    main()
