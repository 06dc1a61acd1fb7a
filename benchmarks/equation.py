"""What the equation of a context costs beside the network's forecast, side by side in one run.

    python benchmarks/equation.py --threads 1

The contexts are windows of simulated trajectories, the first of the pool; the equation has that trajectory behind it.
`network` is the forecast of `nano-wide` in float32, `equation` what `adapt` combines it with: fitted, integrated, and
how sure it is. `all at a time` is the same with the derivatives of all contexts in memory at once, `16 frames` that of
contexts of so many. Rounds of all variants take turns; printed are processor seconds of the fastest round, for one
context, and the ratio to `network`.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import rdjepa
from adapt import fastest
from rdjepa.adaptation.adapt import standardized
from rdjepa.api.start import FROZEN, PRETRAINED, forecaster_of
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters import equation
from rdjepa.forecasters.base import CONTEXT
from rdjepa.forecasters.equation import LONGEST, Equation


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=["brusselator", "fitzhugh-nagumo", "gray-scott"])
    parser.add_argument("--contexts", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    network, _ = forecaster_of(rdjepa.load("nano-wide"), 0, decoder=PRETRAINED, encoder=FROZEN)
    print(f"{arguments.contexts} contexts, {arguments.threads} threads, torch {torch.__version__}")
    print("| system | forecast | seconds a context | ratio |\n|---|---|---|---|")
    for system in arguments.systems:
        trajectory = rdjepa.simulate(system, seed=0).coarsened(64)
        support = standardized([trajectory.fields], rdjepa.Normalizer.fit([trajectory.fields]))
        starts = range(LONGEST - CONTEXT, LONGEST - CONTEXT + arguments.contexts)
        context = FORECASTING.stack(support[0], starts).context
        longer = FORECASTING.stack(support[0], starts, before=LONGEST - CONTEXT).context
        fitted = Equation.fit(support)
        variants: dict[str, Callable[[], object]] = {
            "network": partial(torch.no_grad()(network.eval()), context),
            "equation": partial(fitted.fitted, context),
            "all at a time": partial(at_a_time, fitted, context),
            f"{LONGEST} frames": partial(fitted.fitted, longer),
        }
        taken = fastest(variants, arguments.rounds)
        for name, seconds in taken.items():
            print(f"| {system} | {name} | {seconds / len(context):.3f} | {seconds / taken['network']:.2f} |")


def at_a_time(model: Equation, context: Tensor) -> None:
    """Fit all contexts together."""
    usual, equation.TOGETHER = equation.TOGETHER, len(context) * model.domain.finer**2
    try:
        model.fitted(context)
    finally:
        equation.TOGETHER = usual


if __name__ == "__main__":
    main()
