"""Choices of pretraining, made by leaving one source out: averaging of the target encoder, and spectral modes.

    python benchmarks/choices.py run --left-out gray-scott --ema .999 .9999 --data datasets --work runs
    python benchmarks/choices.py run --left-out gray-scott --ema .999 .9999 --data datasets --work runs --quadrant
    python benchmarks/choices.py table benchmarks/results/choices.csv

A model is pretrained on the other four sources; RD-JEPA then adapts to one pool trajectory of the fifth and is
evaluated on its validation trajectories, as in `rates.py`. No held-out system and no test trajectory is used. With
`--quadrant` the spectral branch keeps wavenumbers from 0 up along both directions, as before revision 2 of the models.
A run goes on where it was stopped, and stays in `--work` for `rates.py`.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch

import rates
import rdjepa
from rdjepa.forecasters.rd_jepa import RDJEPAForecaster
from rdjepa.models import spectral
from rdjepa.models.rdjepa import with_fresh_decoder
from rdjepa.pretraining.config import PROFILES, scaled
from rdjepa.systems import SOURCES
from rows import append, call, commands, done, read

CHOICE = ("first", "last", "modes")
PLACE = ("left_out", "steps", "trajectories", "groups", "rates", "precision", "seed", "updates", "weights")
FIELDS = (*CHOICE, *PLACE, rates.METRIC, "validation", "fingerprint")


def quadrant(side: int, modes: int) -> list[int]:
    """Return the wavenumbers that revision 1 kept along the rows; the stand-in for `spectral.kept_rows`."""
    return list(range(min(modes, side // 2 + 1)))


def first_modes(layer: spectral.SpectralConvolution, side: int) -> torch.Tensor:
    """Return the weights of these modes; the stand-in for `SpectralConvolution.kept`."""
    return layer.weight[:, : len(quadrant(side, layer.modes)), : side // 2 + 1].float()


def run(arguments: argparse.Namespace) -> None:
    """Pretrain with one choice, adapt, and append a row per observation; do nothing if the file has them."""
    torch.set_num_threads(arguments.threads)
    if arguments.quadrant:
        spectral.kept_rows = quadrant
        spectral.SpectralConvolution.kept = first_modes  # type: ignore[assignment,method-assign]
    system, (first, last) = arguments.left_out, arguments.ema
    choice = (f"{first:g}", f"{last:g}", "quadrant" if arguments.quadrant else "both diagonals")
    sizes = (system, str(arguments.steps), str(arguments.trajectories))
    with torch.device("meta"):  # what groups and rates would be, before there is a model
        fresh = RDJEPAForecaster.from_preset(rates.PRESET)
        groups, learned = rates.regrouped(fresh, arguments.groups), rates.scaled(fresh, 1.0, arguments.trunk)
    settings = (groups, rates.text(learned), arguments.precision, str(arguments.seed))
    trial = (*choice, *sizes, *settings)
    if trial in done(arguments.out, FIELDS[: len(trial)]):
        return
    config = replace(scaled(PROFILES[rates.PRESET], arguments.steps), ema=(first, last))
    out = arguments.work / "-".join(["without", system, *choice[:2], *(["quadrant"] if arguments.quadrant else [])])
    systems = [name for name in SOURCES if name != system]
    seen = {"systems": systems, "trajectories": arguments.trajectories}
    model = rdjepa.pretrain(rates.PRESET, arguments.data, out, config=config, device="cpu", resume=True, **seen)
    forecaster = RDJEPAForecaster(with_fresh_decoder(model, arguments.seed))
    rates.regrouped(forecaster, arguments.groups)
    learning, unseen, normalizer = rates.material(arguments)
    learned = rates.scaled(forecaster, 1.0, arguments.trunk)
    rows = rates.trial(forecaster, learned, learning, unseen, normalizer, arguments)
    append(arguments.out, FIELDS, [(*trial, *row, len(unseen), model.fingerprint) for row in rows])
    print(f"{system} {' '.join(choice)}: {rows[-1][-1]}")


def table(arguments: argparse.Namespace) -> None:
    """Print the errors: a column per choice, the lowest of a row in bold."""
    found: dict[tuple[str, ...], dict[tuple[str, ...], float]] = defaultdict(dict)
    for row in read(arguments.rows):
        choice = tuple(row[name] for name in CHOICE)
        found[tuple(row[name] for name in PLACE)][choice] = float(row[rates.METRIC])
    choices = sorted({each for errors in found.values() for each in errors})
    print(f"| {' | '.join(PLACE)} | {' | '.join(f'{first} to {last}, {modes}' for first, last, modes in choices)} |")
    print("|" + "---|" * (len(PLACE) + len(choices)))
    for place, errors in found.items():
        lowest = min(errors.values())
        cells = (f"**{e:.4f}**" if e == lowest else f"{e:.4f}" if e else "" for e in map(errors.get, choices))
        print(f"| {' | '.join(place)} | {' | '.join(cells)} |")


def main() -> None:
    """Run one trial or print the table."""
    parser, go, _ = commands(__doc__, run, table, "choices.csv")
    rates.common(go, choices=SOURCES)
    go.add_argument("--ema", type=float, nargs=2, required=True, help="first and last averaging coefficient")
    go.add_argument("--quadrant", action="store_true", help="spectral branch of revision 1")
    go.add_argument("--steps", type=int, default=5_000)
    go.add_argument("--trajectories", type=int, default=300, help="pool trajectories of each source")
    go.add_argument("--work", type=Path, default=Path("runs"), help="directory of the runs")
    call(parser)


if __name__ == "__main__":
    main()
