"""Does what was kept from adaptation tell which forecast is better on other recordings, and how good it is there?

    python benchmarks/hold_out.py run --left-out family/validation/id/00026 --data datasets
    python benchmarks/hold_out.py run --left-out family/validation/id/00026 --data datasets --k 2 --updates 500
    python benchmarks/hold_out.py table benchmarks/results/hold-out.csv

With `hold_out`, `rdjepa.adapt` keeps the end of a single trajectory from adaptation, and chooses between the network
alone and its combination by their errors there. Of several it keeps the last from the first fifth of the updates, and
chooses by that. `run` adapts to the beginning of one pool trajectory of a random equation (`rates.py` says which), or
to `--k` of them, and appends the errors of both on what was kept, of several those by which the choice was made, and in
the end on validation trajectories of the same equation, which have other coefficients. `table` puts the two beside each
other. No held-out system and no test trajectory is used.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

import rates
import rdjepa
from rdjepa.adaptation.adapt import AVERAGED
from rdjepa.adaptation.decision import FIRST
from rdjepa.forecasters.combined import Combined
from rows import append, call, commands, done

KEY = ("left_out", "model", "k", "share", "asked")
FIELDS = (*KEY, "unadapted", "made", "forecaster", "kept", "others", "validation")
NAMES = {"rd-jepa-alone": "network alone", "rd-jepa": "combination"}
METRIC = "relative_l2"


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    several = arguments.k > 1
    share = "" if several else str(arguments.share)
    key = (arguments.left_out, arguments.model, str(arguments.k), share, arguments.updates)
    if key in done(arguments.out, KEY):
        return
    learned, others, _ = rates.material(arguments, arguments.k)
    kept = learned[-1]
    if not several:
        cut = len(kept.fields) - round(arguments.share * len(kept.fields))
        first, kept = (
            replace(kept, fields=kept.fields[part], times=kept.times[part]) for part in (slice(cut), slice(cut, None))
        )
        learned = [first]
    steps = arguments.updates if arguments.updates == "auto" else int(arguments.updates)
    beside: list[Combined] = []

    def choosing(_: int, weights: str, by_then: rdjepa.Forecaster) -> None:
        if weights == AVERAGED and isinstance(by_then.model, Combined):
            beside.append(by_then.model)

    at = (steps // FIRST,) if several and isinstance(steps, int) else ()
    forecaster = rdjepa.adapt(arguments.model, learned, steps=steps, device="cpu", observe=choosing, at=at)
    if several and "withheld" not in forecaster.record:
        raise SystemExit(f"nothing to choose: {forecaster.record}")
    if several:  # both, whichever was chosen
        found = dict(zip(NAMES, forecaster.record["on_others"].values(), strict=True))
        network, made = forecaster.parts().get("rd-jepa-alone", forecaster).model, beside[0]
        forecaster.model = Combined(network, made.linear, made.shares, made.equation, made.familiar).eval()
    else:
        found = errors(forecaster, [kept])
    elsewhere = errors(forecaster, others)
    told = f"{forecaster.record['unadapted']:.4f}", len(forecaster.losses)
    rows = [(*key, *told, name, f"{found[name]:.6f}", f"{elsewhere[name]:.6f}", len(others)) for name in NAMES]
    append(arguments.out, FIELDS, rows)
    print(arguments.left_out, found, elsewhere, forecaster.record.get("on_others"), flush=True)


def errors(forecaster: rdjepa.Forecaster, trajectories: list[rdjepa.Trajectory]) -> dict[str, float]:
    """Return the error of the network alone and of its combination, the mean of five horizons and all windows."""
    found = rdjepa.compare(forecaster, trajectories, metrics=(METRIC,))
    return {name: float(pd.DataFrame(found[name])["value"].mean()) for name in NAMES}


def table(arguments: argparse.Namespace) -> None:
    """Print a row for each equation and model: both errors on what was kept and on others, and which is lower."""
    heads = ["equation", "model", "K", "unadapted", "updates"]
    heads += [f"{where}: {name}" for where in ("kept", "others") for name in NAMES.values()]
    print(f"| {' | '.join(heads)} | the choice |\n{'|---' * (len(heads) + 1)}|")
    for (equation, model, k, *_), part in pd.read_csv(arguments.rows, keep_default_na=False).groupby(
        [*KEY], sort=False
    ):
        by = part.set_index("forecaster")
        kept, others = by["kept"].loc[list(NAMES)], by["others"].loc[list(NAMES)]
        right = "right" if kept.idxmin() == others.idxmin() else "wrong"
        values = " | ".join(f"{value:.4f}" for value in (*kept, *others))
        row = part.iloc[0]
        print(f"| {Path(equation).name} | {model} | {k} | {row.unadapted:.2f} | {row.made} | {values} | {right} |")


def main() -> None:
    parser, go, _ = commands(__doc__, run, table, "hold-out.csv")
    go.add_argument("--left-out", required=True, help="the key of a random equation")
    go.add_argument("--data", type=Path, default=Path("datasets"))
    go.add_argument("--model", default="nano-wide")
    go.add_argument("--k", type=int, default=1, help="trajectories; of one its end is kept, of several the last")
    go.add_argument("--share", type=float, default=0.4, help="of the frames, held out")
    go.add_argument("--updates", default="auto")
    go.add_argument("--validation", type=int, default=6)
    go.add_argument("--statistics", type=int, default=20)
    go.set_defaults(stride=1)
    call(parser)


if __name__ == "__main__":
    main()
