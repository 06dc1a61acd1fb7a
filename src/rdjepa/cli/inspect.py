"""The command inspect."""

from typing import Annotated

import typer

from rdjepa.cli.console import console
from rdjepa.cli.options import Axes, Components, Data, Field, Interval, Length, reading_of


def inspect(
    data: Data,
    model: Annotated[str, typer.Option(help="Shipped checkpoint, directory of one, or hub id.")] = "nano",
    field: Field = None,
    axes: Axes = None,
    components: Components = None,
    interval: Interval = None,
    length: Length = None,
) -> None:
    """Say what data hold, how they would be read, and what adapt would do with them; nothing is written."""
    from rich.table import Table

    from rdjepa import api

    reading = reading_of(field, axes, components, interval, length)
    for source in data:
        table = Table.grid(padding=(0, 2))
        for heading, text in api.inspect(source, model=model, reading=reading).rows():
            table.add_row(heading, text)
        console.print(str(source), markup=False)
        console.print(table, markup=False)
