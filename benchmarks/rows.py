"""The rows of a benchmark: lines added to a CSV file as they are measured, and read back to go on or to report.

With them the two commands that a benchmark with rows has: `run` measures and appends, `table` prints what a file holds.
"""

import argparse
import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rdjepa.io.atomic import write_bytes

Command = Callable[[argparse.Namespace], None]
Row = dict[str, str]
Earlier = Callable[[Row], Row]


def whole(row: Row) -> Row:
    """Say that a row lacks nothing.

    A benchmark whose rows did not say every setting has a function in its place: what those of a row were, by column.
    """
    return {}


def append(path: Path, fields: Sequence[str], rows: Iterable[Sequence], earlier: Earlier = whole) -> None:
    """Add lines to a CSV file, with a heading if it is new; one with fewer columns is written anew with all."""
    known = read(path, earlier)
    if not known or list(read(path)[0]) != list(fields):
        if unknown := {name for row in known for name in row} - set(fields):
            raise ValueError(f"expected a file with columns {', '.join(fields)}, got {', '.join(unknown)} in {path}")
        write(path, fields, [*([row[name] for name in fields] for row in known), *rows])
    else:
        with path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def write(path: Path, fields: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Write a CSV file with its heading, in the place of one that is there."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([fields, *rows])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, text.getvalue().encode())


def read(path: Path, earlier: Earlier = whole) -> list[Row]:
    """Return the lines of a CSV file, with what `earlier` says where columns are missing; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [earlier(row) | row for row in csv.DictReader(file)]


def done(path: Path, key: Sequence[str], earlier: Earlier = whole) -> set[tuple[str, ...]]:
    """Return the settings, in the columns of a key, that a file has rows of."""
    return {tuple(row[name] for name in key) for row in read(path, earlier)}


def refuse_other(path: Path, settings: Mapping[str, object], earlier: Earlier = whole) -> None:
    """Refuse a file with rows that were made with other settings than these, by column: its table would mix them.

    Raises:
        ValueError: it has some.
    """
    for row in read(path, earlier):
        other = {name: row[name] for name, value in settings.items() if row[name] != str(value)}
        if other:
            said, wanted = (", ".join(f"{n} {each[n]}" for n in other) for each in (row, settings))
            raise ValueError(f"expected rows of {wanted} in {path}, got some of {said}; give another --out")


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
