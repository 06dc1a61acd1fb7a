"""What the choices about one's own data cost: borders of the model, a single component, averaging against tiles.

    python benchmarks/own_data.py run --out benchmarks/results/own-data.csv
    python benchmarks/own_data.py table benchmarks/results/own-data.csv

- borders: the decoder padded with zeros (as in pretraining), periodic, or between walls; on Barkley between its three
  walls, and on a periodic source. The error of the outermost `RING` points stands beside that of the whole field.
- components: both were measured, or one, beside which stands the frame before. Errors are those of that one.
- grid: fields of twice the model's points per side averaged to it and brought back, or cut into overlapping squares.
  Errors are those on the full grid.
- whole: the same as `adapt` does by default, with the decoder that `--model` has, beside simple forecasts; rows of the
  network alone and of the equation of each context too.

RD-JEPA is adapted to one pool trajectory with the given number of updates, and measured on others of the validation
split, with the relative L2 error. `run` appends one line per question, system, choice, support, trajectory, place and
horizon, and skips what the file has.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import torch

import rdjepa
from rdjepa.adaptation.adapt import PROFILES
from rdjepa.data.acquire import Acquirer
from rdjepa.data.fields import with_second
from rdjepa.data.regrid import Regridding, has_walls
from rdjepa.data.trajectory import Key, Trajectory
from rdjepa.data.windows import FORECASTING
from rdjepa.evaluation.metrics import relative_l2
from rdjepa.forecasters.persistence import persistence
from rdjepa.models.borders import BORDERS
from rows import Row, append, call, commands, done, read

RING = 4  # points at the border, on the model's grid: one patch
WALLS = ("barkley-neumann", "barkley-robin", "barkley-dirichlet")
PLACE = ("question", "system", "choice", "support", "updates")
START = ("precision", "fingerprint")  # of the adaptation, and of the weights that it starts from
FIELDS = (*PLACE, "trajectory", "place", "horizon", "relative_l2", *START)
QUESTIONS = {
    "borders": ("brusselator", "gray-scott", *WALLS),
    "components": ("gray-scott", "brusselator", "barkley"),
    "grid": ("gray-scott", "barkley"),
    "whole": ("brusselator", "gray-scott", "barkley"),
}
CHOICES = {
    "borders": (*BORDERS, "persistence"),
    "components": ("both", "one", "persistence"),
    "grid": ("averaged", "tiles", "persistence"),
    "whole": ("averaged", "tiles", "persistence"),
}
ON_FULL_GRID = ("grid", "whole")
Forecast = Callable[[np.ndarray], np.ndarray]


def earlier(row: Row) -> Row:
    """Rows that do not say what was adapted are of the nano of 22 November 2026, or of nano-wide, in bfloat16."""
    return {
        "precision": "bfloat16",
        "fingerprint": "20af7e5be1f2" if row["question"] == "whole" else "fce83b20f15f",
    }


def prepared(question: str, choice: str, trajectory: Trajectory, grid: int) -> Trajectory:
    """Return a trajectory as the choice has it."""
    if question in ON_FULL_GRID:
        return trajectory
    trajectory = trajectory.coarsened(grid)
    return replace(trajectory, fields=with_second(trajectory.fields[..., :1])) if choice == "one" else trajectory


def adapted(
    question: str, choice: str, learning: Trajectory, grid: int, arguments: argparse.Namespace
) -> dict[str, Callable[[], Forecast]]:
    """Return the forecast of RD-JEPA adapted to a trajectory, and of its parts, by name; each is made when called."""
    if choice == "persistence":
        return {choice: lambda: persistence}
    config = replace(PROFILES["nano"], steps=arguments.updates, precision=arguments.precision)
    options: dict = {"borders": choice} if question == "borders" else {}
    if question in ON_FULL_GRID:
        options = {"tile": True} if choice == "tiles" else {"resample": True}
    if question != "whole":
        options |= {"decoder": "fresh", "retain": 0}
    forecaster = rdjepa.adapt(
        arguments.model, [learning], steps="auto", config=config, device="cpu", augment=False, **options
    )
    way = Regridding(learning.fields.shape[1:3], grid, has_walls(learning))

    def part(name: str) -> Forecast:
        forecast = forecaster.parts()[name].forecast
        return forecast if choice != "averaged" else lambda context: way.back(forecast(way.there(context)))

    own = forecaster.model.name
    return {choice if name == own else f"{choice}, {name}": partial(part, name) for name in forecaster.parts()}


def measure(question: str, forecast: Forecast, unseen: Trajectory, stride: int) -> Iterator[tuple[str, int, float]]:
    """Yield the errors by place and horizon, means over windows."""
    windows = FORECASTING.stack(unseen.fields, FORECASTING.starts(len(unseen.fields))[::stride])
    made, truth = np.asarray(forecast(windows.context)), windows.targets
    if question == "components":
        made, truth = made[..., :1], truth[..., :1]
    inside = np.zeros(truth.shape[2:4], dtype=bool)
    inside[RING:-RING, RING:-RING] = True
    places = {"whole": np.ones_like(inside)} | ({"border": ~inside} if question == "borders" else {})
    for place, points in places.items():
        errors = relative_l2(made * points[:, :, None], truth * points[:, :, None]).mean(axis=0)
        yield from ((place, h, float(error)) for h, error in enumerate(errors, 1))


def run(arguments: argparse.Namespace) -> None:
    """Measure what the file does not have."""
    torch.set_num_threads(arguments.threads)
    measured = done(arguments.out, (*PLACE, *START), earlier)
    model = rdjepa.load(arguments.model)
    grid, start = model.config.grid, (arguments.precision, model.fingerprint[:12])
    acquirer = Acquirer(arguments.cache, arguments.data)
    for question in arguments.questions.split(","):
        for support in range(arguments.supports):
            for system in QUESTIONS[question]:
                known = acquirer.get(Key(system, "pool", "id", support))
                for choice in CHOICES[question]:
                    updates = 0 if choice == "persistence" else arguments.updates
                    place: tuple[str, ...] = (question, system, choice, str(support), str(updates))
                    if (*place, *start) in measured:
                        continue
                    made = adapted(question, choice, prepared(question, choice, known, grid), grid, arguments)
                    rows: list[tuple] = []
                    for name, index in product(made, range(arguments.tests)):
                        unseen = prepared(question, choice, acquirer.get(Key(system, "validation", "id", index)), grid)
                        errors = measure(question, made[name](), unseen, arguments.stride)
                        of = (question, system, name, str(support), str(updates), index)
                        rows += [(*of, where, h, round(error, 5), *start) for where, h, error in errors]
                    append(arguments.out, FIELDS, rows, earlier)
                    print(*place, flush=True)


def table(arguments: argparse.Namespace) -> None:
    """Print one row per question, system and choice: the mean error, its spread over supports, and the border's."""
    values: dict[tuple[str, ...], dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in read(arguments.rows, earlier):
        of = tuple(row[name] for name in ("question", "system", "choice", "updates", *START))
        values[of][row["place"]][row["support"]].append(float(row["relative_l2"]))
    print("| question | system | choice | updates | supports | error | of the border |\n|---|---|---|---|---|---|---|")
    for of, places in values.items():
        shown = [spread([fmean(each) for each in by.values()]) for by in (places["whole"], places["border"])]
        print(f"| {' | '.join(of[:4])} | {len(places['whole'])} | {' | '.join(shown)} |")


def spread(means: list[float]) -> str:
    """Return a mean, with the standard deviation of its parts where there are several; "" of none."""
    if not means:
        return ""
    return f"{fmean(means):.4f}" + (f" ± {stdev(means):.4f}" if len(means) > 1 else "")


def main() -> None:
    parser, go, _ = commands(__doc__, run, table, "own-data.csv")
    go.add_argument("--questions", default=",".join(QUESTIONS))
    go.add_argument("--model", default="nano")
    go.add_argument("--updates", type=int, default=200)
    go.add_argument("--precision", default="bfloat16")
    go.add_argument("--supports", type=int, default=2, help="number of trajectories that are adapted to, one by one")
    go.add_argument("--tests", type=int, default=4)
    go.add_argument("--stride", type=int, default=4, help="take every so many windows of a test trajectory")
    go.add_argument("--data", type=Path)
    go.add_argument("--cache", type=Path, default=Path("build/own-data"))
    call(parser)


if __name__ == "__main__":
    main()
