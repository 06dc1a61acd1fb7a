"""Learning rates of the nano forecasters: each preset's own rates times a factor, on a source system's validation data.

    python benchmarks/rates.py run --out benchmarks/results/rates.csv
    python benchmarks/rates.py table benchmarks/results/rates.csv

Each forecaster is adapted to one pool trajectory (K = 1, support seed 777) and evaluated on validation trajectories. No
held-out system and no test trajectory is used, so the choice of a rate does not use what the study reports.
"""

import argparse
import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.adapt import PROFILES, train, windows
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.data.splits import support
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.models.rdjepa import PRESETS
from transfer import forecaster

GRID = PRESETS["nano"].grid
FIELDS = ("system", "forecaster", "factor", "updates", "relative_l2")


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    done = read(arguments.out) if arguments.out.exists() else []
    finished = {(r["system"], r["forecaster"], float(r["factor"])) for r in done}
    for system in arguments.systems.split(","):
        learning = [rdjepa.simulate(system, seed=i).coarsened(GRID).fields for i in support(1000, 1, 777)]
        numbers = range(arguments.validation)
        unseen = [rdjepa.simulate(system, seed=i, split="validation").coarsened(GRID) for i in numbers]
        for name in arguments.forecasters.split(","):
            for factor in (float(f) for f in arguments.factors.split(",")):
                if (system, name, factor) in finished:
                    continue
                error = measure(name, factor, learning, unseen, arguments.updates)
                print(f"{system} {name} x {factor:g}: {error:.4f}", flush=True)
                append(arguments.out, (system, name, f"{factor:g}", arguments.updates, f"{error:.6g}"))


def measure(name, factor, learning, unseen, updates) -> float:
    model, _ = forecaster(name, "nano", 777)
    groups = [{**group, "lr": factor * group["lr"]} for group in model.parameter_groups()]
    model.parameter_groups = lambda: groups  # type: ignore[method-assign]
    normalizer = rdjepa.Normalizer.fit(learning, "support")
    data = windows(model, learning, normalizer, torch.device("cpu"))
    try:
        train(model, data, replace(PROFILES["nano"], steps=updates))
    except FloatingPointError:
        return float("nan")
    errors = per_horizon(rdjepa.evaluate(Forecaster(model, normalizer, {}), unseen), "relative_l2")
    return sum(errors.values()) / len(errors)


def append(path: Path, row: tuple) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([FIELDS, row] if new else [row])


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open(newline="")))


def table(arguments: argparse.Namespace) -> None:
    found: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
    for row in read(arguments.rows):
        found[row["system"], row["forecaster"]][float(row["factor"])] = float(row["relative_l2"])
    factors = sorted({factor for errors in found.values() for factor in errors})
    print("| system | forecaster | " + " | ".join(f"x {factor:g}" for factor in factors) + " |")
    print("|" + "---|" * (2 + len(factors)))
    for (system, name), errors in found.items():
        lowest = min(errors.values())
        cells = (f"**{e:.4f}**" if e == lowest else f"{e:.4f}" if e else "" for e in map(errors.get, factors))
        print(f"| {system} | {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    go = verbs.add_parser("run")
    go.set_defaults(function=run)
    go.add_argument("--systems", default="schnakenberg,fitzhugh-nagumo")
    trained = [n for n in forecasters.names() if n not in ("persistence", "extrapolation")]
    go.add_argument("--forecasters", default=",".join(trained))
    go.add_argument("--factors", default="0.3,1,3")
    go.add_argument("--updates", type=int, default=100)
    go.add_argument("--validation", type=int, default=3)
    go.add_argument("--threads", type=int, default=torch.get_num_threads())
    go.add_argument("--out", type=Path, default=Path("benchmarks/results/rates.csv"))
    show = verbs.add_parser("table")
    show.set_defaults(function=table)
    show.add_argument("rows", type=Path)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
