"""How near the random equations of the family come to the paper's sources, or to other equations.

    python benchmarks/near.py --data datasets --count 300
    python benchmarks/near.py --data datasets --count 300 --load benchmarks/unseen.py --systems selkov,morris-lecar

The family keeps away from the held-out systems alone (`rdjepa.systems.APART`). Where a source is left out of a
pretraining that sees the family, or a model is tested on an equation of your own, some random equations may be near to
it: a row per system has the smallest distance (`rdjepa.pde.distance`), quantiles, the share below the threshold that
holds for the others, and the kind of the nearest. The range of a system is the median one of its first
`--trajectories` pool trajectories, outliers left out.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from rdjepa import extensions, systems
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key
from rdjepa.pde.distance import Reference, distance, visited
from rdjepa.pde.system import Coefficients, System

FAMILY = systems.FAMILIES[0]


def reference(name: str, acquirer: Acquirer, trajectories: int) -> Reference:
    """Return a system with the median range of its trajectories."""
    keys = [Key(name, "pool", "id", i) for i in range(trajectories)]
    states = [visited(acquirer.get(key).fields) for key in keys]
    low = np.median([each.min(axis=0) for each in states], axis=0)
    high = np.median([each.max(axis=0) for each in states], axis=0)
    return Reference(systems.get(name), u=(low[0], high[0]), v=(low[1], high[1]))


def main() -> None:
    """Print a row per system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--count", type=int, default=300, help="of random equations")
    parser.add_argument("--trajectories", type=int, default=20, help="of each system")
    parser.add_argument("--systems", default=",".join(systems.SOURCES))
    parser.add_argument("--load", type=Path, help="a Python file that registers systems")
    arguments = parser.parse_args()
    if arguments.load:
        extensions.load(arguments.load)
    acquirer, family = Acquirer(arguments.data, arguments.data), systems.get(FAMILY)
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
