"""Effect of pretraining: RD-JEPA, the same network from scratch and persistence, on one trajectory of held-out systems.

    python benchmarks/transfer.py run --out benchmarks/results/transfer.csv
    python benchmarks/transfer.py table benchmarks/results/transfer.csv

`run` appends one line per forecaster, number of updates, metric and horizon, and skips what the file has already.
Learning rates are constant, so the model after fewer updates is an earlier state of the same run. Field statistics are
those of the first trajectories of the pool, as in the paper, or with `--statistics 0` those of the support trajectory.
With `--base linear` the networks correct a linear forecast that is fitted to the support (`rdjepa.forecasters.linear`);
the linear forecast alone is measured too.
"""

import argparse
import csv
import statistics
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch

import rdjepa
from rdjepa.adaptation.adapt import PROFILES, train, windows
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.data.fields import channels_first
from rdjepa.data.splits import support
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.linear import Corrected, Linear
from rdjepa.forecasters.persistence import extrapolation, persistence
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.rdjepa import with_fresh_decoder

METRICS = ("relative_l2", "gradient_l1")
FORECASTERS = ("rd-jepa", "scratch", "persistence")
TRIVIAL = {"persistence": persistence, "extrapolation": extrapolation}
ON_LINEAR = "+linear"
FIELDS = ("system", "support_seed", "forecaster", "updates", "metric", "horizon", "value", "test", "fingerprint")


def forecaster(name: str, model: str, seed: int) -> tuple[ForecastModel, str]:
    """Return a fresh trainable forecaster and the fingerprint of its pretrained weights."""
    if name != "rd-jepa":
        return rdjepa.forecasters.build(name, rdjepa.load(model).name, seed=seed), ""
    pretrained = with_fresh_decoder(rdjepa.load(model), seed)
    return RDJEPAForecaster(pretrained), pretrained.fingerprint


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    budgets = [int(n) for n in arguments.updates.split(",")]
    done = read([arguments.out]) if arguments.out.exists() else []
    finished = {(r["system"], int(r["support_seed"]), r["forecaster"]) for r in done}
    for system in arguments.systems.split(","):
        grid = rdjepa.load(arguments.model).config.grid
        test = [rdjepa.simulate(system, seed=i, split="test").coarsened(grid) for i in range(arguments.test)]
        pool = [rdjepa.simulate(system, seed=i).coarsened(grid).fields for i in range(arguments.statistics)]
        normalizer = rdjepa.Normalizer.fit(pool, "pool") if pool else None
        for seed in (int(s) for s in arguments.seeds.split(",")):
            learning = [rdjepa.simulate(system, seed=i).coarsened(grid) for i in support(1000, 1, seed)]
            for name in forecasters(arguments):
                if (system, seed, name) not in finished:
                    rows = measure(name, arguments, budgets, [t.fields for t in learning], test, normalizer)
                    append(arguments.out, system, seed, name, rows, arguments.test)


def forecasters(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the rows: on a linear base those of trained forecasters end in "+linear"."""
    names = arguments.forecasters.split(",")
    if arguments.base == "none":
        return names
    return ["linear", *(name if name in TRIVIAL else name + ON_LINEAR for name in names)]


def measure(name, arguments, budgets, learning, test, normalizer):
    """Return [(updates, metric, {horizon: error}, fingerprint)] of one forecaster on one support set."""
    started = time.perf_counter()
    results: list[tuple] = []

    def note(updates, forecast, fingerprint):
        rows = rdjepa.evaluate(forecast, test, metrics=METRICS)
        results.extend((updates, metric, per_horizon(rows, metric), fingerprint) for metric in METRICS)
        mean = sum(results[-2][2].values()) / 5
        print(f"{name} {updates} updates: relative L2 {mean:.4f}, {time.perf_counter() - started:.0f} s", flush=True)

    if name in TRIVIAL:
        note(0, TRIVIAL[name], "")
        return results
    normalizer = normalizer or rdjepa.Normalizer.fit(learning, "support")
    standard = [torch.from_numpy(channels_first(normalizer.standardize(fields))) for fields in learning]
    if name == "linear":
        note(0, Forecaster(Linear.fit(standard), normalizer, {}), "")
        return results
    model, fingerprint = forecaster(name.removesuffix(ON_LINEAR), arguments.model, 777)
    if name.endswith(ON_LINEAR):
        model = Corrected(model, Linear.fit(standard))
    config = replace(PROFILES["nano"], steps=max(budgets), precision=arguments.precision)

    def report(step, *_):
        if step in budgets:
            note(step, Forecaster(model, normalizer, {}), fingerprint)
            model.train()

    train(model, windows(model, learning, normalizer, torch.device("cpu")), config, report)
    return results


def append(path: Path, system, seed, name, results, test) -> None:
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        for updates, metric, errors, fingerprint in results:
            for horizon, value in errors.items():
                writer.writerow((system, seed, name, updates, metric, horizon, f"{value:.6g}", test, fingerprint[:12]))


def read(paths: list[Path]) -> list[dict[str, str]]:
    return [row for path in paths for row in csv.DictReader(path.open(newline=""))]


def spread(values: list[float], digits: int) -> str:
    """Return the mean over support seeds as text, with the sample deviation where there are several."""
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def table(arguments: argparse.Namespace) -> None:
    runs: dict[tuple, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read(arguments.rows):
        key = (row["metric"], row["system"], int(row["updates"]), row["forecaster"])
        runs[key][int(row["support_seed"])].append(float(row["value"]))
    means = {key: {seed: sum(v) / len(v) for seed, v in by_seed.items()} for key, by_seed in runs.items()}
    budgets = sorted({key[2] for key in means if key[2]})
    for metric, suffix, floor in ((m, *row) for row in (("", "persistence"), (ON_LINEAR, "linear")) for m in METRICS):
        names = [name + suffix for name in FORECASTERS[:2]]
        if not any(key[3] == names[0] for key in means):
            continue
        where = ", on a linear base" if suffix else ""
        print(f"\n{metric}{where}, mean over h = 1..5 and support seeds +- sample deviation\n")
        print(f"| system | updates | RD-JEPA | from scratch | {floor} | reduction against scratch |")
        print("|---|---|---|---|---|---|")
        for system in sorted({key[1] for key in means}):
            for updates in budgets:
                ours, scratch = (means.get((metric, system, updates, n), {}) for n in names)
                both = sorted(ours.keys() & scratch.keys())
                if not both:
                    continue
                ours, scratch = ({s: part[s] for s in both} for part in (ours, scratch))
                still = {s: means[metric, system, 0, floor][s] for s in both}
                text = [spread(list(part.values()), 4) for part in (ours, scratch, still)]
                reduction = spread([100 * (1 - ours[s] / scratch[s]) for s in both], 1)
                print(f"| {system} | {updates} | {' | '.join(text)} | {reduction} % |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    go = verbs.add_parser("run")
    go.set_defaults(function=run)
    go.add_argument("--systems", default="lambda-omega,barkley,oregonator")
    go.add_argument("--seeds", default="777,778,779")
    go.add_argument("--forecasters", default=",".join(FORECASTERS))
    go.add_argument("--base", choices=("none", "linear"), default="none")
    go.add_argument("--updates", default="100,400")
    go.add_argument("--test", type=int, default=4)
    go.add_argument("--statistics", type=int, default=50, help="pool trajectories; 0 for the support alone")
    go.add_argument("--model", default="nano")
    go.add_argument("--precision", default="float32")
    go.add_argument("--threads", type=int, default=torch.get_num_threads())
    go.add_argument("--out", type=Path, default=Path("benchmarks/results/transfer.csv"))
    show = verbs.add_parser("table")
    show.set_defaults(function=table)
    show.add_argument("rows", type=Path, nargs="+")
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
