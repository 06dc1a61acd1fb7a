"""How much a blend should trust its network: rules side by side for the same networks, on what they do not know.

    python benchmarks/blend.py run --left-out family/validation/id/00034 --model nano --data datasets
    python benchmarks/blend.py run --left-out family/validation/id/00034 --model nano-wide --updates 0 --noise 0,0.1
    python benchmarks/blend.py table benchmarks/results/blend.csv

A network is adapted to one trajectory, as by `rates.py` and with its equations, supports and validation trajectories,
and forecasts every eighth window of the latter alone and blended with the equation of each context:

- `constant`: the mean square of its errors is taken as a tenth whatever it does; the equation's is the variance of the
  jackknife, and what it misses of the newest frame from three frames before, growing as the square of the lead;
- `growth`: the same with what the equation misses more from three frames before than from one, which noise does not
  change, growing as the square of the lead;
- `first frame`: that, and the network's error as its first frame tells it (`rdjepa.forecasters.combined`).

With `--noise` contexts, and what the equation knows of the support, are noisy, by so many standard deviations; errors
are against frames without noise, which the network is adapted to.
No held-out system and no test trajectory is used. `run` appends a line per trial, number of updates, level of noise and
forecast, and skips what the file has; `table` prints a row per trial, and geometric means of the ratios to `constant`.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from statistics import geometric_mean

import torch
from torch import Tensor

from rates import PRESET, SUPPORT_SEED, material, start, trajectories
from rdjepa import forecasters
from rdjepa.adaptation.adapt import AVERAGED, PROFILES, standardized, train, windows
from rdjepa.adaptation.augmentation import images
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.combined import REACH, judged, nearby, weight
from rdjepa.forecasters.equation import Equation, Remembering
from rows import append, call, commands, done, read

EVERY = 8  # windows
TENTH = 0.1
TRIAL = ("left_out", "forecaster", "updates", "noise", "seed", "validation", "fingerprint")
FIELDS = (*TRIAL, "forecast", "relative_l2")
RULES = ("constant", "growth", "first frame")


def run(arguments: argparse.Namespace) -> None:
    """Adapt networks, and measure what the file lacks."""
    torch.set_num_threads(arguments.threads)
    learning, unseen, normalizer = material(arguments)
    support, others = (standardized([each.fields for each in few], normalizer) for few in (learning, unseen))
    at = sorted(int(n) for n in arguments.updates.split(","))
    levels = arguments.noise.split(",")
    equations = {level: Remembering.of(Equation.fit(noisy(support, float(level), 0))) for level in levels}
    for name in arguments.forecasters.split(","):
        model, fingerprint = start(name, learning, normalizer, arguments)
        left = str(arguments.seed), str(len(unseen)), fingerprint

        def observe(updates: int, weights: str, network: ForecastModel, name: str = name, left: tuple = left) -> None:
            for level in levels if weights == AVERAGED or not updates else ():
                trial = (arguments.left_out, name, str(updates), level, *left)
                if trial in done(arguments.out, TRIAL):
                    continue
                errors = measured(network, equations[level], others, float(level))
                append(arguments.out, FIELDS, [(*trial, each, f"{error:.6g}") for each, error in errors.items()])
                print(*trial[:4], *(f"{each} {error:.4f}" for each, error in errors.items()), flush=True)

        trials = {(arguments.left_out, name, str(n), level, *left) for n in at for level in levels}
        if trials <= done(arguments.out, TRIAL):
            continue
        if 0 in at:
            observe(0, AVERAGED, model.eval())
        if max(at):
            augments = forecasters.get(name).augments
            taught = [image for own in support for image in images(own)] if augments else support
            config = replace(PROFILES[PRESET], steps=max(at), precision=arguments.precision, seed=arguments.seed)
            train(model, windows(model, taught), config, None, observe, at)


def noisy(trajectories: Sequence[Tensor], level: float, seed: int) -> list[Tensor]:
    """Return standardized trajectories with noise of so many standard deviations."""
    draw = torch.Generator().manual_seed(seed)
    return [fields + level * torch.randn(fields.shape, generator=draw) for fields in trajectories]


@torch.no_grad()
def measured(network: ForecastModel, equation: Equation, others: Sequence[Tensor], level: float) -> dict[str, float]:
    """Return the mean relative L2 error of network, equation, and their blends by every rule."""
    errors: dict[str, list[Tensor]] = {}
    for fields, seen in zip(others, noisy(others, level, 1), strict=True):
        starts = FORECASTING.starts(len(fields))[::EVERY]
        context, targets = FORECASTING.stack(seen, starts).context, FORECASTING.stack(fields, starts).targets
        for name, made in forecasts(network, equation, context).items():
            missed, size = (made - targets).square().sum((3, 4)), targets.square().sum((3, 4))
            errors.setdefault(name, []).append((missed / size).sqrt())
    return {name: torch.cat(each).mean().item() for name, each in errors.items()}


def forecasts(network: ForecastModel, equation: Equation, context: Tensor) -> dict[str, Tensor]:
    """Return the forecasts (B, 5, C, H, W) by name."""
    alone, (own, grown) = network(context).float(), judged(context, equation)
    _, variance, missed = equation.fitted(context)
    leads = range(1, HORIZONS + 1)
    far = [nearby(variance[:, n - 1], REACH) + (n / 3) ** 2 * nearby(missed[:, 1].square(), REACH * n) for n in leads]
    tenth = TENTH * context[:, -1].double().square().mean((1, 2, 3)).clamp(min=1)[:, None, None, None, None]
    by_constant = {
        name: (r / (r + tenth)).float() for name, r in (("constant", torch.stack(far, 1)), ("growth", grown))
    }
    weights = by_constant | {"first frame": weight(alone, own, grown)}
    return {"network": alone, "equation": own} | {name: torch.lerp(own, alone, weights[name]) for name in RULES}


def table(arguments: argparse.Namespace) -> None:
    """Print the errors in Markdown: a row per trial, then geometric means of the ratios to `constant`."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for row in read(arguments.rows):
        found.setdefault(tuple(row[name] for name in TRIAL[:5]), {})[row["forecast"]] = float(row["relative_l2"])
    names = ("network", "equation", *RULES)
    print(f"| {' | '.join((*TRIAL[:5], *names))} |\n|" + "---|" * (5 + len(names)))
    for trial, errors in sorted(found.items()):
        print(f"| {' | '.join((*trial, *(f'{errors[name]:.4f}' for name in names)))} |")
    adapted = [errors for trial, errors in found.items() if trial[2] != "0"]
    others = [errors for trial, errors in found.items() if trial[2] == "0"]
    for what, some in (("adapted", adapted), ("no update", others)):
        if some:
            ratios = {name: geometric_mean(errors[name] / errors["constant"] for errors in some) for name in RULES}
            print(f"{what}, {len(some)} rows:", *(f"{name} {ratio:.3f}" for name, ratio in ratios.items()))


def main() -> None:
    """Run trials or print their table."""
    parser, go, _ = commands(__doc__, run, table, "blend.csv")
    trajectories(go, help="a source, or the key of a random equation")
    go.add_argument("--model", help="directory of a model pretrained on other systems")
    go.add_argument("--forecasters", default="rd-jepa-augmented")
    go.add_argument("--updates", default="200,600")
    go.add_argument("--noise", default="0", help="shares of the standard deviation")
    go.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    go.add_argument("--seed", type=int, default=SUPPORT_SEED, help="of fresh weights and the order of windows")
    go.set_defaults(statistics=20, validation=6)
    call(parser)


if __name__ == "__main__":
    main()
