"""The command line's verbs for the paper's studies: parsing and printing only."""

from functools import partial
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.table import Table

from rdjepa.cli.console import console, progress
from rdjepa.models.device import device_named
from rdjepa.study import collect, cost, registry
from rdjepa.study import runner as study
from rdjepa.study.cell import Cell
from rdjepa.study.directory import StudyError
from rdjepa.study.profiles import PROFILES, profile
from rdjepa.study.report import write as reporting
from rdjepa.study.supply import Supply

app = typer.Typer(no_args_is_help=True, help="Run the paper's studies cell by cell, and set them beside the paper.")

GIB = 2**30

Name = Annotated[str, typer.Argument(help=f"Study: {', '.join(registry.names())}.", metavar="STUDY")]
Root = Annotated[Path, typer.Option(help="Study directory.")]
ProfileName = Annotated[str, typer.Option("--profile", help=f"Size of the study: {', '.join(PROFILES)}.")]
Model = Annotated[str | None, typer.Option(help="Pretrained checkpoint; the profile's own by default.")]
Only = Annotated[
    str | None,
    typer.Option(help="Cells with key=value,... (system, k, support_seed, forecaster); values of one key add up."),
]
Data = Annotated[Path | None, typer.Option(help="Data set to read; what it lacks is simulated.")]
Device = Annotated[str, typer.Option(help="Where to compute: auto (a GPU when there is one), cpu or cuda.")]
Out = Annotated[Path, typer.Option(help="Directory for what is written.")]
ROOT = Path("study")


@app.command()
def run(
    name: Name,
    profile_name: ProfileName = "nano",
    root: Root = ROOT,
    only: Only = None,
    model: Model = None,
    data: Data = None,
    cache: Annotated[float, typer.Option(help="GiB of simulated trajectories to keep.")] = Supply.limit / GIB,
    workers: Annotated[
        int | None, typer.Option(help="Local processes, one thread each; one for each GPU, or one, by default.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running Dask scheduler, used instead of local processes.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Compute the missing cells; a run that was stopped goes on where it was. Exit status 1 if a cell failed."""
    cells = _cells(name, only)
    with progress(f"study {name}") as update:
        ran = study.run(
            root,
            cells,
            profile(profile_name, model),
            data=data,
            limit=int(cache * GIB),
            workers=workers,
            scheduler=scheduler,
            device=device,
            progress=update,
        )
    console.print(f"{len(ran.done)} done, {ran.kept} kept, {len(ran.busy)} with another process; in {root}")
    for cell, reason in ran.failed.items():
        console.print(f"failed: {cell}: {reason}", markup=False)
    if ran.failed:
        raise typer.Exit(1)


@app.command()
def plan(
    name: Name,
    profile_name: ProfileName = "nano",
    root: Root = ROOT,
    only: Only = None,
    model: Model = None,
    data: Data = None,
    device: Device = "auto",
) -> None:
    """Show which cells are missing, the hours that they will take on this device, and the disk; nothing is computed."""
    cells, chosen = _cells(name, only), profile(profile_name, model)
    supply = Supply(root.resolve(), None if data is None else data.resolve())
    missing = study.missing_cells(root, cells, chosen)
    with progress("time") as update:
        expected = cost.cost(missing, chosen, supply, device_named(device), update)
    table = Table()
    for heading in ("forecaster", "cells", "missing", "hours"):
        table.add_column(heading, justify="left" if heading == "forecaster" else "right")
    for forecaster in dict.fromkeys(cell.forecaster for cell in cells):
        counts = [sum(cell.forecaster == forecaster for cell in part) for part in (cells, missing)]
        table.add_row(forecaster, *map(str, counts), f"{expected.seconds.get(forecaster, 0) / 3600:.2f}")
    table.add_row("data", "", "", f"{expected.data_seconds / 3600:.2f}")
    table.add_row("all", str(len(cells)), str(len(missing)), f"{expected.hours:.2f}", style="bold")
    console.print(table)
    console.print(
        f"hours of one worker on this device; disk: {expected.data_bytes / GIB:.2f} GiB of trajectories, "
        f"{expected.cell_bytes / GIB:.2f} GiB of results"
    )


@app.command()
def status(
    name: Name, profile_name: ProfileName = "nano", root: Root = ROOT, only: Only = None, model: Model = None
) -> None:
    """Show what is done, running and failed, and the time left."""
    found = study.status(root, _cells(name, only), profile(profile_name, model))
    left = "" if found.seconds is None else f", {found.seconds / 3600:.2f} hours left"
    console.print(
        f"{len(found.done)} done, {len(found.running)} running, {len(found.failed)} failed, "
        f"{len(found.waiting)} waiting{left}"
    )
    for cell in found.running:
        console.print(f"running: {cell}", markup=False)
    for cell, reason in found.failed.items():
        console.print(f"failed: {cell}: {reason}", markup=False)


@app.command()
def export(root: Root = ROOT, out: Out = Path("results")) -> None:
    """Write all rows, spectra and records of a study directory as three small files."""
    collect.export(root, out)
    console.print(f"{collect.ROWS}, {collect.SPECTRA} and {collect.RECORDS} in {out}")


@app.command()
def tables(name: Name, profile_name: ProfileName = "nano", root: Root = ROOT, out: Out = Path("report")) -> None:
    """Write the paper's tables from the rows: Markdown, LaTeX and CSV, the published values beside them."""
    rows, records, spectra = _results(name, profile_name, root)
    reporting.write_tables(rows, records, spectra, out, name)
    console.print(f"tables in {out}")


@app.command()
def figures(name: Name, profile_name: ProfileName = "nano", root: Root = ROOT, out: Out = Path("report")) -> None:
    """Draw the paper's figures from the rows, as PDF and PNG."""
    rows, records, spectra = _results(name, profile_name, root)
    reporting.write_figures(rows, records, spectra, partial(collect.example, root), out, name)
    console.print(f"figures in {out}")


@app.command()
def report(name: Name, profile_name: ProfileName = "nano", root: Root = ROOT, out: Out = Path("report")) -> None:
    """Write one HTML page with tables, figures, animations and where each number comes from."""
    rows, records, spectra = _results(name, profile_name, root)
    reporting.write_report(rows, records, spectra, partial(collect.example, root), out, name)
    console.print(f"report in {out}")


def _cells(name: str, only: str | None) -> list[Cell]:
    return study.cells(name, [] if only is None else only.split(","))


def _results(name: str, profile_name: str, root: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Rows, records and spectra of one study at one profile."""
    rows = collect.collect(root, name, profile_name)
    if rows.empty:
        raise StudyError(
            f"expected finished cells of {name} at {profile_name} in {root}, got none; make some with: "
            f"rdjepa study run {name} --profile {profile_name} --root {root}"
        )
    records = collect.records(root)
    return rows, records[records["id"].isin(rows["run"])], collect.spectra(root, name, profile_name)
