"""How near the random equations of the family come to the paper's sources, or to other equations.

    python benchmarks/near.py --data datasets --count 300
    python benchmarks/near.py --data datasets --count 300 --load benchmarks/unseen.py --systems selkov,morris-lecar
    python benchmarks/near.py --data datasets --count 2000 --every 2 --held-out benchmarks/results/near.csv

The family keeps away from the held-out systems alone (`rdjepa.systems.APART`). Where a source is left out of a
pretraining that sees the family, or a model is tested on an equation of your own, some random equations may be near to
it: a row per system has the smallest distance (`rdjepa.pde.distance`), quantiles, the share below the threshold that
holds for the others, and the kind of the nearest. The range of a system is the median one of its first
`--trajectories` pool trajectories, outliers left out.

With `--held-out` it measures how near they come to the held-out systems themselves: by the distance that the family
keeps, and by `rdjepa.pde.distance.distance_beyond`, which also finds their kinetics on a wider range of states. A line
per equation and held-out system is appended to that file, those that it has are skipped, and a table of the whole file
is printed. What is not in the data set is simulated and not kept.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from rdjepa import extensions, systems
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key
from rdjepa.pde.distance import Reference, distance, distance_beyond, visited
from rdjepa.pde.system import Coefficients, System
from rows import Row, append, read

FAMILY = systems.FAMILIES[0]
FIELDS = ("index", "kind", "held_out", "distance", "beyond")


def reference(name: str, acquirer: Acquirer, trajectories: int) -> Reference:
    """Return a system with the median range of its trajectories."""
    keys = [Key(name, "pool", "id", i) for i in range(trajectories)]
    states = [visited(acquirer.get(key).fields) for key in keys]
    low = np.median([each.min(axis=0) for each in states], axis=0)
    high = np.median([each.max(axis=0) for each in states], axis=0)
    return Reference(systems.get(name), u=(low[0], high[0]), v=(low[1], high[1]))


def measure(acquirer: Acquirer, indices: range, out: Path) -> None:
    """Append the distances of random equations to the held-out systems to a file, where it lacks them."""
    family, done = systems.get(FAMILY), {int(row["index"]) for row in read(out)}
    for index in (index for index in indices if index not in done):
        drawn = acquirer.get(Key(FAMILY, "pool", "id", index), keep=False)
        reaction, states = partial(rates, family, drawn.coefficients), visited(drawn.fields)
        found = []
        for to in systems.APART.references:
            both = (f"{measured(reaction, states, to):.4f}" for measured in (distance, distance_beyond))
            found.append((index, drawn.kind, to.system.name, *both))
        append(out, FIELDS, found)


def report(rows: list[Row]) -> None:
    """Print what a file holds: a line per held-out system and measure, then every equation below the threshold."""
    least, count = systems.APART.least, len({row["index"] for row in rows})
    print(f"{count} random equations\n\n| held out | measure | smallest | 5 % | median | below {least} |")
    print("|---|---|---|---|---|---|")
    for name in systems.HELD_OUT:
        for column in ("distance", "beyond"):
            found = np.array([float(row[column]) for row in rows if row["held_out"] == name])
            shown = " | ".join(f"{value:.3f}" for value in np.quantile(found, [0, 0.05, 0.5]))
            print(f"| {name} | {column} | {shown} | {(found < least).sum()} |")
    below = sorted((row for row in rows if float(row["beyond"]) < least), key=lambda row: float(row["beyond"]))
    equations = len({row["index"] for row in below})
    print(f"\n{equations} of {count} ({equations / count:.1%}) below {least} by beyond; the nearest:\n")
    for row in below[:20]:
        key = Key(FAMILY, "pool", "id", int(row["index"]))
        print(f"{key}, {row['kind']}: {row['held_out']} {row['distance']} -> {row['beyond']}")


def main() -> None:
    """Print a row per system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--count", type=int, default=300, help="of random equations")
    parser.add_argument("--trajectories", type=int, default=20, help="of each system")
    parser.add_argument("--systems", default=",".join(systems.SOURCES))
    parser.add_argument("--load", type=Path, help="a Python file that registers systems")
    parser.add_argument("--held-out", type=Path, help="a file for the distances to the held-out systems")
    parser.add_argument("--every", type=int, default=1, help="with --held-out, take one of so many random equations")
    arguments = parser.parse_args()
    if arguments.load:
        extensions.load(arguments.load)
    acquirer, family = Acquirer(arguments.data, arguments.data), systems.get(FAMILY)
    if arguments.held_out:
        measure(acquirer, range(0, arguments.count, arguments.every), arguments.held_out)
        report(read(arguments.held_out))
        return
    drawn = [acquirer.get(Key(FAMILY, "pool", "id", i)) for i in range(arguments.count)]
    kinetics = [(partial(rates, family, each.coefficients), visited(each.fields)) for each in drawn]
    least = systems.APART.least
    print(f"{arguments.count} random equations\n\n| system | smallest | 5 % | median | below {least} | nearest kind |")
    print("|---|---|---|---|---|---|")
    for name in arguments.systems.split(","):
        to = reference(name, acquirer, arguments.trajectories)
        found = np.array([distance(reaction, states, to) for reaction, states in kinetics])
        shown = " | ".join(f"{value:.3f}" for value in np.quantile(found, [0, 0.05, 0.5]))
        near, kind = np.mean(found < least), drawn[found.argmin()].kind
        print(f"| {name} | {shown} | {near:.1%} | {kind} |", flush=True)


def rates(system: System, coefficients: Coefficients, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return du/dt and dv/dt without diffusion."""
    return system.reaction(u, v, coefficients)


if __name__ == "__main__":
    main()
