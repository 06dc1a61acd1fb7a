"""The rows of a benchmark: lines added to a CSV file as they are measured, and read back to go on or to report.

With them the two commands that a benchmark with rows has: `run` measures and appends, `table` prints what a file holds.
"""

import argparse
import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

Command = Callable[[argparse.Namespace], None]


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


def commands(
    about: str | None, run: Command, table: Command, out: str
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser, argparse.ArgumentParser]:
    """Return the parser of a benchmark, and those of `run` and of `table` for options of its own."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    go, show = verbs.add_parser("run"), verbs.add_parser("table")
    go.set_defaults(function=run)
    go.add_argument("--threads", type=int, default=1)
    go.add_argument("--out", type=Path, default=Path("benchmarks/results") / out)
    show.set_defaults(function=table)
    show.add_argument("rows", type=Path)
    return parser, go, show


def call(parser: argparse.ArgumentParser) -> None:
    """Call what the command line asks for."""
    arguments = parser.parse_args()
    arguments.function(arguments)
