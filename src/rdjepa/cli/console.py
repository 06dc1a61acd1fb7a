"""What the command line shows: tables, and progress bars with the time left."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

console = Console(highlight=False)


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """A bar for one job; the callback takes (done, total) and, if there is something to say, a short text."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=None, note="")

        def update(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=note)

        yield update


def training_line(metrics: Mapping[str, Any]) -> str:
    """The latest diagnostics of a pretraining as one short line: those that have been measured so far."""
    texts = (
        ("loss", "loss {:.4f}"),
        ("latent_loss", "held out {:.4f}"),
        ("skill_mean", "skill {:.2f}"),
        ("skill_persistence", "{:.2f}"),
        ("target_std", "std {:.2f}"),
        ("target_rank", "rank {:.0f}"),
        ("target_cosine", "cos {:.2f}"),
        ("gradient_norm", "grad {:.2f}"),
        ("steps_per_second", "{:.2f}/s"),
    )
    found = [text.format(metrics[name]) for name, text in texts if name in metrics]
    return " ".join([*(f"WARNING {sign};" for sign in metrics.get("warnings", [])), *found])


def error_table(title: str, summaries: dict[str, dict[str, dict[int, float]]], metric: str) -> Table:
    """One metric of several forecasters: a row each, a column per horizon, and their mean.

    Args:
        title: above the table.
        summaries: forecaster -> metric -> horizon -> error.
        metric: which metric.
    """
    horizons = sorted(next(iter(summaries.values()))[metric])
    table = Table(title=title, title_justify="left")
    table.add_column("forecaster")
    for h in horizons:
        table.add_column(f"h={h}", justify="right")
    table.add_column("mean", justify="right", style="bold")
    for name, metrics in summaries.items():
        values = [metrics[metric][h] for h in horizons]
        table.add_row(name, *(f"{v:.4f}" for v in values), f"{sum(values) / len(values):.4f}")
    return table
