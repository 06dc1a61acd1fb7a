"""The commands for the paper's studies: run, plan, status, export, tables, figures, report."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.table import Table

from rdjepa.checks import require_packages
from rdjepa.cli.console import console, progress, say
from rdjepa.cli.options import PHASES, PROFILES, STUDIES, Device, Scheduler
from rdjepa.cli.outputs import require_writable
from rdjepa.errors import ArgumentError, Note, StudyError, warn

app = typer.Typer(no_args_is_help=True, help="Run the paper's studies cell by cell, and set them beside the paper.")

GIB = 2**30
_need_packages = partial(require_packages, "of studies", "study", "pandas", "pyarrow", "jinja2", error=StudyError)

Name = Annotated[str, typer.Argument(help=f"Study: {', '.join(STUDIES)}.", metavar="STUDY")]
Root = Annotated[Path, typer.Option(help="Study directory.")]
Roots = Annotated[
    list[Path] | None, typer.Option("--root", help="Study directory or export; several are joined. [default: study]")
]
ProfileName = Annotated[
    str | None,
    typer.Option("--profile", help=f"Size of the study: {', '.join(PROFILES)}; the study's own by default."),
]
Phase = Annotated[
    str | None,
    typer.Option(
        help=f"Part of a study that has phases ({', '.join(PHASES)}): the first by default, so that what is held "
        "out is used only when asked for."
    ),
]
Model = Annotated[str | None, typer.Option(help="Pretrained checkpoint; the profile's own by default.")]
Precision = Annotated[
    str | None,
    typer.Option(
        help="float32 or bfloat16; the profile's own by default, float32 on a device without bfloat16 arithmetic."
    ),
]
Steps = Annotated[int | None, typer.Option(help="Updates of every cell; the profile's own by default.")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Cells with key=value,... (system, k, support_seed, forecaster, change, group); values of one key add up. "
        "May be repeated."
    ),
]
Data = Annotated[Path | None, typer.Option(help="Dataset to read; what it lacks is simulated.")]
Known = Annotated[
    list[Path] | None,
    typer.Option(
        help="Export or another study directory: its cells count as done, its field statistics are taken; may be "
        "repeated."
    ),
]
Out = Annotated[Path, typer.Option(help="Directory for what is written.")]
ROOT = Path("study")


@app.command()
def run(
    name: Name,
    profile_name: ProfileName = None,
    root: Root = ROOT,
    only: Only = None,
    phase: Phase = None,
    model: Model = None,
    precision: Precision = None,
    steps: Steps = None,
    data: Data = None,
    known: Known = None,
    cache: Annotated[float, typer.Option(help="GiB of simulated trajectories to keep.")] = 20.0,
    workers: Annotated[
        int | None, typer.Option(help="Local processes, one thread each; one for each GPU, or one, by default.")
    ] = None,
    scheduler: Scheduler = None,
    device: Device = "auto",
) -> None:
    """Compute the missing cells; a stopped run is continued. Exit status 1 if a cell failed."""
    if not 0 < cache < math.inf:
        raise ArgumentError(f"expected a number of GiB to keep, above 0, got {cache}; raise --cache")
    _need_packages()
    from rdjepa.study import runner

    cells = runner.cells(name, _conditions(only), phase=phase)
    chosen = _profile(name, profile_name, device, checkpoint=model, precision=precision, steps=steps)
    with progress(f"study {name}") as update:
        ran = runner.run(
            root,
            cells,
            chosen,
            data=data,
            limit=int(cache * GIB),
            known=known,
            workers=workers,
            scheduler=scheduler,
            device=device,
            progress=update,
        )
    kept = f"{len(ran.done)} done, {ran.kept} kept, {len(ran.busy)} with another process"
    say(f"{kept}; {chosen.adapt.precision}, in {root}")
    if ran.pretrained:
        say(f"pretrainings: {len(ran.pretrained)} done")
    if known and ran.kept:  # what is known stays where it is
        places = " ".join(f"--root {place}" for place in [root, *known])
        say(f"tables, figures and report of all of them: {places}")
    _print_failures(ran.failed, ran.stopped)
    if ran.failed:
        raise typer.Exit(1)


@app.command()
def plan(
    name: Name,
    profile_name: ProfileName = None,
    root: Root = ROOT,
    only: Only = None,
    phase: Phase = None,
    model: Model = None,
    precision: Precision = None,
    steps: Steps = None,
    data: Data = None,
    known: Known = None,
    device: Device = "auto",
) -> None:
    """Show the missing cells, their expected hours on this device, and disk space; no cell is computed."""
    _need_packages()
    from rdjepa.models.device import device_named
    from rdjepa.study import cost, runner

    cells = runner.cells(name, _conditions(only), phase=phase)
    chosen = _profile(name, profile_name, device, checkpoint=model, precision=precision, steps=steps)
    supply, missing, starts = runner.outstanding(root, cells, chosen, data, known=known)
    with progress("time") as update:
        expected = cost.cost(missing, chosen, supply, device_named(device), update, starts)
    table = Table()
    for heading in ("forecaster", "cells", "missing", "hours"):
        table.add_column(heading, justify="left" if heading == "forecaster" else "right")
    for forecaster in dict.fromkeys(cell.forecaster for cell in cells):
        counts = [sum(cell.forecaster == forecaster for cell in part) for part in (cells, missing)]
        table.add_row(forecaster, *map(str, counts), f"{expected.seconds.get(forecaster, 0) / 3600:.2f}")
    if starts:
        table.add_row("pretrainings", "", str(len(starts)), f"{expected.pretraining_seconds / 3600:.2f}")
    table.add_row("data", "", "", f"{expected.data_seconds / 3600:.2f}")
    table.add_row("all", str(len(cells)), str(len(missing)), f"{expected.hours:.2f}", style="bold")
    console.print(table)
    say(
        f"hours of one worker on this device, in {chosen.adapt.precision}; disk: "
        f"{expected.data_bytes / GIB:.2f} GiB of trajectories, {expected.cell_bytes / GIB:.2f} GiB of results"
    )


@app.command()
def status(
    name: Name,
    profile_name: ProfileName = None,
    root: Root = ROOT,
    only: Only = None,
    phase: Phase = None,
    model: Model = None,
    precision: Precision = None,
    steps: Steps = None,
    known: Known = None,
    device: Device = "auto",
) -> None:
    """Show which cells are done, running and failed, and the time left."""
    _need_packages()
    from rdjepa.study import runner

    cells = runner.cells(name, _conditions(only), phase=phase)
    chosen = _profile(name, profile_name, device, checkpoint=model, precision=precision, steps=steps)
    found = runner.status(root, cells, chosen, known)
    left = "" if found.seconds is None else f", {found.seconds / 3600:.2f} hours left"
    say(
        f"{len(found.done)} done, {len(found.running)} running, {len(found.failed)} failed, "
        f"{len(found.waiting)} waiting{left}"
    )
    if found.pretrained or found.unpretrained:
        say(f"pretrainings: {len(found.pretrained)} done, {len(found.unpretrained)} waiting")
    for job in found.running:
        say(f"running: {job}")
    _print_failures(found.failed, found.stopped)


@app.command()
def export(roots: Roots = None, out: Out = Path("results"), only: Only = None) -> None:
    """Write all rows, curves, spectra, records and example fields of study directories as a few small files."""
    _need_packages()
    from rdjepa.study import collect
    from rdjepa.study.directory import RECORDS

    collect.export(roots or [ROOT], out, _conditions(only))
    _tell_failures(roots or [ROOT])
    names = (collect.ROWS, collect.CURVE, collect.SPECTRA, RECORDS, collect.EXAMPLES)
    say(f"{', '.join(names)} in {out}")


@app.command()
def tables(name: Name, profile_name: ProfileName = None, roots: Roots = None, out: Out = Path("report")) -> None:
    """Write the paper's tables from the rows, with the published values: Markdown, LaTeX and CSV."""
    _need_packages()
    from rdjepa.study import collect, registry
    from rdjepa.study.report import learning, write

    with _results(name, profile_name, roots, out / "tables.md") as (root, rows, records, spectra):
        write.write_tables(rows, records, spectra, out, name)
        learning.write_curve(collect.curve(root, name, rows["profile"].iloc[0]), out, registry.get(name).title)
    say(f"tables in {out}")


@app.command()
def figures(name: Name, profile_name: ProfileName = None, roots: Roots = None, out: Out = Path("report")) -> None:
    """Draw the paper's figures from the rows, as PDF and PNG."""
    _need_packages()
    from rdjepa.study import collect
    from rdjepa.study.report import write

    with _results(name, profile_name, roots, out / "figure.pdf") as (root, rows, records, spectra):
        write.write_figures(rows, records, spectra, collect.examples(root), out, name)
    say(f"figures in {out}")


@app.command()
def report(name: Name, profile_name: ProfileName = None, roots: Roots = None, out: Out = Path("report")) -> None:
    """Write one HTML page with tables, figures, animations and provenance."""
    _need_packages()
    from rdjepa.study import collect
    from rdjepa.study.report import write

    with _results(name, profile_name, roots, out / f"{name}.html") as (root, rows, records, spectra):
        write.write_report(rows, records, spectra, collect.examples(root), out, name)
    say(f"report in {out}")


def _conditions(only: Sequence[str] | None) -> list[str]:
    return [condition for each in only or () for condition in each.split(",")]


def _profile(name: str, profile_name: str | None, device: str, **given: Any) -> Any:
    """Return a profile by name, or that of the study, in the precision that is asked for or that suits the device."""
    from rdjepa.models.device import device_named, suited
    from rdjepa.study import registry
    from rdjepa.study.profiles import profile

    found = profile(registry.get(name).profile if profile_name is None else profile_name, **given)
    if given["precision"] is not None:
        return found
    return profile(found.name, **(given | {"precision": suited(found.adapt.precision, device_named(device))}))


def _print_failures(failed: Mapping[Any, str], stopped: Mapping[Any, Sequence[Any]]) -> None:
    """Print what failed and why, and under a pretraining the cells that it stops."""
    for job, reason in failed.items():
        say(f"failed: {job}: {reason}")
        if stopped.get(job):
            say(f"stops {len(stopped[job])} cells: {', '.join(map(str, stopped[job]))}")


@contextmanager
def _results(
    name: str, profile_name: str | None, roots: Sequence[Path] | None, out: Path
) -> Iterator[tuple[Path, Any, Any, Any]]:
    """Yield a study directory or export, of several one that joins them, for the time of a block.

    With it rows, records and spectra of one study at one profile, as pandas tables. Nothing is read where the file
    `out` cannot be written.
    """
    from rdjepa.study import collect, registry
    from rdjepa.study.directory import RECORDS
    from rdjepa.study.profiles import profile

    own = registry.get(name).profile
    chosen, given = own if profile_name is None else profile_name, roots or [ROOT]
    require_writable(out)
    with TemporaryDirectory() if len(given) > 1 else nullcontext() as folder:
        root = given[0] if folder is None else Path(folder)
        if folder is not None:
            collect.export(given, folder)
        rows = collect.collect(root, name, chosen)
        if rows.empty:
            profile(chosen)  # refuses an unknown one; a user's own may have rows
            there = sorted({f"{record['study']} at {record['profile']}" for record in collect.read_records(root)})
            place = f"--root {ROOT} --known" if (given[0] / RECORDS).is_file() else "--root"  # an export is not run in
            raise StudyError(
                f"expected finished cells of {name} at {chosen} in {', '.join(map(str, given))}, got "
                f"{'those of ' * bool(there)}{', '.join(there) or 'none'}; make some with: rdjepa study run {name} "
                f"--profile {chosen} {place} {given[0]}"
            )
        _tell_failures(given)
        records = collect.records(root)
        yield root, rows, records[records["id"].isin(rows["run"])], collect.spectra(root, name, chosen)


def _tell_failures(roots: Sequence[Path]) -> None:
    """Note how many cells and pretrainings of study directories failed: no table shows them."""
    from rdjepa.study.directory import Directory

    for root in roots:
        failed = Directory(root).failures()
        if failed:
            warn(
                f"cells and pretrainings that failed in {root} ({failed}) are in no table or figure; see which with: "
                f"rdjepa study status STUDY --root {root}",
                Note,
            )
