"""What a network is worth beside the equation of a context, on random equations: noise, time and points too far apart.

    python benchmarks/context.py run --left-out family/validation/id/00020 --model nano-wide --data datasets
    python benchmarks/context.py run --left-out family/validation/id/00020 --points 16 --stride 2 --noise 0
    python benchmarks/context.py run --left-out family/validation/id/00020 --frames 16
    python benchmarks/context.py table benchmarks/results/context.csv

Nothing is trained: the pretrained network forecasts as it is, beside the autoregression and the equation of each
context (`rdjepa.forecasters`), all of them combined in the shares that the support tells, and network and equation
blended (`rdjepa.adaptation.combination`). Equations, supports and validation trajectories are those of `rates.py`. To
every value of the supports and of the contexts noise is added, independent and normal, with so many times the standard
deviation of its component over the pool; errors are against frames without it. `--stride` takes every so many frames,
`--points` block means of so many points a side, which the network sees repeated until its grid is filled. With
`--frames` contexts are longer than four frames where there are frames before a window; the network sees the newest
four, and the combination is the blend. No held-out system and no test trajectory is used. `run` appends a line per
forecast and level of noise, and skips what the file has.
"""

import argparse
from collections.abc import Callable
from statistics import geometric_mean

import numpy as np
import torch
from torch import Tensor

import rdjepa
from rates import SUPPORT_SEED, material, start, trajectories
from rdjepa.adaptation import combination
from rdjepa.adaptation.adapt import standardized
from rdjepa.evaluation.aggregate import horizon_average
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.forecasters.around import Around
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import CONTEXT, ForecastModel
from rdjepa.forecasters.equation import Remembering
from rows import Row, append, call, commands, done, read

METRIC = "relative_l2"
PLACE = ("left_out", "k", "stride", "points", "frames", "noise")
FIELDS = (*PLACE, "forecaster", METRIC, "validation", "fingerprint")


def earlier(row: Row) -> Row:
    """Return what rows did not say before there was a choice."""
    return {"frames": "4"}


class Repeated(Around):
    """A network on periodic fields of fewer points than its grid has, of which it sees several copies."""

    def __init__(self, network: ForecastModel, points: int) -> None:
        super().__init__(network)
        self.copies, self.grid = (network.grid or points) // points, points

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return the features of the network."""
        return self.network.features(context.repeat(1, 1, 1, self.copies, self.copies))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, points, points)."""
        assert self.grid is not None
        return self.network.predict(*features)[..., : self.grid, : self.grid]


def run(arguments: argparse.Namespace) -> None:
    """Measure the levels of noise that the file lacks."""
    torch.set_num_threads(arguments.threads)
    known = done(arguments.out, (*PLACE, "fingerprint"), earlier)
    learning, unseen, normalizer = material(arguments, arguments.k)
    learning, unseen = ([each.coarsened(arguments.points) for each in given] for given in (learning, unseen))
    pretrained, fingerprint = start("rd-jepa-decoder", learning, normalizer, arguments)
    network = Repeated(pretrained, arguments.points)
    for level in arguments.noise.split(","):
        own = (arguments.k, arguments.stride, arguments.points, arguments.frames)
        place = (arguments.left_out, *map(str, own), level)
        if (*place, fingerprint) in known:
            continue
        rng = np.random.default_rng(arguments.seed)

        def noisy(fields: np.ndarray, rng: np.random.Generator = rng, level: float = float(level)) -> np.ndarray:
            return (fields + level * np.array(normalizer.std) * rng.standard_normal(fields.shape)).astype(np.float32)

        support = standardized([noisy(each.fields) for each in learning], normalizer)
        made, _ = combination.combined(network.eval(), support)
        made.equation = equation = Remembering.of(made.equation)
        models: dict[str, ForecastModel] = {
            "network": network,
            "autoregression": Autoregression(),
            "equation": equation,
            "combined": made,
            "blended": combination.blended(network, equation),
        }
        if arguments.frames > CONTEXT:  # of these the others see nothing, and combined is blended
            models = {name: models[name] for name in ("equation", "blended")}
        rows = []
        for name, model in models.items():
            forecast = seeing(rdjepa.Forecaster(model, normalizer).forecast, noisy)
            every = max(1, 4 // arguments.stride)
            found = evaluate(forecast, unseen, metrics=(METRIC,), stride=every, context=arguments.frames)
            error = horizon_average(found, METRIC)
            rows.append((*place, name, f"{error:.6g}", len(unseen), fingerprint))
        append(arguments.out, FIELDS, rows, earlier)
        print(*place, *(f"{row[len(PLACE)]} {float(row[len(PLACE) + 1]):.4f}" for row in rows), flush=True)


def seeing(forecast: Callable[[np.ndarray], np.ndarray], noisy: Callable[[np.ndarray], np.ndarray]) -> Callable:
    """Return a forecast that is given contexts with noise."""
    return lambda context: forecast(noisy(context))


def table(arguments: argparse.Namespace) -> None:
    """Print the errors in Markdown: a row per equation, stride and noise, then the geometric means over equations."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for row in read(arguments.rows, earlier):
        found.setdefault(tuple(row[name] for name in PLACE), {})[row["forecaster"]] = float(row[METRIC])
    names = list(dict.fromkeys(name for errors in found.values() for name in errors))
    nan = float("nan")
    print(f"| {' | '.join((*PLACE, *names))} |\n|" + "---|" * (len(PLACE) + len(names)))
    for place in dict.fromkeys(place[1:] for place in found):
        of = [errors for each, errors in found.items() if each[1:] == place]
        found["geometric mean of " + str(len(of)), *place] = {n: geometric_mean(e[n] for e in of) for n in of[0]}
    for place, errors in found.items():
        print(f"| {' | '.join((*place, *(f'{errors.get(name, nan):.4f}' for name in names)))} |")


def main() -> None:
    """Measure, or print the table."""
    parser, go, _ = commands(__doc__, run, table, "context.csv")
    trajectories(go, help="the key of a random equation")
    go.add_argument("--model", default="nano-wide", help="directory of a model that has not seen it")
    go.add_argument("--k", type=int, default=1)
    go.add_argument("--points", type=int, default=64, help="of the frames along each side")
    go.add_argument("--frames", type=int, default=4, help="of contexts")
    go.add_argument("--noise", default="0,0.003,0.01,0.03,0.1", help="shares of the standard deviation")
    go.add_argument("--seed", type=int, default=SUPPORT_SEED, help="of the noise")
    call(parser)


if __name__ == "__main__":
    main()
