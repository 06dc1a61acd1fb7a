"""Errors of a pretrained model without any adaptation, on systems that it has not seen.

    python benchmarks/unadapted.py --models nano --systems lambda-omega,barkley,oregonator --data datasets

Encoder, predictor and decoder are the pretrained ones; only the field statistics are those of the system, from pool
trajectories. Errors are relative L2, means over h = 1..5 and every fourth window of the pool trajectories that support
seed 777 selects first: what somebody sees who has not adapted yet, no test trajectory among them. A row per system, a
column per model, and persistence.
"""

import argparse
from pathlib import Path

import torch

import rdjepa
from rdjepa.data.acquire import Acquirer
from rdjepa.data.splits import support
from rdjepa.data.trajectory import Key
from rdjepa.evaluation.aggregate import horizon_average
from rdjepa.evaluation.evaluate import Forecast, evaluate
from rdjepa.forecasters.persistence import persistence
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.rdjepa import PRESETS
from rdjepa.study.protocol import SUPPORT_SEEDS, counts

METRIC = "relative_l2"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="nano", help="what rdjepa.load takes, with a pretrained decoder")
    parser.add_argument("--systems", default="lambda-omega,barkley,oregonator")
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--count", type=int, default=12, help="of trajectories that are forecast")
    parser.add_argument("--statistics", type=int, default=50, help="of trajectories for the field statistics")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    models = [rdjepa.load(name) for name in arguments.models.split(",")]
    if lacking := [name for name, model in zip(arguments.models.split(","), models, strict=True)
                   if "decoder" not in model.pretrained]:  # fmt: skip
        parser.error(f"expected models with a pretrained decoder, got {lacking[0]} without; name another")
    acquirer = Acquirer(arguments.data, arguments.data)
    print(f"| system | {' | '.join(arguments.models.split(','))} | persistence |")
    print("|---|" + "---|" * (len(models) + 1))
    for system in arguments.systems.split(","):

        def get(index: int, system: str = system) -> rdjepa.Trajectory:
            return acquirer.get(Key(system, "pool", "id", index)).coarsened(PRESETS[models[0].name].grid)

        chosen = support(counts(system)["pool", "id"], arguments.count, SUPPORT_SEEDS[0])
        normalizer = rdjepa.Normalizer.fit(get(i).fields for i in range(arguments.statistics))
        forecasts: list[Forecast] = [
            rdjepa.Forecaster(RDJEPAForecaster(model), normalizer, {}).forecast for model in models
        ]
        trajectories = [get(i) for i in chosen]
        rows = [evaluate(each, trajectories, metrics=(METRIC,), stride=4) for each in (*forecasts, persistence)]
        print(f"| {system} | {' | '.join(f'{horizon_average(row, METRIC):.4f}' for row in rows)} |", flush=True)


if __name__ == "__main__":
    main()
