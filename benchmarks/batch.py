"""Batch size of pretraining: three batch sizes and rules for the learning rate at equal numbers of samples.

    python benchmarks/batch.py run --data datasets --work runs/batch
    python benchmarks/batch.py table benchmarks/results/batch.csv

All runs have schedules of the same number of samples and are compared after the same number of samples; the peak
learning rate is the profile's times (batch / profile's batch) to the power 0, 1/2 or 1, warm-up keeps its share of the
steps, and the averaging coefficient keeps its range. Measured are the held-out latent loss on the validation
trajectories and, after adaptation to one trajectory of a system that no pretraining sees, the error on trajectories
that adaptation never saw. `run` appends a line per run, skips what the file has, and continues a pretraining that was
stopped, also with a larger `--seen`. Losses of runs with different targets cannot be compared; the skill can.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

import rdjepa
from rdjepa.evaluation.aggregate import horizon_average
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining.config import PROFILES, scaled
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.loop import pretrain
from rdjepa.systems import SOURCES
from rows import Row, append, call, commands, done, read

RULES = {"constant": 0.0, "square root": 0.5, "linear": 1.0}
SAME = ("preset", "samples", "seen", "trajectories", "precision", "system", "updates", "test")  # of all runs of a call
KEY = (*SAME, "batch", "rule")
FIELDS = (
    "preset", "samples", "seen", "batch", "steps", "rule", "peak", "latent_loss", "mean_loss", "persistence_loss",
    "target_std", "target_rank", "target_cosine", "system", "updates", "relative_l2", "seconds", "trajectories",
    "precision", "test",
)  # fmt: skip


def earlier(row: Row) -> Row:
    """Rows that do not say numbers of trajectories and precision had the defaults."""
    return {"trajectories": "40", "precision": "bfloat16", "test": "2"}


def runs(arguments: argparse.Namespace) -> list[dict]:
    """Return the runs: the profile's own batch once, the others under every given rule."""
    own, rules = PROFILES[arguments.preset], arguments.rules.split(",")
    batches = [int(n) for n in arguments.batches.split(",")]
    same = {name: vars(arguments)[name] for name in SAME}
    return [
        same
        | {
            "batch": batch,
            "steps": arguments.samples // batch,
            "rule": rule,
            "peak": own.peak * (batch / own.batch) ** RULES[rule],
        }
        for rule in rules
        for batch in batches
        if batch != own.batch or rule == rules[0]
    ]


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    known = done(arguments.out, KEY, earlier)
    todo = [each for each in runs(arguments) if tuple(str(each[name]) for name in KEY) not in known]
    if not todo:
        return
    grid = PRESETS[arguments.preset].grid
    source = Dataset.open(arguments.data, SOURCES, limit=arguments.trajectories, grid=grid)
    validation = Dataset.open(arguments.data, SOURCES, "validation", grid=grid)
    learning = rdjepa.simulate(arguments.system).coarsened(grid)
    unseen = [rdjepa.simulate(arguments.system, seed=i, split="test").coarsened(grid) for i in range(arguments.test)]
    for each in todo:
        began = time.perf_counter()
        config = replace(
            scaled(PROFILES[arguments.preset], each["steps"]),
            batch=each["batch"],
            peak=each["peak"],
            precision=arguments.precision,
            save_every=50,
            diagnose_every=arguments.seen // each["batch"],
        )
        folder = arguments.work / f"{each['preset']}-{each['samples']}-{each['batch']}-{each['rule'].replace(' ', '-')}"
        model = pretrain(
            arguments.preset,
            source,
            folder,
            config,
            validation=validation,
            resuming=True,
            stop_at=arguments.seen // each["batch"],
        )
        last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
        adapted = rdjepa.adapt(
            model, learning, steps=arguments.updates, decoder="fresh", retain=0, augment=False, device="cpu"
        )
        row = {name: last[name] for name in FIELDS if name in last} | each
        row |= {
            "relative_l2": horizon_average(rdjepa.evaluate(adapted, unseen, metrics=("relative_l2",)), "relative_l2"),
            "seconds": round(time.perf_counter() - began),
        }
        append(arguments.out, FIELDS, [[row.get(name, "") for name in FIELDS]], earlier)
        print(json.dumps(row), flush=True)


def table(arguments: argparse.Namespace) -> None:
    print("| preset | batch | updates | rule | peak | held-out loss | skill | target rank | adapted error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in read(arguments.rows, earlier):
        updates = int(row["seen"]) // int(row["batch"])
        skill = 1 - float(row["latent_loss"]) / float(row["mean_loss"])
        print(
            f"| {row['preset']} | {row['batch']} | {updates} | {row['rule']} | {float(row['peak']):.2g} "
            f"| {float(row['latent_loss']):.3f} | {skill:.2f} | {float(row['target_rank']):.1f} "
            f"| {float(row['relative_l2']):.4f} |"
        )


def main() -> None:
    parser, go, _ = commands(__doc__, run, table, "batch.csv")
    go.add_argument("--data", type=Path, default=Path("datasets"))
    go.add_argument("--work", type=Path, default=Path("runs/batch"))
    go.add_argument("--preset", default="nano")
    go.add_argument("--samples", type=int, default=72_000, help="of the schedules")
    go.add_argument("--seen", type=int, default=4_800, help="samples after which the runs are compared")
    go.add_argument("--batches", default="8,16,4")
    go.add_argument("--rules", default="square root,constant,linear", help=f"among {', '.join(RULES)}")
    go.add_argument("--trajectories", type=int, default=40, help="pool trajectories of each system")
    go.add_argument("--precision", default="bfloat16")
    go.add_argument("--system", default="barkley", help="held-out system of the adaptation")
    go.add_argument("--updates", type=int, default=50)
    go.add_argument("--test", type=int, default=2)
    call(parser)


if __name__ == "__main__":
    main()
