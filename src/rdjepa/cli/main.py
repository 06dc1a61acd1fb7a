"""The command line: parsing and printing only, each verb calls one function."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

# Threads that wait without spinning: on a machine that is busy with other work spinning costs most of the time.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import typer
from rich.table import Table

import rdjepa
from rdjepa import api
from rdjepa.cli import data as cli_data
from rdjepa.cli import pretrain as cli_pretrain
from rdjepa.cli import study as cli_study
from rdjepa.cli.console import console, error_table, progress
from rdjepa.cli.outputs import is_forecast, is_forecaster, is_rows, refuse_overwriting
from rdjepa.cli.pretrain import Device
from rdjepa.data import readers, store
from rdjepa.data.build import build as build_trajectories
from rdjepa.data.trajectory import REGIMES, SPLITS, Key
from rdjepa.demo import DemoConfig
from rdjepa.demo import run as run_demo
from rdjepa.errors import DataError
from rdjepa.evaluation.aggregate import per_horizon
from rdjepa.forecasters.base import CONTEXT
from rdjepa.forecasters.persistence import extrapolation, persistence
from rdjepa.io import checkpoint
from rdjepa.io.atomic import write_arrays, write_bytes
from rdjepa.models.rdjepa import PRESETS, build, parameter_count
from rdjepa.study.leaks import of_checkpoint
from rdjepa.systems.describe import describe

INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Forecast a reaction-diffusion system from one, five or ten trajectories, with a model pretrained on others.",
)
app.add_typer(cli_data.app, name="data")
app.command()(cli_pretrain.pretrain)
app.command()(cli_pretrain.probe)
app.add_typer(cli_study.app, name="study")

Seed = Annotated[int, typer.Option(help="Seed of fresh weights and of the order of training windows.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file in --out that another command made.")]
Data = Annotated[
    list[Path],
    typer.Argument(help="Trajectories: HDF5 (ours, The Well, PDEBench), .npz or .npy files, or directories of ours."),
]


@app.command()
def systems(name: Annotated[str | None, typer.Argument(help="Show one system in full.")] = None) -> None:
    """List the reaction-diffusion systems that can be simulated, or show one: equations, ranges, numerics."""
    if name is not None:
        console.print(describe(rdjepa.systems.get(name)), markup=False)
        return
    table = Table()
    for heading in ("name", "system", "test regimes", "coefficients"):
        table.add_column(heading)
    for each in map(rdjepa.systems.get, (*rdjepa.systems.names(), *rdjepa.systems.wall_names())):
        table.add_row(each.name, each.title, ", ".join(each.regimes), ", ".join(each.draw(0)))
    console.print(table)


@app.command()
def simulate(
    name: Annotated[str, typer.Argument(help="System, one of those that `rdjepa systems` lists.")],
    count: Annotated[int, typer.Option(min=1, help="Number of trajectories.")] = 1,
    start: Annotated[int, typer.Option(min=0, help="Index (seed) of the first one.")] = 0,
    split: Annotated[str, typer.Option(help=f"One of {', '.join(SPLITS)}.")] = "pool",
    regime: Annotated[str, typer.Option(help=f"One of {', '.join(REGIMES)}.")] = "id",
    out: Annotated[Path, typer.Option(help="Dataset directory.")] = Path("datasets"),
) -> None:
    """Simulate trajectories of a system and store them as HDF5; those already there are kept."""
    system = rdjepa.systems.get(name)
    system.regime(regime)
    keys = [Key(system.name, split, regime, start + number) for number in range(count)]
    with progress(f"simulate {name}") as update:
        built = build_trajectories(out, keys, sources={system.name: name}, progress=update)
    console.print(f"{built.made} made, {built.kept} kept, in {store.path_of(out, keys[0]).parent}")
    for key, reason in built.failed.items():
        console.print(f"failed: {key}: {reason}", markup=False)
    if built.failed:
        raise typer.Exit(1)


@app.command()
def adapt(
    data: Data,
    model: Annotated[str, typer.Option(help="Shipped checkpoint or directory of one.")] = "nano",
    out: Annotated[Path, typer.Option(help="File for the forecaster.")] = Path("forecaster.safetensors"),
    steps: Annotated[int | None, typer.Option(min=1, help="Updates; the preset's own by default.")] = None,
    seed: Seed = 777,
    base: Annotated[
        str, typer.Option(help="none, or linear: correct a fitted linear forecast (slow fields).")
    ] = "none",
    force: Force = False,
    device: Device = "auto",
) -> None:
    """Adapt a pretrained model to a few trajectories of one system."""
    refuse_overwriting(out, [*data, Path(model)], kind="forecaster", same_kind=is_forecaster, force=force)
    trajectories = _read(data)
    console.print(f"{len(trajectories)} trajectories of shape {trajectories[0].fields.shape}")
    with progress("adapt") as update:
        forecaster = api.adapt(model, trajectories, steps=steps, seed=seed, base=base, device=device, progress=update)
    console.print(f"loss {forecaster.losses[0]:.4f} to {forecaster.losses[-1]:.4f}; saved {forecaster.save(out)}")


@app.command()
def evaluate(
    forecaster: Annotated[Path, typer.Argument(help="File that `rdjepa adapt` wrote.")],
    data: Data,
    out: Annotated[Path | None, typer.Option(help="Write every row as JSON lines.")] = None,
    force: Force = False,
) -> None:
    """Measure a forecaster on trajectories it has not seen, beside the two forecasts that cost nothing."""
    if out is not None:
        refuse_overwriting(out, [forecaster, *data], kind="rows", same_kind=is_rows, force=force)
    trajectories = _read(data)
    rows = {}
    adapted = rdjepa.load_forecaster(forecaster)
    for name, forecast in (("RD-JEPA", adapted), ("persistence", persistence), ("extrapolation", extrapolation)):
        with progress(f"evaluate {name}") as update:
            rows[name] = api.evaluate(forecast, trajectories, progress=update)
    names = ("relative_l2", "gradient_l1")
    errors = {name: {metric: per_horizon(part, metric) for metric in names} for name, part in rows.items()}
    for metric in names:
        console.print(error_table(metric, errors, metric))
    means = {name: sum(found["relative_l2"].values()) for name, found in errors.items()}
    if means["extrapolation"] < means["RD-JEPA"] and adapted.base != "linear":
        console.print("continuing the last change is better here; adapt again with --base linear")
    if out is not None:
        lines = [json.dumps({"forecaster": name} | vars(row)) for name, part in rows.items() for row in part]
        write_bytes(out, ("\n".join(lines) + "\n").encode())
        console.print(f"rows in {out}")


@app.command()
def forecast(
    forecaster: Annotated[Path, typer.Argument(help="File that `rdjepa adapt` wrote.")],
    data: Data,
    out: Annotated[Path, typer.Option(help="File for the forecast (npz: context, forecast).")] = Path("forecast.npz"),
    start: Annotated[int | None, typer.Option(min=0, help="First context frame; the last four by default.")] = None,
    force: Force = False,
) -> None:
    """Forecast the five frames after four given ones of a trajectory."""
    refuse_overwriting(out, [forecaster, *data], kind="forecast", same_kind=is_forecast, force=force)
    fields = _read(data)[0].fields
    first = len(fields) - CONTEXT if start is None else start
    if first + CONTEXT > len(fields):
        raise DataError(f"expected a start up to {len(fields) - CONTEXT}, got {first}; the trajectory ends there")
    context = fields[first : first + CONTEXT]
    future = rdjepa.load_forecaster(forecaster).forecast(context)
    write_arrays(out, context=context, forecast=future)
    console.print(f"frames {first + CONTEXT} to {first + CONTEXT + len(future) - 1} in {out}, shape {future.shape}")


@app.command()
def demo(
    system: Annotated[str, typer.Option(help="System to forecast.")] = DemoConfig.system,
    model: Annotated[str, typer.Option(help="Shipped checkpoint or directory of one.")] = DemoConfig.model,
    k: Annotated[int, typer.Option(min=1, help="Support trajectories.")] = DemoConfig.k,
    updates: Annotated[int, typer.Option(min=1, help="Training updates of both models.")] = DemoConfig.updates,
    test: Annotated[int, typer.Option(min=1, help="Unseen trajectories to evaluate on.")] = DemoConfig.test,
    support_seed: Annotated[int, typer.Option(help="Which support set.")] = DemoConfig.support_seed,
    out: Annotated[Path, typer.Option(help="Directory for figure, animation, result and data.")] = Path("demo"),
    device: Device = "auto",
) -> None:
    """Forecast an equation the model has never seen, from one trajectory, beside two plain answers."""
    config = DemoConfig(system, model, k, updates, test, support_seed, device=device)
    rdjepa.systems.get(system)
    out.mkdir(parents=True, exist_ok=True)
    result = run_demo(config, out, progress)
    console.print(
        f"{system}, K = {k}, {updates} updates, {test} unseen trajectories x {result['windows_per_trajectory']} windows"
    )
    for metric, title in (("relative_l2", "relative L2 error"), ("gradient_l1", "gradient L1 error")):
        console.print(error_table(title, result["errors"], metric))
    console.print(f"figure {out / 'forecast.png'}, animation {out / 'forecast.gif'}, result {out / 'result.json'}")


@app.command()
def info() -> None:
    """Show versions, device, model presets and shipped checkpoints."""
    console.print(", ".join(f"{name} {version}" for name, version in api.software().items()))
    table = Table(title="presets (parameters)", title_justify="left")
    for heading in ("preset", "encoder", "predictor", "decoder", "trained in adaptation"):
        table.add_column(heading, justify="left" if heading == "preset" else "right")
    for name in PRESETS:
        model = build(name)
        parts = [parameter_count(part) for part in (model.encoder, model.predictor, model.decoder)]
        table.add_row(name, *(f"{n:,}" for n in parts), f"{parts[1] + parts[2]:,}")
    console.print(table)
    for name, directory in checkpoint.shipped().items():
        _, record = checkpoint.read_config(name)
        run = record["pretraining"]
        console.print(
            f"checkpoint {name}: {record['sha256'][:12]}, {run['steps']} steps of batch {run['config']['batch']} on "
            f"{sum(run['trajectories'].values())} pool trajectories of {', '.join(run['trajectories'])}; {directory}"
        )
        mark, found = of_checkpoint(name)
        verdict = "\n".join(found) or "no held-out system, no validation or test trajectory"
        console.print(f"its data: {mark[:12]}, {verdict}", markup=False)


def _read(paths: list[Path]) -> list[rdjepa.Trajectory]:
    """All trajectories of several files or directories."""
    return [trajectory for path in paths for trajectory in readers.load(path)]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, the process's own when None; bad input ends with a sentence and status 2, interrupts with 130."""
    try:
        app(None if arguments is None else list(arguments))
    except (ValueError, OSError, ArithmeticError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except SystemExit as stopped:
        if stopped.code == INTERRUPTED:
            print("interrupted; what was finished is kept, run the same command again to go on", file=sys.stderr)
        raise
    raise SystemExit(0)
