"""The command inspect."""

from typing import Any

from rdjepa.cli.console import console
from rdjepa.cli.options import (
    MODEL,
    Axes,
    Boundary,
    Components,
    Data,
    Field,
    Index,
    Interval,
    Length,
    Model,
    Spacing,
    reading_of,
)


def inspect(
    data: Data,
    model: Model = MODEL,
    field: Field = None,
    axes: Axes = None,
    components: Components = None,
    interval: Interval = None,
    length: Length = None,
    boundary: Boundary = None,
    spacing: Spacing = None,
    index: Index = None,
) -> None:
    """Say what data hold, how they would be read, and what adapt would do with them; nothing is written."""
    from rich.table import Table

    from rdjepa import api

    reading = reading_of(field, axes, components, interval, length, boundary, spacing, index)
    sources: list[Any] = list(data) if index is None or len(data) == 1 else [data]  # positions count over all files
    for source in sources:
        table = Table.grid(padding=(0, 2))
        for heading, text in api.inspect(source, model=model, reading=reading).rows():
            table.add_row(heading, text)
        console.print(", ".join(map(str, source)) if isinstance(source, list) else str(source))
        console.print(table)
