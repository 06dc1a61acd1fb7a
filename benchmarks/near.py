"""How near the random equations of the family come to the paper's sources.

    python benchmarks/near.py --data datasets --count 300

The family keeps away from the held-out systems alone (`rdjepa.systems.APART`). Where a source is left out of a
pretraining that sees the family, some of its equations may be near to that source: a row per source has the smallest
distance (`rdjepa.pde.distance`), quantiles, and the share below the threshold that holds for the others. The range
of a source is the median one of its first `--trajectories` pool trajectories, outliers left out.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from rdjepa import systems
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key
from rdjepa.pde.distance import Reference, distance, visited
from rdjepa.pde.system import Coefficients, System

FAMILY = systems.FAMILIES[0]


def reference(name: str, acquirer: Acquirer, trajectories: int) -> Reference:
    """Return a source with the median range of its trajectories."""
    keys = [Key(name, "pool", "id", i) for i in range(trajectories)]
    states = [visited(acquirer.get(key).fields) for key in keys]
    low = np.median([each.min(axis=0) for each in states], axis=0)
    high = np.median([each.max(axis=0) for each in states], axis=0)
    return Reference(systems.get(name), u=(low[0], high[0]), v=(low[1], high[1]))


def main() -> None:
    """Print a row per source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--count", type=int, default=300, help="of random equations")
    parser.add_argument("--trajectories", type=int, default=20, help="of each source")
    parser.add_argument("--sources", default=",".join(systems.SOURCES))
    arguments = parser.parse_args()
    acquirer, family = Acquirer(arguments.data, arguments.data), systems.get(FAMILY)
    drawn = [acquirer.get(Key(FAMILY, "pool", "id", i)) for i in range(arguments.count)]
    kinetics = [(partial(rates, family, each.coefficients), visited(each.fields)) for each in drawn]
    print(f"{arguments.count} random equations\n\n| source | smallest | 5 % | median | below {systems.APART.least} |")
    print("|---|---|---|---|---|")
    for name in arguments.sources.split(","):
        to = reference(name, acquirer, arguments.trajectories)
        found = np.array([distance(reaction, states, to) for reaction, states in kinetics])
        shown = " | ".join(f"{value:.3f}" for value in np.quantile(found, [0, 0.05, 0.5]))
        print(f"| {name} | {shown} | {np.mean(found < systems.APART.least):.1%} |", flush=True)


def rates(system: System, coefficients: Coefficients, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return du/dt and dv/dt without diffusion."""
    return system.reaction(u, v, coefficients)


if __name__ == "__main__":
    main()
