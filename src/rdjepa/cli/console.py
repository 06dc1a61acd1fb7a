"""Tables and progress bars of the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

console = Console(highlight=False, markup=False, emoji=False)  # names of files may look like markup


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar for one job; yield a callback that takes (done, total) and an optional short text."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=None, note="")

        def update(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=note)

        yield update


def table(title: str, *headings: str) -> Table:
    """Return a table without rows, its title at the left: a column of names, and columns of numbers."""
    made = Table(title=title, title_justify="left")
    for heading in headings:
        made.add_column(heading, justify="right" if made.columns else "left", overflow="fold")  # no name is cut
    return made


def error_text(value: float) -> str:
    """Return an error with four decimals, or with three digits and an exponent where those would hide or bury it."""
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.2e}"


def error_table(title: str, summaries: dict[str, dict[str, dict[int, float]]], metric: str) -> Table:
    """Return a table of one metric: a row per forecaster, a column per horizon, and the mean over horizons.

    Args:
        title: above the table.
        summaries: forecaster -> metric -> horizon -> error.
        metric: name of the metric.
    """
    horizons = sorted(next(iter(summaries.values()))[metric])
    made = table(title, "forecaster", *(f"h={h}" for h in horizons))
    made.add_column("mean", justify="right", style="bold")
    for name, metrics in summaries.items():
        values = [metrics[metric][h] for h in horizons]
        made.add_row(name, *map(error_text, [*values, sum(values) / len(values)]))
    return made
