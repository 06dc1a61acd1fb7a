"""The command inspect."""

from typing import Any

from rdjepa.cli.console import console, say
from rdjepa.cli.options import MODEL, Data, Start, reads_data


@reads_data
def inspect(
    data: Data,
    model: Start = MODEL,
    reading: Any = None,
) -> None:
    """Say what data hold, how they would be read, and what adapt would do with them; nothing is written."""
    from rich.table import Table

    from rdjepa import api

    # positions count over all files
    sources: list[Any] = list(data) if reading.index is None or len(data) == 1 else [data]
    for source in sources:
        table = Table.grid(padding=(0, 2))
        for heading, text in api.inspect(source, model=model, reading=reading).rows():
            table.add_row(heading, text)
        say(", ".join(map(str, source)) if isinstance(source, list) else str(source))
        console.print(table)
