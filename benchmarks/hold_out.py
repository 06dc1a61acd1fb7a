"""Do the last frames of a recording tell which forecast is better on other recordings, and how good it is there?

    python benchmarks/hold_out.py run --left-out family/validation/id/00026 --data datasets
    python benchmarks/hold_out.py table benchmarks/results/hold-out.csv

With `hold_out`, `rdjepa.adapt` keeps the end of a single trajectory from adaptation, and chooses between the network
alone and its combination by their errors there. `run` adapts to the beginning of one pool trajectory of a random
equation (`rates.py` says which), and appends the errors of both on its end and on validation trajectories of the same
equation, which have other coefficients. `table` puts the two beside each other. No held-out system and no test
trajectory is used.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

import rates
import rdjepa
from rows import append, call, commands, done

KEY = ("left_out", "model", "share", "asked")
FIELDS = (*KEY, "unadapted", "made", "forecaster", "same", "others", "validation")
NAMES = {"rd-jepa-alone": "network alone", "rd-jepa": "combination"}
METRIC = "relative_l2"


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    key = (arguments.left_out, arguments.model, str(arguments.share), arguments.updates)
    if key in done(arguments.out, KEY):
        return
    (recording,), others, _ = rates.material(arguments)
    cut = len(recording.fields) - round(arguments.share * len(recording.fields))
    first, last = (
        replace(recording, fields=recording.fields[part], times=recording.times[part])
        for part in (slice(cut), slice(cut, None))
    )
    steps = arguments.updates if arguments.updates == "auto" else int(arguments.updates)
    forecaster = rdjepa.adapt(arguments.model, first, steps=steps, device="cpu")
    same, elsewhere = (errors(forecaster, each) for each in ([last], others))
    told = f"{forecaster.record['unadapted']:.4f}", len(forecaster.losses)
    rows = [(*key, *told, name, f"{same[name]:.6f}", f"{elsewhere[name]:.6f}", len(others)) for name in NAMES]
    append(arguments.out, FIELDS, rows)
    print(arguments.left_out, same, elsewhere, flush=True)


def errors(forecaster: rdjepa.Forecaster, trajectories: list[rdjepa.Trajectory]) -> dict[str, float]:
    """Return the error of the network alone and of its combination, the mean of five horizons and all windows."""
    found = rdjepa.compare(forecaster, trajectories, metrics=(METRIC,))
    return {name: float(pd.DataFrame(found[name])["value"].mean()) for name in NAMES}


def table(arguments: argparse.Namespace) -> None:
    """Print a row for each equation and model: both errors on the same recording and on others, and which is lower."""
    heads = ["equation", "model", "unadapted", "updates"]
    heads += [f"{where}: {name}" for where in ("same recording", "others") for name in NAMES.values()]
    print(f"| {' | '.join(heads)} | the choice |\n{'|---' * (len(heads) + 1)}|")
    for (equation, model, *_), part in pd.read_csv(arguments.rows).groupby(list(KEY), sort=False):
        by = part.set_index("forecaster")
        same, others = by["same"].loc[list(NAMES)], by["others"].loc[list(NAMES)]
        right = "right" if same.idxmin() == others.idxmin() else "wrong"
        values = " | ".join(f"{value:.4f}" for value in (*same, *others))
        row = part.iloc[0]
        print(f"| {Path(equation).name} | {model} | {row.unadapted:.2f} | {row.made} | {values} | {right} |")


def main() -> None:
    parser, go, _ = commands(__doc__, run, table, "hold-out.csv")
    go.add_argument("--left-out", required=True, help="the key of a random equation")
    go.add_argument("--data", type=Path, default=Path("datasets"))
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--share", type=float, default=0.4, help="of the frames, held out")
    go.add_argument("--updates", default="auto")
    go.add_argument("--validation", type=int, default=6)
    go.add_argument("--statistics", type=int, default=20)
    go.set_defaults(stride=1)
    call(parser)


if __name__ == "__main__":
    main()
