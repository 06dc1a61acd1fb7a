"""Averaging of the target encoder, chosen by leaving one source out.

For each pair of averaging coefficients, a model is pretrained on four sources; linear probes then tell how well its
tokens are read on the fifth, which it never saw (R^2 of the own patch, now and five frames later). No held-out system
is looked at. One line of JSON per trial is appended to --out; a trial that is there already is not run again.

    python benchmarks/averaging.py --data datasets --left-out ginzburg-landau --ema .996 .99995
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import torch

from rdjepa.evaluation.probe import ProbeConfig, probe
from rdjepa.io.provenance import software
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining.config import PROFILES, scaled
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.loop import pretrain
from rdjepa.systems import SOURCES

TARGETS = ("patch h=0", "patch h=1", "patch h=5", "change h=1", "change h=5")


def trial(arguments: argparse.Namespace) -> dict:
    """Pretrain on the other sources and probe on the one that was left out; return the row."""
    systems = [name for name in SOURCES if name != arguments.left_out]
    grid = PRESETS[arguments.preset].grid
    dtype = torch.bfloat16
    mapped = Path(arguments.work) / "frames"
    pool = Dataset.open(arguments.data, systems, limit=arguments.limit, dtype=dtype, mapped=mapped, grid=grid)
    held = Dataset.open(arguments.data, systems, "validation", dtype=dtype, grid=grid)
    config = scaled(PROFILES[arguments.preset], arguments.steps)
    config = dataclasses.replace(config, ema=tuple(arguments.ema), log_every=100, diagnose_every=250, save_every=500)
    name = f"{arguments.left_out}-{arguments.steps}-{arguments.ema[0]}-{arguments.ema[1]}-{config.seed}"
    run = Path(arguments.work) / name
    started = time.perf_counter()
    model = pretrain(arguments.preset, pool, run, config, validation=held, resuming=True)
    seconds = time.perf_counter() - started
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    rows = probe(model, arguments.probe_data, ProbeConfig((arguments.left_out,), train=40, test=12, windows=4))
    read = {f"{row.features} {row.target} {row.regime}": round(row.value, 4) for row in rows if row.target in TARGETS}
    return {
        "trial": name,
        "preset": arguments.preset,
        "left_out": arguments.left_out,
        "trajectories": pool.frames.counts,
        "steps": arguments.steps,
        "ema": list(arguments.ema),
        "batch": config.batch,
        "diagnostics": {
            key: round(last[key], 4)
            for key in ("latent_loss", "skill_mean", "skill_persistence", "target_std", "target_rank")
        },
        "probes": read,
        "seconds": round(seconds),
        "threads": torch.get_num_threads(),
        "software": software(),
    }


def main() -> None:
    """Run one trial."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="datasets", help="dataset with the pools of the sources")
    parser.add_argument("--probe-data", default="probe-data", help="directory for the trajectories of the probes")
    parser.add_argument("--work", default="runs/averaging", help="directory of the runs")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/averaging.jsonl"))
    parser.add_argument("--left-out", choices=SOURCES, default="ginzburg-landau")
    parser.add_argument("--ema", type=float, nargs=2, required=True, help="first and last coefficient")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="nano")
    parser.add_argument("--steps", type=int, default=1_500)
    parser.add_argument("--limit", type=int, default=300, help="pool trajectories of each source")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    row = trial(arguments)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row["probes"], indent=1))


if __name__ == "__main__":
    main()
