"""The table of a probe: a row per coefficient and regime, a column per kind of features."""

from collections.abc import Mapping, Sequence
from typing import Any

from rdjepa.io.markdown import pipe_table

HEADINGS = ("system", "target", "regime")


def probe_table(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the cells of the table, one list per line, the headings first.

    Args:
        rows: records of `ProbeRow`: system, target, regime, features, value.
    """
    kinds = list(dict.fromkeys(row["features"] for row in rows))
    values: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        values.setdefault(tuple(row[name] for name in HEADINGS), {})[row["features"]] = row["value"]
    return [
        [*HEADINGS, *kinds],
        *([*place, *(f"{found[kind]:.2f}" for kind in kinds)] for place, found in values.items()),
    ]


def probe_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as Markdown.

    Args:
        rows: as for `probe_table`.
    """
    heading, *cells = probe_table(rows)
    return pipe_table(heading, cells) + "\n"
