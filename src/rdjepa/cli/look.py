"""The command first-look."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rdjepa.cli.console import console, error_table, progress, say
from rdjepa.cli.options import (
    BASES,
    LOOK_LEVEL,
    LOOK_SHARE,
    LOOK_UPDATES,
    MODEL,
    Data,
    Device,
    Force,
    Seed,
    Start,
    reads_data,
)
from rdjepa.cli.outlook import (
    say_calibration,
    say_choice,
    say_measured,
    say_simpler,
    say_width,
    title_of,
    warn_of_novelty,
)
from rdjepa.cli.outputs import refuse_overwriting
from rdjepa.io.atomic import write_arrays
from rdjepa.io.kinds import is_forecast, is_forecaster

FORECASTER, FORECAST, FIGURE = "forecaster.safetensors", "forecast.npz", "forecast.png"


@reads_data
def first_look(
    data: Data,
    model: Start = MODEL,
    out: Annotated[Path, typer.Option(help="Directory for forecaster, forecast and figure.")] = Path("first-look"),
    steps: Annotated[int, typer.Option(min=1, help="Updates; more make a better forecaster.")] = LOOK_UPDATES,
    level: Annotated[float, typer.Option(help="Share of the points that the interval is to hold.")] = LOOK_LEVEL,
    hold_out: Annotated[
        float, typer.Option(help="Share of the data that is not adapted to: the last trajectories, or of one its end.")
    ] = LOOK_SHARE,
    base: Annotated[str, typer.Option(help=f"As for adapt: one of {', '.join(BASES)}.")] = "auto",
    seed: Seed = 777,
    reading: Any = None,
    force: Force = False,
    device: Device = "auto",
) -> None:
    """Go from a file to a forecast in one step: adapt to a part, measure on the rest, forecast beyond the end."""
    from rdjepa import api

    forecaster, forecast, figure = out / FORECASTER, out / FORECAST, out / FIGURE
    inputs = [*data, Path(model)]
    ours = is_forecaster(forecaster)
    refuse_overwriting(forecaster, inputs, kind="forecaster", same_kind=is_forecaster, force=force)
    refuse_overwriting(forecast, inputs, kind="forecast", same_kind=is_forecast, force=force)
    refuse_overwriting(figure, inputs, kind="figure", same_kind=lambda _: ours, force=force)
    with progress("adapt") as update:
        look = api.first_look(
            data,
            model=model,
            steps=steps,
            level=level,
            hold_out=hold_out,
            base=base,
            seed=seed,
            reading=reading,
            device=device,
            progress=update,
        )
    look.forecaster.save(forecaster, force=force)
    bounds = {"lower": look.future.lower, "upper": look.future.upper, "level": look.level}
    write_arrays(forecast, context=look.context, forecast=look.future.forecast, times=look.times, **bounds)
    look.draw().save(figure)
    named = {title_of(name, look.forecaster): {"relative_l2": dict(errors)} for name, errors in look.errors.items()}
    console.print(error_table("relative_l2 on what was held out", named, "relative_l2"))
    say_choice(look.forecaster)
    say_simpler(
        {name: sum(errors.values()) / len(errors) for name, errors in look.errors.items()}, look.forecaster.model.name
    )
    say_calibration(look.forecaster)
    say_width(look.forecaster, look.future.lower, look.future.upper)
    warn_of_novelty(look.forecaster, look.context)
    wide = f"{100 * look.level:g}% intervals"
    say_measured(look.forecaster)
    say(
        f"forecaster in {forecaster}; the five frames after the last trajectory, with {wide}, in {forecast}; "
        f"figure {figure}"
    )
