"""Seconds of a pretraining step, and the speed-up of each optimization.

    python benchmarks/pretrain.py [--presets nano,small,paper] [--steps 20] [--device auto] [--threads 1]

One run prints, for every preset at its profile's batch, a row per optimization, each with all above it: the plain step
in float32 (targets of all nine offsets, one optimizer kernel per tensor, batches cut between the steps), targets only
of the offsets that occur, bfloat16, fused AdamW and averaging, batches prepared during the step, frames on the device,
CUDA graphs; and compiled networks instead of these. On a CPU the last four do not apply; `--compile` adds the compiled
step there too. Every step draws, cuts, trains and averages on random fields. A row has the median milliseconds of a
step, the ratio to the plain step, the share of the arithmetic ceiling (FLOPs that torch's counter sees in the step, the
dense spectral transforms included, against large matrix products of the same device and precision in the same run),
milliseconds of waiting for data, and peak memory: the allocator's on a GPU, the process's so far on a CPU.
"""

import argparse
import functools
import resource
import statistics
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from rdjepa.data.windows import PRETRAINING
from rdjepa.models.device import device_named
from rdjepa.models.rdjepa import PRESETS
from rdjepa.pretraining.config import PROFILES, PretrainConfig
from rdjepa.pretraining.dataset import Batch, Dataset
from rdjepa.pretraining.engine import Engine
from rdjepa.pretraining.frames import Frames
from rdjepa.pretraining.objectives.predictive_latent import PredictiveLatent
from rdjepa.pretraining.prefetch import Prefetcher
from rdjepa.pretraining.state import TrainingState

WARM_UP = 3
OFFSETS = PRETRAINING.max_offset + 1


@dataclass(frozen=True)
class Measure:
    """The optimizations of one row."""

    name: str
    occurring: bool = True
    precision: str = "bfloat16"
    fused: bool = True
    prepared: bool = True
    engine: Engine = field(default_factory=Engine)


def measures(device: torch.device, compile_on_cpu: bool) -> list[Measure]:
    rows = [
        Measure("plain", False, "float32", False, False),
        Measure("+ targets of occurring offsets", True, "float32", False, False),
        Measure("+ bfloat16", True, "bfloat16", False, False),
        Measure("+ fused AdamW and averaging", True, "bfloat16", True, False),
    ]
    if device.type == "cuda":
        rows += [
            Measure("+ batches prepared beside the step"),
            Measure("+ frames on the device", engine=Engine(frames="device")),
            Measure("+ CUDA graphs", engine=Engine("graphs", frames="device")),
            Measure("compiled instead", engine=Engine("yes", frames="device")),
        ]
    elif compile_on_cpu:
        rows.append(Measure("+ compiled", engine=Engine("yes")))
    return rows


class PlainObjective(PredictiveLatent):
    """The paper's objective, which averages one tensor after the other."""

    @torch.no_grad()
    def update_target(self, momentum: float) -> None:
        for target, online in zip(self.target_encoder.parameters(), self.encoder.parameters(), strict=True):
            target.lerp_(online, 1.0 - momentum)


def with_every_offset(batch: Batch) -> Batch:
    """Return the same queries with random target frames of all nine offsets of every sample."""
    count = len(batch.systems)
    futures = torch.randn(OFFSETS * count, *batch.futures.shape[1:], device=batch.futures.device)
    first = torch.arange(count, device=batch.offsets.device)[:, None] * OFFSETS
    return replace(batch, futures=futures, frame_of_query=first + batch.offsets)


def batches(measure: Measure, source: Dataset, training: TrainingState) -> Generator[tuple[Batch, float], None, None]:
    """Yield batches on the device without end, and the seconds that the step waited for each."""
    config, device = training.config, training.device
    if measure.prepared:
        with Prefetcher(source, config, training.objective, training.side, [slice(None)], device, 0) as reader:
            while True:
                before = reader.waited
                yield reader.next()[0], reader.waited - before
    for index in iter(int, 1):
        began = time.perf_counter()
        batch = source.batch(config.seed, index, config.batch, training.side, config.targets).to(device)
        yield batch, time.perf_counter() - began


def flops(training: TrainingState, batch: Batch) -> float:
    """Count the FLOPs of targets, forward and backward pass of a batch."""
    with FlopCounterMode(display=False) as counter, training.engine.eager():
        training._outcome(*training._filled(batch))[0].backward()
    training.optimizer.zero_grad(set_to_none=True)
    return float(counter.get_total_flops())


def ceiling(device: torch.device, precision: str) -> float:
    """Measure the FLOP/s of a large square matrix product, the best of six."""
    size = 8192 if device.type == "cuda" else 1024
    a, b = (torch.randn(size, size, device=device, dtype=getattr(torch, precision)) for _ in range(2))
    return 2 * size**3 / min(timed(lambda: a @ b, device) for _ in range(6))


def timed(step: Callable[[], object], device: torch.device) -> float:
    began = time.perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def peak_memory(device: torch.device) -> float:
    """Return the peak memory in GiB: allocated on a GPU, resident in this process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def row(
    preset: str, measure: Measure, config: PretrainConfig, source: Dataset, device: torch.device, steps: int
) -> tuple[float, float, float, float]:
    """Measure one row: seconds per step, seconds of waiting, FLOPs and peak GiB."""
    config = replace(config, precision=measure.precision)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    training = TrainingState(preset, config, device, measure.engine)
    if not measure.fused:
        training.objective.__class__ = PlainObjective
        training.optimizer = torch.optim.AdamW(
            training.objective.trainable(),
            betas=config.betas,
            weight_decay=config.weight_decay,
            foreach=False,
            fused=False,
        )
    if measure.engine.frames == "device":
        source = Dataset(source.frames.to(device), source.normalizers)
    stream = batches(measure, source, training)
    taken, waits, count = [], [], 0.0
    # compiled and captured passes meet each of their few shapes in the warm-up
    for number in range(steps + WARM_UP * (1 + 7 * (measure.engine.compile != "no"))):
        began = time.perf_counter()
        batch, wait = next(stream)
        if not measure.occurring:
            batch = with_every_offset(batch)
        if number == 0:
            count = flops(training, batch)
        timed(functools.partial(training.update, [batch]), device)
        taken.append(time.perf_counter() - began)
        waits.append(wait)
    stream.close()
    return statistics.median(taken[-steps:]), statistics.median(waits[-steps:]), count, peak_memory(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default="nano,small,paper")
    parser.add_argument("--steps", type=int, default=20, help="timed steps of every row")
    parser.add_argument("--batch", type=int, default=None, help="samples per step; the profile's own by default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--compile", action="store_true", help="compile on a CPU too")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = device_named(arguments.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {arguments.threads} threads"
    peak = {precision: ceiling(device, precision) for precision in ("float32", "bfloat16")}
    print(f"{name}, torch {torch.__version__}; matrix products", end=" ")
    print(", ".join(f"{value / 1e12:.2f} TFLOP/s in {precision}" for precision, value in peak.items()), "\n")
    print("| preset | batch | measure | ms a step | ratio | of the ceiling | ms of waiting | peak GiB |")
    print("|---|---|---|---|---|---|---|---|")
    for preset in arguments.presets.split(","):
        config = PROFILES[preset]
        config = replace(config, batch=arguments.batch or config.batch)
        rng, grid = np.random.default_rng(0), PRESETS[preset].grid
        fields = {s: [rng.standard_normal((40, 2, grid, grid), np.float32) for _ in range(4)] for s in "abcde"}
        source = Dataset(Frames.of(fields), {})
        plain = None
        for measure in measures(device, arguments.compile):
            seconds, wait, count, memory = row(preset, measure, config, source, device, arguments.steps)
            plain = plain or seconds
            share = count / seconds / peak[measure.precision]
            print(
                f"| {preset} | {config.batch} | {measure.name} | {1e3 * seconds:.1f} | {plain / seconds:.2f} "
                f"| {share:.0%} | {1e3 * wait:.2f} | {memory:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
