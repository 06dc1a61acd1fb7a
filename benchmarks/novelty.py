"""Whether the novelty of a context tells trajectories out of distribution from those in distribution.

    python benchmarks/novelty.py run --data datasets --out benchmarks/results/novelty.csv
    python benchmarks/novelty.py table benchmarks/results/novelty.csv

The first `--support` trajectories of the pool are described by the pretrained encoder, the next `--calibration` ones
say how far one of the same kind may be (`rdjepa.adaptation.novelty`). Both are compared with trajectories of the
validation split (id) and of the out-of-distribution regimes of the test split. Nothing is trained: novelty is that of
the frozen encoder. `run` appends one line per trajectory and skips what the file has of the same model and numbers:
novelty is the median over windows, alarms the share of windows above 1.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

import rdjepa
from rdjepa import systems
from rdjepa.adaptation.novelty import embed, familiar
from rdjepa.data.acquire import Acquirer
from rdjepa.data.trajectory import Key
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.pde.system import REGIMES
from rows import Row, append, call, commands, done, read

FIELDS = ("system", "support", "calibration", "regime", "trajectory", "novelty", "alarms", "fingerprint")
KEY = ("system", "support", "calibration", "fingerprint")
DEFAULT = [name for name in systems.names() if len(systems.get(name).regimes) > 1]


def run(arguments: argparse.Namespace) -> None:
    """Measure the systems that the file does not have with these settings."""
    torch.set_num_threads(arguments.threads)
    measured = done(arguments.out, KEY)
    pretrained = rdjepa.load(arguments.model)
    model = RDJEPAForecaster(pretrained).eval()
    acquirer = Acquirer(arguments.cache, arguments.data)
    for system in arguments.systems.split(","):
        settings = (str(arguments.support), str(arguments.calibration), pretrained.fingerprint[:12])
        if (system, *settings) in measured:
            continue

        def get(split: str, index: int, regime: str = "id", system: str = system) -> np.ndarray:
            return acquirer.get(Key(system, split, regime, index)).coarsened(pretrained.config.grid).fields

        end = arguments.support + arguments.calibration
        pool = [get("pool", index) for index in range(end)]
        normalizer = rdjepa.Normalizer.fit(pool[: arguments.support], "support")

        def rows_of(fields: np.ndarray, stride: int, normalizer: rdjepa.Normalizer = normalizer) -> np.ndarray:
            context = FORECASTING.stack(fields, FORECASTING.starts(len(fields))[::stride]).context
            found = embed(model, context, normalizer)
            assert found is not None
            return found

        support = [rows_of(fields, 1) for fields in pool[: arguments.support]]
        alike = [rows_of(fields, arguments.stride) for fields in pool[arguments.support :]]
        counts = [len(rows) for rows in support]
        known = familiar(np.concatenate(support), counts, np.concatenate(alike) if alike else None)
        lines = []
        for regime in (name for name in REGIMES if name in systems.get(system).regimes):
            split, count = ("validation", arguments.id) if regime == "id" else ("test", arguments.ood)
            for index in range(count):
                found = known.novelty(rows_of(get(split, index, regime), arguments.stride))
                values = f"{np.median(found):.4f}", f"{(found > 1).mean():.4f}"
                place = (system, arguments.support, arguments.calibration, regime, index)
                lines.append((*place, *values, pretrained.fingerprint[:12]))
        append(arguments.out, FIELDS, lines)
        print(f"{system}: {len(lines)} trajectories", flush=True)


def table(arguments: argparse.Namespace) -> None:
    """Print alarms by system and regime, and how often a trajectory of a regime is above one in distribution."""
    found: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in read(arguments.rows):
        found[tuple(row[name] for name in KEY)][row["regime"]].append(row)
    print("| system | regime | n | novelty | alarms | above one in distribution |\n|---|---|---|---|---|---|")
    for (system, *_), regimes in found.items():
        known = [float(row["novelty"]) for row in regimes["id"]]
        for regime, rows in regimes.items():
            values = [float(row["novelty"]) for row in rows]
            above = f"{np.mean(np.subtract.outer(values, known) > 0):.2f}" if regime != "id" else ""
            alarms = fmean(float(row["alarms"]) for row in rows)
            print(f"| {system} | {regime} | {len(rows)} | {np.median(values):.2f} | {alarms:.2f} | {above} |")


def main() -> None:
    """Measure systems or print their table."""
    parser, go, _ = commands(__doc__, run, table, "novelty.csv")
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--systems", default=",".join(DEFAULT))
    go.add_argument("--data", type=Path, help="data set that is read first and never written")
    go.add_argument("--cache", type=Path, default=Path("datasets"), help="where simulated trajectories are kept")
    go.add_argument("--support", type=int, default=1)
    go.add_argument("--calibration", type=int, default=4)
    go.add_argument("--id", type=int, default=30)
    go.add_argument("--ood", type=int, default=30)
    go.add_argument("--stride", type=int, default=1, help="take every n-th window, of all but the support")
    call(parser)


if __name__ == "__main__":
    main()
