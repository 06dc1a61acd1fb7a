"""The commands systems and simulate."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rdjepa.cli.console import console, progress
from rdjepa.cli.options import LAST_INDEX, REGIMES, SPLITS


def systems(name: Annotated[str | None, typer.Argument(help="Show one system in full.")] = None) -> None:
    """List the reaction-diffusion systems that can be simulated, or show one: equations, ranges, numerics."""
    from rdjepa import systems as known

    if name is not None:
        from rdjepa.systems.describe import describe

        console.print(describe(known.get(name)), markup=False)
        return
    table = Table()
    for heading in ("name", "system", "test regimes", "coefficients"):
        table.add_column(heading)
    for each in map(known.get, (*known.names(), *known.wall_names())):
        table.add_row(each.name, each.title, ", ".join(each.regimes), ", ".join(c.name for c in each.coefficients))
    console.print(table)


def simulate(
    name: Annotated[str, typer.Argument(help="System, one of those that `rdjepa systems` lists.")],
    count: Annotated[int, typer.Option(min=1, help="Number of trajectories.")] = 1,
    start: Annotated[int, typer.Option(min=0, max=LAST_INDEX, help="Index (seed) of the first one.")] = 0,
    split: Annotated[str, typer.Option(help=f"One of {', '.join(SPLITS)}.")] = "pool",
    regime: Annotated[str, typer.Option(help=f"One of {', '.join(REGIMES)}.")] = "id",
    out: Annotated[Path, typer.Option(help="Dataset directory.")] = Path("datasets"),
) -> None:
    """Simulate trajectories of a system and store them as HDF5; those already there are kept."""
    from rdjepa import systems as known
    from rdjepa.data import store
    from rdjepa.data.build import build, require_space
    from rdjepa.data.trajectory import Key

    system = known.get(name)
    system.regime(regime)
    require_space(out, system, count)
    keys = [Key(system.name, split, regime, start + number) for number in range(count)]
    with progress(f"simulate {name}") as update:
        built = build(out, keys, sources={system.name: name}, progress=update)
    console.print(f"{built.made} made, {built.kept} kept, in {store.path_of(out, keys[0]).parent}")
    for key, reason in built.failed.items():
        console.print(f"failed: {key}: {reason}", markup=False)
    if built.failed:
        raise typer.Exit(1)
