"""Learning rates of the nano forecasters, chosen by leaving one source out.

    python benchmarks/rates.py run --left-out gray-scott --model runs/without-gray-scott/model --data datasets
    python benchmarks/rates.py table benchmarks/results/rates.csv

RD-JEPA starts from a model that was pretrained on the other four sources; the others start from random weights. Each
forecaster is adapted to `--k` pool trajectories of the fifth (support seed 777) with its preset's rates times a factor,
the same factors for all, and evaluated on validation trajectories of it. With `--trunk`, the rates of what
stands before the decoder (predictor, and encoder where it is trained) are multiplied once more: a slow trunk keeps what
it brought along. `--seed` starts decoder (or all weights) and the order of windows anew, which shows how far two rows
differ by chance. Forecasters that nothing trains, if named in `--forecasters`, have a row after 0 updates. No held-out
system and no test trajectory is used. `run` appends a line per forecaster, factors, precision, seed, number of updates
and kind of weights, and skips what the file has.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

import rdjepa
from rdjepa import forecasters
from rdjepa.adaptation.adapt import PROFILES, train, windows
from rdjepa.data.acquire import Acquirer
from rdjepa.data.splits import support
from rdjepa.data.trajectory import Key
from rdjepa.errors import ArgumentError, DivergenceError
from rdjepa.evaluation.aggregate import horizon_average
from rdjepa.evaluation.evaluate import evaluate
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.io import checkpoint
from rdjepa.models.rdjepa import PRESETS, with_fresh_decoder
from rdjepa.systems import SOURCES
from rows import append, read

PRESET, SUPPORT_SEED, METRIC = "nano", 777, "relative_l2"
TRIAL = ("left_out", "k", "forecaster", "factor", "trunk", "precision", "seed")
PLACE = ("left_out", "k", "forecaster", "precision", "seed", "updates", "weights")  # of a row of the table
FIELDS = (*TRIAL, "updates", "weights", "relative_l2", "validation", "fingerprint")


def run(arguments: argparse.Namespace) -> None:
    """Run the missing trials, in the order of the factors, so that an early stop leaves equal numbers of them."""
    torch.set_num_threads(arguments.threads)
    done = {tuple(row[name] for name in TRIAL) for row in read(arguments.out)}
    system = arguments.left_out
    learning, unseen, normalizer = material(arguments, arguments.k)
    for factor in (float(f) for f in arguments.factors.split(",")):
        for name in arguments.forecasters.split(","):
            settings = (f"{factor:g}", f"{arguments.trunk:g}", arguments.precision, str(arguments.seed))
            if (system, str(arguments.k), name, *settings) not in done:
                model, fingerprint = start(name, arguments)
                rows = trial(model, factor, learning, unseen, normalizer, arguments)
                whole = [(system, arguments.k, name, *settings, *row, len(unseen), fingerprint) for row in rows]
                append(arguments.out, FIELDS, whole)
                print(f"{system} K = {arguments.k} {name} x {factor:g}: {rows[-1][-1]}", flush=True)


def material(
    arguments: argparse.Namespace, k: int = 1
) -> tuple[list[rdjepa.Trajectory], list[rdjepa.Trajectory], rdjepa.Normalizer]:
    """Return the K supports of the source that is left out, its unseen trajectories, and its field statistics."""
    acquirer = Acquirer(arguments.data, arguments.data)

    def get(split: str, index: int) -> rdjepa.Trajectory:
        return acquirer.get(Key(arguments.left_out, split, "id", index)).coarsened(PRESETS[PRESET].grid)

    learning = [get("pool", i) for i in support(1000, k, SUPPORT_SEED)]
    unseen = [get("validation", i) for i in range(arguments.validation)]
    return learning, unseen, rdjepa.Normalizer.fit(get("pool", i).fields for i in range(arguments.statistics))


def start(name: str, arguments: argparse.Namespace) -> tuple[ForecastModel, str]:
    """Return a fresh forecaster and the fingerprint of its pretrained weights.

    Raises:
        ArgumentError: the pretrained model has seen the source that is left out.
    """
    if not forecasters.get(name).pretrained:
        return forecasters.build(name, PRESET, seed=arguments.seed), ""
    seen = checkpoint.read_config(arguments.model)[1].pretraining["systems"]
    if arguments.left_out in seen:
        raise ArgumentError(
            f"expected a model pretrained without {arguments.left_out}, got one of {', '.join(seen)}; make one with: "
            "rdjepa pretrain --systems"
        )
    model = with_fresh_decoder(rdjepa.load(arguments.model), arguments.seed)
    return RDJEPAForecaster(model), model.fingerprint


def trial(
    model: ForecastModel,
    factor: float,
    learning: list[rdjepa.Trajectory],
    unseen: list[rdjepa.Trajectory],
    normalizer: rdjepa.Normalizer,
    arguments: argparse.Namespace,
) -> list[tuple[int, str, str]]:
    """Adapt with the rates times a factor; return number of updates, kind of weights and error of every observation."""
    rows: list[tuple[int, str, str]] = []

    def observe(updates: int, weights: str, snapshot: ForecastModel) -> None:
        forecast = rdjepa.Forecaster(snapshot, normalizer, {}).forecast
        error = horizon_average(evaluate(forecast, unseen, metrics=(METRIC,), stride=4), METRIC)
        rows.append((updates, weights, f"{error:.6g}"))

    if not model.parameter_groups():
        observe(0, "last", model)
        return rows
    *trunk, last = model.parameter_groups()
    scaled = [(group, factor * arguments.trunk) for group in trunk] + [(last, factor)]
    groups = [{**group, "lr": scale * group["lr"]} for group, scale in scaled]
    model.parameter_groups = lambda: groups  # type: ignore[method-assign]
    at = [int(n) for n in arguments.updates.split(",")]
    config = replace(PROFILES[PRESET], steps=max(at), precision=arguments.precision, seed=arguments.seed)
    data = windows(model, [each.fields for each in learning], normalizer, torch.device("cpu"))
    try:
        train(model, data, config, None, observe, at)
    except DivergenceError:
        rows.append((max(at), "last", "nan"))
    return rows


def table(arguments: argparse.Namespace) -> None:
    """Print the errors: a column per pair of factors, the lowest of a row in bold."""
    found: dict[tuple[str, ...], dict[tuple[float, float], float]] = defaultdict(dict)
    for row in read(arguments.rows):
        place = tuple(row[name] for name in PLACE)
        found[place][float(row["factor"]), float(row["trunk"])] = float(row["relative_l2"])
    show(PLACE, found, lambda factors: f"x {factors[0]:g}, trunk x {factors[1]:g}")


def show(
    place: Sequence[str],
    found: Mapping[tuple[str, ...], Mapping[tuple, float]],
    heading: Callable[[tuple], str],
) -> None:
    """Print errors by place and trial as a table in Markdown, the lowest of a row in bold."""
    trials = sorted({each for errors in found.values() for each in errors})
    print(f"| {' | '.join(place)} | {' | '.join(map(heading, trials))} |")
    print("|" + "---|" * (len(place) + len(trials)))
    for where, errors in found.items():
        lowest = min(errors.values())
        cells = (f"**{e:.4f}**" if e == lowest else f"{e:.4f}" if e else "" for e in map(errors.get, trials))
        print(f"| {' | '.join(where)} | {' | '.join(cells)} |")


def common(go: argparse.ArgumentParser, out: Path) -> None:
    """Add the options of an adaptation to the source that is left out."""
    go.add_argument("--left-out", choices=SOURCES, required=True)
    go.add_argument("--data", type=Path, default=Path("datasets"))
    go.add_argument("--trunk", type=float, default=1.0)
    go.add_argument("--updates", default="400,1600")
    go.add_argument("--validation", type=int, default=8)
    go.add_argument("--statistics", type=int, default=1_000)
    go.add_argument("--precision", choices=("float32", "bfloat16"), default=PROFILES[PRESET].precision)
    go.add_argument("--seed", type=int, default=SUPPORT_SEED, help="of fresh weights and the order of windows")
    go.add_argument("--threads", type=int, default=1)
    go.add_argument("--out", type=Path, default=out)


def main() -> None:
    """Run trials or print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    go = verbs.add_parser("run")
    go.set_defaults(function=run)
    common(go, Path("benchmarks/results/rates.csv"))
    go.add_argument("--model", help="directory of a model pretrained on the other sources")
    go.add_argument("--forecasters", default=",".join(n for n in forecasters.names() if forecasters.get(n).trained))
    go.add_argument("--factors", default="1,0.3,3")
    go.add_argument("--k", type=int, default=1)
    shown = verbs.add_parser("table")
    shown.set_defaults(function=table)
    shown.add_argument("rows", type=Path)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
