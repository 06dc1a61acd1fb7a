"""The commands for data sets: build, verify, card, sample, and add for recordings."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdjepa.cli.console import progress, say
from rdjepa.cli.options import SPLITS, Data, Scheduler, Stride, names_in, reads_data, stride_of

if TYPE_CHECKING:
    from rdjepa.data.manifest import Entry

app = typer.Typer(no_args_is_help=True, help="Make, verify and describe the benchmark's trajectories, or add your own.")

Base = Annotated[Path, typer.Argument(help="Dataset directory with a manifest.")]


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="Dataset directory; what is whole there is kept.")] = Path("datasets"),
    systems: Annotated[
        list[str] | None,
        typer.Option(help="Names of systems, or .py files that define one, separated by commas; all by default."),
    ] = None,
    splits: Annotated[
        list[str] | None, typer.Option(help=f"Splits, separated by commas. [default: {','.join(SPLITS)}]")
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Share of the paper's counts, up to 1 and rounded up; 1 is all 11,625.")
    ] = 1.0,
    count: Annotated[
        int | None, typer.Option(help="At most this many of every split and regime; a family has up to 10,000.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Local processes, one thread each.")] = 1,
    scheduler: Scheduler = None,
) -> None:
    """Simulate the benchmark, or a part of it; a stopped build is continued."""
    from rdjepa.data import manifest
    from rdjepa.study import dataset, protocol

    with progress("simulate") as update:
        built = dataset.build_dataset(
            out,
            systems_=names_in(*systems) if systems else protocol.SYSTEMS,
            splits=names_in(*splits) if splits else SPLITS,
            scale=scale,
            count=count,
            workers=workers,
            scheduler=scheduler,
            progress=update,
        )
    say(f"{built.made} made, {built.kept} kept; manifest {out / manifest.MANIFEST}")
    _print_kinds(manifest.read(out).values())
    for key, reason in built.failed.items():
        say(f"failed: {key}: {reason}")
    if built.failed:
        raise typer.Exit(1)


def _print_kinds(entries: Collection["Entry"]) -> None:
    """Print how many draws of each kind of equation passed, and how near they come to what is held out."""
    from rdjepa.data import manifest

    for kind, (made, drawn) in manifest.acceptance(entries).items():
        say(f"{kind}: {made} of {drawn} draws accepted")
    for name, distance in manifest.closest(entries).items():
        say(f"smallest distance to {name}: {distance:.3f}")


@app.command()
def verify(base: Base) -> None:
    """Read every trajectory and compare it with the manifest; exit status 1 if anything differs."""
    from rdjepa.data import manifest

    with progress("verify") as update:
        verdict = manifest.verify(base, update)
    for key, reason in verdict.wrong.items():
        say(f"wrong: {key}: {reason}")
    for key in verdict.unlisted:
        say(f"not in the manifest: {key}")
    say(f"{verdict.whole} whole, {len(verdict.wrong)} wrong, {len(verdict.unlisted)} not in the manifest")
    if not verdict.good:
        raise typer.Exit(1)


@app.command()
def card(
    base: Base,
    systems: Annotated[
        list[str] | None, typer.Option(help="Systems, separated by commas; all there by default.")
    ] = None,
) -> None:
    """Write a card and a contact sheet for every system: equation, ranges, numerics, counts, rejections, errors."""
    from rdjepa.study import cards

    names = names_in(*systems) if systems else None
    with progress("cards") as update:
        paths = cards.write_cards(base, names, update)
    for path in paths:
        say(str(path))


@app.command()
def sample(
    base: Base,
    out: Annotated[Path, typer.Option(help="Directory for the sample.")],
    share: Annotated[float, typer.Option(help="Share of every split and regime, at least one of each.")] = 0.01,
) -> None:
    """Copy the first trajectories of every part of a dataset."""
    from rdjepa.study import dataset

    say(f"{len(dataset.sample(base, out, share))} trajectories in {out}")


@app.command()
@reads_data
def add(
    recordings: Data,
    name: Annotated[str, typer.Option(help="Name of the system that they become: letters, digits, - and _.")],
    out: Annotated[Path, typer.Option(help="Dataset directory; what is there stays.")] = Path("datasets"),
    grid: Annotated[
        int | None, typer.Option(min=1, help="Points per side to bring fields to; as they are by default.")
    ] = None,
    stride: Stride = "1",
    validation: Annotated[
        int, typer.Option(min=2, help="Of every so many trajectories the first is for diagnostics, not for training.")
    ] = 10,
    reading: Any = None,
) -> None:
    """Add recordings to a dataset as a system of their own, to pretrain on: rdjepa pretrain --systems NAME."""
    from rdjepa.data.recorded import add_recordings

    with progress("add") as update:
        added = add_recordings(
            list(recordings),
            name,
            out,
            grid=grid,
            stride=stride_of(stride),
            reading=reading,
            validation=validation,
            progress=update,
        )
    say(
        f"{added.pool} trajectories to pretrain on and {added.validation} for diagnostics in {out / name}; then: "
        f"rdjepa pretrain --data {out} --systems {name}"
    )
