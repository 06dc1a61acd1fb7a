"""Costs of the forecasters: parameters, arithmetic, seconds and memory of an update and of a forecast.

    python benchmarks/baselines.py [--preset nano] [--batch 2] [--device auto] [--threads 1]

An update is forward, loss, backward, clipping and AdamW on random fields; frozen features are computed before, as in
adaptation. Medians of five after a warm-up. FLOPs of a forecast are those that torch's counter sees (convolutions,
matrix products, attention; a multiplication and an addition are two) and those of Fourier transforms. `implied` is the
time of an update by its roofline (`roofline.py`) on ceilings measured in the same run, and `ratio` is the measured time
over it. Memory is what the device's allocator reports at its highest; on a CPU it is not measured.
"""

import argparse
import statistics
from collections.abc import Callable

import torch

from rdjepa import forecasters
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.loss import forecast_loss
from rdjepa.models.device import device_named
from roofline import Ceilings, Roofline, measure, timings

REPEATS = 5


def seconds(step: Callable[[], object], device: torch.device) -> float:
    """Return the median seconds of a step."""
    return statistics.median(timings(step, device, REPEATS))


def row(model: ForecastModel, batch: int, device: torch.device, ceilings: Ceilings) -> str:
    """Measure one forecaster and return its row of the table."""
    model.to(device)
    context = torch.randn(batch, 4, model.components, model.grid or 128, model.grid or 128, device=device)
    target = torch.randn(batch, 5, *context.shape[2:], device=device)
    with torch.no_grad(), Roofline(ceilings) as counter:
        model(context[:1])
    groups = model.parameter_groups()
    trained = sum(p.numel() for group in groups for p in group["params"])
    total = sum(p.numel() for p in model.parameters())
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    update, implied = "-", "- | -"
    if groups:
        optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)
        parameters = [p for group in groups for p in group["params"]]
        features = model.features(context)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            forecast_loss(model.predict(*features), target).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()

        taken = seconds(step, device)
        with Roofline(ceilings) as floor:
            step()
        update, implied = f"{1e3 * taken:.0f}", f"{1e3 * floor.seconds:.0f} | {taken / floor.seconds:.1f}"
    with torch.no_grad():
        forecast = seconds(lambda: model(context), device)
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB" if device.type == "cuda" else "-"
    return (
        f"{total:,} | {trained:,} | {counter.flops / 1e9:.2f} | {update} | {implied} | {1e3 * forecast:.1f} | {memory}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="nano")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--only", default=",".join(forecasters.usual()))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = device_named(arguments.device)
    print(f"preset {arguments.preset}, batch {arguments.batch}, {device}, {arguments.threads} threads\n")
    ceilings = measure(device)
    print(
        f"{ceilings.products / 1e9:.0f} GFLOP/s in matrix products, {ceilings.fourier / 1e9:.1f} in Fourier "
        f"transforms, {ceilings.bytes / 2**30:.0f} GiB/s in copies\n"
    )
    columns = "parameters | trained | GFLOP a forecast | ms an update | implied | ratio | ms a batch | memory"
    print(f"| forecaster | {columns} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in arguments.only.split(","):
        model = forecasters.build(name, arguments.preset, seed=0)
        print(f"| {name} | {row(model, arguments.batch, device, ceilings)} |", flush=True)


if __name__ == "__main__":
    main()
