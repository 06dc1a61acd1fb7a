"""The command learning-curve."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rdjepa.cli.console import console, error_text, progress, say, table
from rdjepa.cli.options import (
    BASES,
    CURVE_DRAWS,
    CURVE_UPDATES,
    MODEL,
    Data,
    Device,
    Force,
    Resample,
    Seed,
    Start,
    Stride,
    reads_data,
    stride_of,
)
from rdjepa.cli.outputs import refuse_overwriting, require_ending

FIGURE = ".png"


@reads_data
def learning_curve(
    data: Data,
    model: Start = MODEL,
    out: Annotated[
        Path, typer.Option(help="CSV file for the rows; the figure goes beside it, with the ending .png.")
    ] = Path("learning-curve.csv"),
    steps: Annotated[int, typer.Option(min=1, help="Updates of every adaptation, the same for every K.")] = (
        CURVE_UPDATES
    ),
    draws: Annotated[
        int, typer.Option(min=1, max=1_000, help="Draws of what is left out, and of the order of the others.")
    ] = CURVE_DRAWS,
    seed: Seed = 777,
    base: Annotated[str, typer.Option(help=f"As for adapt: one of {', '.join(BASES)}.")] = "auto",
    resample: Resample = False,
    stride: Stride = "1",
    reading: Any = None,
    force: Force = False,
    device: Device = "auto",
) -> None:
    """Measure errors for K = 1, 2, 5, ... trajectories by leaving others out, and say what to record next."""
    from rdjepa import api
    from rdjepa.evaluation.curve_file import is_curve

    figure = out.parent / f"{out.stem}{FIGURE}"
    ours = is_curve(out)
    refuse_overwriting(out, [*data, Path(model)], kind="learning curve", same_kind=is_curve, force=force)
    require_ending(out, ".csv")
    refuse_overwriting(figure, [*data, Path(model)], kind="figure", same_kind=lambda _: ours, force=force)
    with progress("learning curve") as update:

        def show(done: int, total: int, text: str) -> None:
            say(text)
            update(done, total)

        curve = api.learning_curve(
            data,
            model=model,
            steps=steps,
            draws=draws,
            seed=seed,
            base=base,
            resample=resample,
            reading=reading,
            stride=stride_of(stride),
            device=device,
            out=out,
            force=force,
            progress=show,
        )
    console.print(_table(curve))
    for sentence in curve.notes:
        say(f"note: {sentence}")
    say(curve.advice())
    say(f"rows in {out}, figure in {curve.draw(figure)}")


def _table(curve: Any) -> Any:
    """Return a row per forecaster, a column per K: mean over draws and horizons, smallest to largest draw."""
    from rdjepa.forecasters import registry

    counts = (f"K = {k}" for k in curve.counts)
    made = table("relative L2 error, mean over h (smallest to largest draw)", "forecaster", *counts)
    for name in curve.names:
        found = [curve.summary(name, k) or curve.summary(name, 0) for k in curve.counts]
        short = registry.get(name).short if name in registry.names() else name
        made.add_row(short, *map(_cell, found))
    return made


def _cell(found: Any) -> str:
    bars = f" ({error_text(found.low)} to {error_text(found.high)})" if found.low < found.high else ""
    return f"{error_text(found.mean)}{bars}"
