"""One update, and one pass of predictor and decoder, before and after what makes them cheaper, in one run.

    python benchmarks/adapt.py --preset nano --batch 4 --threads 1

`literal` is the model as the equations are written: features of the newest frame are copied for every horizon and
concatenated before each convolution, interpolation is the library's, the first block's queries are computed for every
window, the spectra of the targets in every update. `rdjepa` is the package, in float32 and with bfloat16 autocast. The
losses of the first update are printed to show that they are the same model. Rounds of all variants take turns; printed
are processor seconds of the fastest round and the ratio to `literal`.
"""

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from rdjepa.adaptation.adapt import AdaptConfig
from rdjepa.forecasters.base import HORIZONS
from rdjepa.forecasters.loss import forecast_loss, log_magnitude
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models.decoder import Decoder
from rdjepa.models.device import autocast
from rdjepa.models.encoder import to_grid
from rdjepa.models.predictor import Predictor
from rdjepa.models.rdjepa import PRESETS, build

CPU = torch.device("cpu")


def literal_grid(predictor: Predictor, context: Tensor) -> Tensor:
    """Query every patch at every horizon, each window on its own."""
    batch, tokens = context.shape[:2]
    patches = torch.arange(tokens).expand(batch, HORIZONS, tokens)
    offsets = torch.arange(1, HORIZONS + 1)[None, :, None].expand_as(patches)
    return predictor(context, patches, offsets)


def literal_decoder(decoder: Decoder, latent: Tensor, frame: Tensor) -> Tensor:
    """Decode with copies of the pyramid and concatenation."""
    batch, horizons = latent.shape[:2]
    *finer, coarsest = (level.repeat_interleave(horizons, 0) for level in decoder.features(frame))
    x = torch.cat([to_grid(decoder.latent(latent).flatten(0, 1)), coarsest], dim=1)
    x = decoder.fuse.branch(x) + decoder.fuse.skip(x)
    for block, level in zip(decoder.up, reversed(finer), strict=True):
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = torch.cat([x, level], dim=1)
        x = block.branch(x) + block.skip(x)  # type: ignore[operator]
    return decoder.head(x).unflatten(0, (batch, horizons))


def update(forecast: Callable[[], Tensor], loss: Callable[[Tensor], Tensor], model: RDJEPAForecaster, rate: float):
    """Return a function that makes one update and returns the loss before it."""
    config = AdaptConfig()
    parameters = [p for group in model.parameter_groups() for p in group["params"]]
    optimizer = torch.optim.AdamW(parameters, lr=rate, betas=config.betas, fused=True)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        value = loss(forecast())
        value.backward()
        torch.nn.utils.clip_grad_norm_(parameters, config.clip)
        optimizer.step()
        return float(value.detach())

    return step


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=tuple(PRESETS), default="nano")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    config = PRESETS[arguments.preset]
    context = torch.randn(arguments.batch, 4, config.components, config.grid, config.grid)
    target = torch.randn(arguments.batch, HORIZONS, *context.shape[2:])
    magnitude = log_magnitude(target)
    steps: dict[str, Callable[[], object]] = {}
    forecasts: dict[str, Callable[[], object]] = {}
    for name, precision in (("literal", "float32"), ("rdjepa float32", "float32"), ("rdjepa bfloat16", "bfloat16")):
        model = RDJEPAForecaster(build(arguments.preset, seed=0))
        latent, frame = model.features(context)

        def forward(model=model, latent=latent, frame=frame, name=name, precision=precision) -> Tensor:
            with autocast(CPU, precision):
                if name == "literal":
                    return literal_decoder(model.decoder, literal_grid(model.predictor, latent), frame)
                return model.predict(latent, frame)

        def loss(prediction: Tensor, name=name) -> Tensor:
            return forecast_loss(prediction, target, None if name == "literal" else magnitude)

        def forecast(forward=forward) -> None:
            with torch.no_grad():
                forward()

        steps[name], forecasts[name] = update(forward, loss, model, 1e-3), forecast
    losses = {name: step() for name, step in steps.items()}
    print(f"{arguments.preset}, {arguments.batch} windows, {arguments.threads} threads, torch {torch.__version__}")
    print("| variant | loss of the first update | update, s | ratio | predictor and decoder, s | ratio |")
    print("|---|---|---|---|---|---|")
    taken = {kind: fastest(each, arguments.rounds) for kind, each in (("update", steps), ("forecast", forecasts))}
    for name, value in losses.items():
        cells = (f"{each[name]:.3f} | {each['literal'] / each[name]:.2f}" for each in taken.values())
        print(f"| {name} | {value:.6f} | {' | '.join(cells)} |")


def fastest(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the processor seconds of the fastest call of each function; the functions take turns."""
    found = {name: float("inf") for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            started = time.process_time()
            function()
            found[name] = min(found[name], time.process_time() - started)
    return found


if __name__ == "__main__":
    main()
