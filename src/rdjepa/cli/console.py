"""Sentences, tables and progress of the command line, on a terminal and in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

LINE_SECONDS = 60  # between two lines of progress in a log
RATE_SECONDS = 3600  # over which the speed is taken: a job may report once in many minutes

console = Console(highlight=False, markup=False, emoji=False)  # names of files may look like markup
say = partial(console.print, soft_wrap=True)  # a sentence; no path is broken into lines


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """Show the progress of one job; yield a callback that takes (done, total) and an optional short text.

    A terminal gets a bar. Where the output is a file or a pipe, such as the log of a batch job, there is a plain line a
    minute and one at the end.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    terminal = console.is_interactive
    with Progress(*columns, console=console, speed_estimate_period=RATE_SECONDS, disable=not terminal) as bar:
        task = bar.add_task(label, total=None, note="")
        said = time.monotonic()

        def update(done: int, total: int, note: str = "") -> None:
            nonlocal said
            bar.update(task, completed=done, total=total, note=note)
            if not terminal and done < total and time.monotonic() - said >= LINE_SECONDS:
                said = time.monotonic()
                say(_line(bar.tasks[0]))

        try:
            yield update
        finally:
            if not terminal and bar.tasks[0].total is not None:
                say(_line(bar.tasks[0]))


def _line(task: Task) -> str:
    """Return what the bar of a task shows, as plain text."""
    left = "" if task.finished or task.time_remaining is None else f", {_clock(task.time_remaining)} left"
    note = task.fields["note"]
    return (
        f"{task.description}: {task.completed:.0f} of {task.total:.0f} in {_clock(task.elapsed or 0)}{left}"
        + f", {note}" * bool(note)
    )


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


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
