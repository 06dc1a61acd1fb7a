"""Updates of adaptation with freed memory given back to the system, as glibc does, and kept, as `rdjepa` does.

    python benchmarks/memory.py --preset nano --threads 1

Processes of both kinds take turns; each makes some updates of its own and then measures several. Printed are processor
seconds and page faults of one update, mean over a process and median over the processes, and the largest memory.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

import torch

from adapt import update
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.loss import forecast_loss, log_magnitude
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.memory import SETTINGS, keep_freed_memory
from rdjepa.models.device import autocast
from rdjepa.models.rdjepa import PRESETS, build

FIRST = 5  # updates before those that are measured
KINDS = ("given back", "kept")


def measure(preset: str, batch: int, threads: int, updates: int, precision: str) -> tuple[float, float, float]:
    """Return processor seconds and page faults of an update, and the largest memory of the process in MiB."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = PRESETS[preset]
    model = RDJEPAForecaster(build(preset, seed=0))
    latent, frame = model.features(torch.randn(batch, 4, config.components, config.grid, config.grid))
    target = torch.randn(batch, HORIZONS, config.components, config.grid, config.grid)
    magnitude = log_magnitude(target)

    def forecast() -> torch.Tensor:
        with autocast(torch.device("cpu"), precision):
            return model.predict(latent, frame)

    step = update(forecast, lambda prediction: forecast_loss(prediction, target, magnitude), model, 1e-3)
    for _ in range(FIRST):
        step()
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
    for _ in range(updates):
        step()
    seconds, used = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF)
    return seconds / updates, (used.ru_minflt - before) / updates, used.ru_maxrss / 1024


def main() -> None:
    """Measure in processes that take turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=tuple(PRESETS), default="nano")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--updates", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)  # of one process
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.kind:
        if a.kind == "kept":
            keep_freed_memory()
        print(*measure(a.preset, a.batch, a.threads, a.updates, a.precision))
        return
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    print(f"{a.preset}, {a.batch} windows, {a.threads} threads, torch {torch.__version__}")
    print("| precision | freed memory | update, s | ratio | page faults | largest memory, MiB |")
    print("|---|---|---|---|---|---|")
    for precision in ("float32", "bfloat16"):
        found: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in KINDS}
        for _ in range(a.rounds):
            for kind, taken in found.items():
                command = [sys.executable, *sys.argv, "--kind", kind, "--precision", precision]
                output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                taken.append(tuple(map(float, output.split())))
        medians = {
            kind: [statistics.median(column) for column in zip(*taken, strict=True)] for kind, taken in found.items()
        }
        for kind, (seconds, faults, memory) in medians.items():
            ratio = medians["given back"][0] / seconds
            print(f"| {precision} | {kind} | {seconds:.3f} | {ratio:.2f} | {faults:,.0f} | {memory:,.0f} |")


if __name__ == "__main__":
    main()
