"""The rows of a benchmark: lines added to a CSV file as they are measured, and read back to go on or to report."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path


def append(path: Path, fields: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Add lines to a CSV file, with a heading if it is new."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([fields, *rows] if new else rows)


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines of a CSV file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
