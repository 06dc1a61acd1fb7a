"""The campaign: what this package does when it is killed, fed damaged or hostile files, cut off from disk, or loaded.

    python benchmarks/campaign [--hours 1] [--only kills,damage,hostile,resources,load] [--seed 0] [--out DIR] [--short]

Every part runs once in full (about an hour and a half on one core); all but the load go on with the next seeds until
the hours are over. DIR receives trials.jsonl, a line for every trial, table.md, and outcomes.csv, as
benchmarks/results/campaign.csv, which joins those of several runs. `--short` makes the few trials of
the test suite instead. Exit status 1 if a trial did not go well.
"""

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from campaign import damage, groups, hostile, kills, load, resources, short, small  # noqa: E402
from campaign.table import outcomes, table  # noqa: E402
from campaign.trial import WELL, Log, Trial  # noqa: E402

PARTS: dict[str, Callable[[Path, int], Iterator[Trial]]] = {
    "kills": lambda work, seed: itertools.chain(kills.trials(work, seed), groups.trials(work, seed)),
    "damage": damage.trials,
    "hostile": hostile.trials,
    "resources": resources.trials,
    "load": lambda work, seed: load.trials(work),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=0.0, help="Go on with the next seeds until then.")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("campaign"))
    parser.add_argument("--short", action="store_true")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"expected parts among {', '.join(PARTS)}, got {', '.join(unknown)}")
    log, began = Log(arguments.out / "trials.jsonl"), time.time()
    log.path.unlink(missing_ok=True)
    small.warm()
    if arguments.short:
        names, PARTS["short"] = ["short"], lambda work, seed: short.trials(work)
    for seed in itertools.count(arguments.seed):
        for name in names:
            if seed > arguments.seed and (name == "load" or time.time() - began > 3600 * arguments.hours):
                continue
            work = Path(tempfile.mkdtemp(prefix=f"campaign-{name}-"))
            try:
                for trial in PARTS[name](work, seed):
                    log.add(trial)
            finally:
                shutil.rmtree(work, ignore_errors=True)
            text = table(
                log.trials, f"python benchmarks/campaign {' '.join(sys.argv[1:])}", (time.time() - began) / 3600
            )
            (arguments.out / "table.md").write_text(text)
            (arguments.out / "outcomes.csv").write_text(outcomes(log.trials))
        if names in (["load"], ["short"]) or time.time() - began > 3600 * arguments.hours:
            break
    print(text)
    raise SystemExit(int(any(trial.outcome != WELL for trial in log.trials)))


if __name__ == "__main__":
    main()
