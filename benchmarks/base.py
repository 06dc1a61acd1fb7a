"""What a linear base is worth: networks alone and as corrections of a linear forecast, after equal updates.

    python benchmarks/base.py run
    python benchmarks/base.py table benchmarks/results/base.csv

RD-JEPA and the same architecture from scratch learn from one pool trajectory, scaled with its own statistics as a
user's is, once to forecast the field and once to correct a linear forecast of it (`rdjepa.forecasters.linear`: every
value from the same point's last four, by least squares on that trajectory). Beside them stand the linear forecast alone
and the two that learn nothing. `run` appends a line for each, and skips what the file has.
"""

import argparse

import torch

import rdjepa
from rdjepa.adaptation.adapt import fitted
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.data.splits import support
from rdjepa.data.trajectory import Trajectory
from rdjepa.evaluation.aggregate import horizon_average
from rdjepa.evaluation.evaluate import Forecast, evaluate
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import extrapolation, persistence
from rows import Row, append, call, commands, read, refuse_other

STRIDE = 4
POOL = 1000
TITLES = {
    "persistence": "persistence",
    "extrapolation": "extrapolation",
    "linear": "linear",
    "rd-jepa": "RD-JEPA",
    "scratch": "from scratch",
    "rd-jepa+linear": "RD-JEPA on it",
    "scratch+linear": "scratch on it",
}
SETTINGS = ("model", "asked", "test")
FIELDS = ("system", "support_seed", "forecaster", "updates", "relative_l2", *SETTINGS)


def earlier(row: Row) -> Row:
    """Return what rows did not say before they were told apart by it."""
    return {"model": "nano", "asked": "100"}


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    settings = dict(zip(SETTINGS, (arguments.model, arguments.updates, arguments.test), strict=True))
    refuse_other(arguments.out, settings, earlier)
    done = {(row["system"], int(row["support_seed"]), row["forecaster"]) for row in read(arguments.out)}
    grid = rdjepa.load(arguments.model).config.grid
    for system in arguments.systems.split(","):
        test = [rdjepa.simulate(system, seed=i, split="test").coarsened(grid) for i in range(arguments.test)]
        for seed in (int(text) for text in arguments.seeds.split(",")):
            (index,) = support(POOL, 1, seed)
            learning = rdjepa.simulate(system, seed=index).coarsened(grid)
            for name in (name for name in TITLES if (system, seed, name) not in done):
                forecast, updates = forecaster(name, learning, arguments)
                rows = evaluate(forecast, test, metrics=("relative_l2",), stride=STRIDE)
                error = horizon_average(rows, "relative_l2")
                append(
                    arguments.out, FIELDS, [(system, seed, name, updates, f"{error:.4f}", *settings.values())], earlier
                )
                print(f"{system} {seed} {name}: {error:.4f}", flush=True)


def forecaster(name: str, learning: Trajectory, arguments: argparse.Namespace) -> tuple[Forecast, int]:
    """Return the forecast of one that has learned from the trajectory, and after how many updates."""
    if name in ("persistence", "extrapolation"):
        return {"persistence": persistence, "extrapolation": extrapolation}[name], 0
    if name == "linear":
        normalizer = rdjepa.Normalizer.fit([learning.fields], "support")
        return Forecaster(fitted(Linear(), [learning.fields], normalizer), normalizer).forecast, 0
    network, _, base = name.partition("+")
    preset = rdjepa.load(arguments.model).name
    model = arguments.model if network == "rd-jepa" else rdjepa.forecasters.build(network, preset)
    adapted = rdjepa.adapt(
        model, [learning], steps=arguments.updates, base=base or "none", decoder="fresh", retain=0, augment=False
    )
    return adapted.forecast, arguments.updates


def table(arguments: argparse.Namespace) -> None:
    """Print a row for each system and support, a column for each forecaster, the lowest error in bold."""
    rows = read(arguments.rows)
    print(f"| system | support | {' | '.join(TITLES.values())} |\n|---|---{'|---' * len(TITLES)}|")
    for system, seed in dict.fromkeys((row["system"], row["support_seed"]) for row in rows):
        own = {r["forecaster"]: r["relative_l2"] for r in rows if (r["system"], r["support_seed"]) == (system, seed)}
        lowest = min(own.values(), key=float)
        texts = (own.get(name, "") for name in TITLES)
        print(f"| {system} | {seed} | {' | '.join(f'**{t}**' if t == lowest else t for t in texts)} |")


def main() -> None:
    parser, go, _ = commands(__doc__, run, table, "base.csv")
    go.add_argument("--systems", default="lambda-omega,barkley,oregonator")
    go.add_argument("--seeds", default="777", help="of the support")
    go.add_argument("--model", default="nano")
    go.add_argument("--updates", type=int, default=100)
    go.add_argument("--test", type=int, default=4, help="test trajectories")
    call(parser)


if __name__ == "__main__":
    main()
