"""The table of a campaign: outcomes by part and target, in Markdown."""

import csv
import io
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from campaign.trial import BAD, WELL, Trial

PACKAGES = ("numpy", "h5py", "torch", "numba", "safetensors", "pandas", "pyarrow", "distributed", "hypothesis")


def table(trials: Sequence[Trial], command: str, hours: float) -> str:
    """Return the table with the command, the date, the machine and the versions below it."""
    counts = Counter((trial.part, trial.target, trial.outcome) for trial in trials)
    rows = ["| part | target | tried | well | " + " | ".join(BAD) + " |", "|---" * (4 + len(BAD)) + "|"]
    for part in dict.fromkeys(trial.part for trial in trials):
        targets = list(dict.fromkeys(trial.target for trial in trials if trial.part == part))
        for target in targets:
            rows.append(_row(part, target, [counts[part, target, outcome] for outcome in (WELL, *BAD)]))
        total = [sum(counts[part, target, outcome] for target in targets) for outcome in (WELL, *BAD)]
        rows.append(_row(f"**{part}**", "**all**", total))
    measured = [trial for trial in trials if trial.part == "load"]
    if measured:
        rows += ["", "| load | what | seconds | MB | seconds of all |", "|---" * 5 + "|"]
        rows += [
            f"| {t.target} | {t.done} | {t.seconds} | {t.figures.get('megabytes', '')} | "
            f"{t.figures.get('seconds of all', '')} |"
            for t in measured
        ]
    date = datetime.now(UTC).isoformat(timespec="minutes")
    rows += ["", f"`{command}`, {date}, {hours:.2f} h, {len(trials)} trials; {_machine()}"]
    return "\n".join(rows) + "\n"


def outcomes(trials: Sequence[Trial]) -> str:
    """Return how often each outcome came, by part and target, as CSV."""
    counts = Counter((trial.part, trial.target, trial.outcome) for trial in trials)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [("part", "target", "outcome", "trials"), *((*key, count) for key, count in counts.items())]
    )
    return text.getvalue()


def _row(part: str, target: str, counts: Sequence[int]) -> str:
    return f"| {part} | {target} | {sum(counts)} | " + " | ".join(str(count or "") for count in counts) + " |"


def _machine() -> str:
    from rdjepa.io.provenance import processor
    from rdjepa.version import __version__

    found = [f"rdjepa {__version__}", f"Python {sys.version.split()[0]}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"{processor()}, {platform.system()} {platform.release()}; {', '.join(found)}"
