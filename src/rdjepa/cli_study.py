"""The command line's verbs for the paper's studies: parsing and printing only."""

from pathlib import Path
from typing import Annotated

import typer

from rdjepa.console import console, progress
from rdjepa.experiments import study
from rdjepa.experiments.cell import Cell
from rdjepa.experiments.profiles import PROFILES, profile
from rdjepa.experiments.supply import Supply

app = typer.Typer(no_args_is_help=True, help="Run the paper's studies cell by cell, and set them beside the paper.")

GIB = 2**30

Name = Annotated[str, typer.Argument(help=f"Study: {', '.join(study.STUDIES)}.", metavar="STUDY")]
Root = Annotated[Path, typer.Option(help="Study directory.")]
ProfileName = Annotated[str, typer.Option("--profile", help=f"Size of the study: {', '.join(PROFILES)}.")]
Model = Annotated[str | None, typer.Option(help="Pretrained checkpoint; the profile's own by default.")]
Only = Annotated[
    str | None,
    typer.Option(help="Cells with key=value,... (system, k, support_seed, contender); values of one key add up."),
]
Data = Annotated[Path | None, typer.Option(help="Data set to read; what it lacks is simulated.")]
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
    device: Annotated[
        str, typer.Option(help="Where to compute: auto (a GPU when there is one), cpu or cuda.")
    ] = "auto",
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


def _cells(name: str, only: str | None) -> list[Cell]:
    return study.cells(name, [] if only is None else only.split(","))
