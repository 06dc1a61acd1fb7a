"""Averaging of the target encoder, chosen by leaving one source out.

    python benchmarks/averaging.py run --left-out gray-scott --ema .999 .9999 --data datasets --work runs
    python benchmarks/averaging.py table benchmarks/results/averaging.csv

For a pair of averaging coefficients a model is pretrained on the other four sources; RD-JEPA then adapts to one pool
trajectory of the fifth and is evaluated on its validation trajectories, as in `rates.py`. No held-out system and no
test trajectory is used. The run goes on where it was stopped, and stays in `--work` for `rates.py`.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch

import rates
import rdjepa
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.rdjepa import with_fresh_decoder
from rdjepa.pretraining.config import PROFILES, scaled
from rdjepa.systems import SOURCES
from rows import append, read

PLACE = ("left_out", "steps", "trajectories", "trunk", "precision", "seed", "updates", "weights")
FIELDS = (*PLACE[:3], "first", "last", *PLACE[3:], rates.METRIC, "validation", "fingerprint")


def run(arguments: argparse.Namespace) -> None:
    """Pretrain with one pair of coefficients, adapt, and append a row per observation."""
    torch.set_num_threads(arguments.threads)
    system, (first, last) = arguments.left_out, arguments.ema
    config = replace(scaled(PROFILES[rates.PRESET], arguments.steps), ema=(first, last))
    out = arguments.work / f"without-{system}-{first:g}-{last:g}"
    systems = [name for name in SOURCES if name != system]
    seen = {"systems": systems, "trajectories": arguments.trajectories}
    model = rdjepa.pretrain(rates.PRESET, arguments.data, out, config=config, device="cpu", resume=True, **seen)
    forecaster = RDJEPAForecaster(with_fresh_decoder(model, arguments.seed))
    learning, unseen, normalizer = rates.material(arguments)
    pretraining = (system, arguments.steps, arguments.trajectories, f"{first:g}", f"{last:g}")
    settings = (f"{arguments.trunk:g}", arguments.precision, arguments.seed)
    rows = [
        (*pretraining, *settings, *row, len(unseen), model.fingerprint)
        for row in rates.trial(forecaster, 1.0, learning, unseen, normalizer, arguments)
    ]
    append(arguments.out, FIELDS, rows)
    print(f"{system} {first:g} {last:g}: {rows[-1][FIELDS.index(rates.METRIC)]}")


def table(arguments: argparse.Namespace) -> None:
    """Print the errors: a column per pair of coefficients, the lowest of a row in bold."""
    found: dict[tuple[str, ...], dict[tuple[float, float], float]] = defaultdict(dict)
    for row in read(arguments.rows):
        place = tuple(row[name] for name in PLACE)
        found[place][float(row["first"]), float(row["last"])] = float(row[rates.METRIC])
    rates.show(PLACE, found, lambda pair: f"{pair[0]:g} to {pair[1]:g}")


def main() -> None:
    """Run one trial or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    go = verbs.add_parser("run")
    go.set_defaults(function=run)
    rates.common(go, Path("benchmarks/results/averaging.csv"))
    go.add_argument("--ema", type=float, nargs=2, required=True, help="first and last coefficient")
    go.add_argument("--steps", type=int, default=5_000)
    go.add_argument("--trajectories", type=int, default=300, help="pool trajectories of each source")
    go.add_argument("--work", type=Path, default=Path("runs"), help="directory of the runs")
    show = verbs.add_parser("table")
    show.set_defaults(function=table)
    show.add_argument("rows", type=Path)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
