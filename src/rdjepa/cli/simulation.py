"""The commands systems, new-system, check-system and simulate."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from rdjepa.cli.console import console, progress, say
from rdjepa.cli.options import LAST_INDEX, REGIMES, SPLITS
from rdjepa.errors import ArgumentError, OutputError

if TYPE_CHECKING:
    from rdjepa.pde.system import System


def systems(name: Annotated[str | None, typer.Argument(help="Show one system in full.")] = None) -> None:
    """List the reaction-diffusion systems that can be simulated, or show one: equations, ranges, numerics."""
    from rdjepa import systems as known

    if name is not None:
        from rdjepa.systems.describe import describe

        say(describe(known.get(name)))
        return
    table = Table()
    for heading in ("name", "system", "test regimes", "coefficients"):
        table.add_column(heading)
    for each in map(known.get, known.every_name()):
        table.add_row(each.name, each.title, ", ".join(each.regimes), _coefficients(each))
    console.print(table)


def _coefficients(system: "System") -> str:
    kinds = [box.name for box in system.regime("id").boxes if box.name]
    return f"of {len(kinds)} kinds of equations" if kinds else ", ".join(c.name for c in system.coefficients)


def new_system(
    name: Annotated[str, typer.Argument(help="Name of the system: letters, digits, - and _.")],
    out: Annotated[Path | None, typer.Option(help="File to write; NAME.py, with _ for -, by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented file that defines a system, to be changed into one's own; it runs as it is."""
    from rdjepa import systems as known
    from rdjepa.io.atomic import write_bytes
    from rdjepa.systems.template import template

    path = Path(f"{name.replace('-', '_')}.py") if out is None else out
    content = template(name, str(path))
    if path.suffix != ".py":
        raise ArgumentError(f"expected a file name that ends in .py, got {path}; give it this ending")
    if name in known.every_name():
        raise ArgumentError(f"expected a name of its own, got {name!r}, which is taken; choose another")
    if path.exists() and not force:
        raise OutputError(f"expected no file at {path}, got one; choose another --out, or replace it with --force")
    write_bytes(path, content.encode())
    say(f"{path}: change it, then: rdjepa check-system {path}")


def check_system(
    name: Annotated[str, typer.Argument(help=".py file that defines SYSTEM, or the name of a system.")],
    draws: Annotated[
        int, typer.Option(min=1, max=100_000, help="Trajectories of each regime that are integrated.")
    ] = 3,
    seconds: Annotated[float, typer.Option(min=1.0, help="Time for draws, and again for comparisons.")] = 10.0,
) -> None:
    """Try a system before an hour is spent on it: stability, blow-up, screens, resolution; exit status 1 if useless."""
    from rdjepa import systems as known
    from rdjepa.pde.contract import check_system as check
    from rdjepa.pde.trial import trial

    system = known.get(name)
    check(system)
    found = trial(system, draws, seconds)
    numerics = system.numerics
    bound = "diffusion is exact" if math.isinf(found.limit) else f"{found.dt / found.limit:.0%} of {found.limit:.4g}"
    size = 8 * numerics.stored**2 * numerics.frames / 2**20
    say(
        f"{system.name}: the file, its kinetics, ranges, numerics and initial states are sound\n"
        f"step {found.dt:g}; diffusive limit: {bound}\n"
        f"a trajectory takes {found.steps:,} steps, about {found.seconds:.2g} s and {size:.1f} MiB"
    )
    if not math.isnan(found.half_step + found.double_grid):
        say(
            f"half the step changes the fields by {found.half_step:.2g}, a double grid by {found.double_grid:.2g} "
            f"(relative L2 at t = {found.until:.4g})"
        )
    if found.drawn:
        reasons = f" ({'; '.join(sorted(set(found.rejections)))})" if found.rejections else ""
        say(
            f"{found.drawn} draws: finite values up to {found.largest:.3g}, {len(found.rejections)} rejected by the "
            f"screens{reasons}",
        )
    else:
        say("no draw was integrated to its end; give more --seconds")
    for sentence in found.advice:
        say(f"advice: {sentence}")
    for sentence in found.failures:
        say(f"failed: {sentence}, in {name}")
    if found.failures:
        raise typer.Exit(1)


def simulate(
    name: Annotated[str, typer.Argument(help="System, one of those that `rdjepa systems` lists.")],
    count: Annotated[int, typer.Option(min=1, help="Number of trajectories.")] = 1,
    start: Annotated[int, typer.Option(min=0, max=LAST_INDEX, help="Index (seed) of the first one.")] = 0,
    split: Annotated[str, typer.Option(help=f"One of {', '.join(SPLITS)}.")] = "pool",
    regime: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(REGIMES)}: coefficients and initial fields as in pretraining, coefficients "
            "outside of these ranges, or initial fields of another kind."
        ),
    ] = "id",
    out: Annotated[Path, typer.Option(help="Dataset directory.")] = Path("datasets"),
) -> None:
    """Simulate trajectories of a system and store them as HDF5; those already there are kept."""
    from rdjepa import systems as known
    from rdjepa.data import manifest, store
    from rdjepa.data.build import build, require_space
    from rdjepa.data.trajectory import Key

    system = known.get(name)
    system.regime(regime)
    if split not in SPLITS:
        raise ArgumentError(f"expected a split, got {split!r}; known: {', '.join(SPLITS)}")
    require_space(out, system, Key(system.name, split, regime, start), count)
    manifest.claim(out, [system])  # data of another equation or version of it are refused here
    keys = [Key(system.name, split, regime, start + number) for number in range(count)]
    with progress(f"simulate {name}") as update:
        built = build(out, keys, sources={system.name: name}, progress=update)
    say(f"{built.made} made, {built.kept} kept, in {store.path_of(out, keys[0]).parent}")
    for key, reason in built.failed.items():
        say(f"failed: {key}: {reason}")
    if built.failed:
        raise typer.Exit(1)
