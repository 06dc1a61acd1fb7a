"""What frames before the newest four are worth: one forecaster, the same windows, contexts of several lengths.

    python benchmarks/history.py run
    python benchmarks/history.py table benchmarks/results/history.csv

`rdjepa.adapt` adapts to the support trajectory of a study, as a user would (`--updates auto`, its field statistics). It
is evaluated on test trajectories, every `--every`-th window, with contexts of up to `--frames` frames: those before a
window, as far as there are some. Beside it stand its network alone, which sees the newest four whatever is given, and
the equation alone. `run` appends a line for each forecaster, number of frames and test trajectory, and skips what the
file has. Nothing is chosen here: how many frames are made use of, and how, was decided on random equations
(`context.py --frames`).
"""

import argparse

import pandas as pd
import torch

import rdjepa
from rdjepa.evaluation.aggregate import horizon_average
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.study import protocol
from rows import Row, append, call, commands, done, refuse_other

METRIC = "relative_l2"
PLACE = ("system", "support_seed", "updates")
SETTINGS = ("model", "every", "test", "lengths")
FIELDS = (*PLACE, "made", "forecaster", "frames", "trajectory", METRIC, *SETTINGS)
NAMES = {"rd-jepa": "`adapt`", "equation": "equation alone", "rd-jepa-alone": "network alone"}


def earlier(row: Row) -> Row:
    """Return what rows did not say before they were told apart by it."""
    return dict(zip(SETTINGS, ("nano-wide", "4", "6", "4,8,16"), strict=True))


def run(arguments: argparse.Namespace) -> None:
    """Adapt to the supports that the file lacks, and measure."""
    torch.set_num_threads(arguments.threads)
    settings = dict(zip(SETTINGS, (arguments.model, arguments.every, arguments.test, arguments.frames), strict=True))
    refuse_other(arguments.out, settings, earlier)
    grid = rdjepa.load(arguments.model).config.grid
    for system in arguments.systems.split(","):
        place = (system, str(arguments.seed), str(arguments.updates))
        if place in done(arguments.out, PLACE, earlier):
            continue
        (key,) = protocol.support(system, 1, arguments.seed)
        learning = rdjepa.simulate(system, seed=key.index).coarsened(grid)
        forecaster = rdjepa.adapt(arguments.model, learning, steps=arguments.updates, augment=False)
        rows = []
        for index in range(arguments.test):
            unseen = rdjepa.simulate(system, seed=index, split="test").coarsened(grid)
            for name, part in forecaster.parts().items():
                for frames in (int(n) for n in arguments.frames.split(",") if name in NAMES):
                    if frames == 4 or part.model.longest > 4:
                        found = evaluate(
                            part.forecast, [unseen], metrics=(METRIC,), stride=arguments.every, context=frames
                        )
                        error = f"{horizon_average(found, METRIC):.6g}"
                        measured = (len(forecaster.losses), name, frames, index, error)
                        rows.append((*place, *measured, *settings.values()))
            print(system, index, *(f"{row[4]}, {row[5]}: {row[7]};" for row in rows if row[6] == index), flush=True)
        append(arguments.out, FIELDS, rows, earlier)


def table(arguments: argparse.Namespace) -> None:
    """Print a row for each system and forecaster, a column for each number of frames: means over test trajectories."""
    found = pd.read_csv(arguments.rows)
    counts = sorted(found["frames"].unique())
    print(f"| system | forecaster | {' | '.join(map(str, counts))} |\n{'|---' * (2 + len(counts))}|")
    for (system, _, name), part in found.groupby(["system", "updates", "forecaster"], sort=False):
        means = part.groupby("frames")[METRIC].mean()
        print(
            f"| {system} | {NAMES[str(name)]} | {' | '.join(f'{means[n]:.4f}' if n in means else '' for n in counts)} |"
        )


def main() -> None:
    """Measure, or print the table."""
    parser, go, _ = commands(__doc__, run, table, "history.csv")
    go.add_argument("--systems", default="lambda-omega,oregonator,barkley")
    go.add_argument("--seed", default=777, type=int, help="of the support")
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--updates", default="auto", type=lambda text: text if text == "auto" else int(text))
    go.add_argument("--frames", default="4,8,16", help="of contexts")
    go.add_argument("--every", default=4, type=int, help="windows of the test trajectories")
    go.add_argument("--test", default=6, type=int, help="test trajectories")
    call(parser)


if __name__ == "__main__":
    main()
