"""The commands adapt, evaluate and forecast."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdjepa.cli.console import console, error_table, progress, say
from rdjepa.cli.options import (
    BASES,
    CONTEXT,
    DECODERS,
    ENCODERS,
    HORIZONS,
    METRICS,
    MODEL,
    Borders,
    Context,
    Data,
    Device,
    Force,
    Resample,
    Seed,
    Start,
    Stride,
    Tile,
    reads_data,
    share_of,
    stride_of,
)
from rdjepa.cli.outlook import (
    say_better_base,
    say_calibration,
    say_choice,
    say_growth,
    say_measured,
    say_retention,
    say_simpler,
    say_spread,
    say_width,
    title_of,
    warn_of_novelty,
)
from rdjepa.cli.outputs import refuse_overwriting, require_ending
from rdjepa.errors import ArgumentError, DataError
from rdjepa.io.atomic import write_arrays, write_bytes
from rdjepa.io.kinds import is_forecast, is_forecaster, is_forecasts, is_rows

if TYPE_CHECKING:
    from rdjepa.adaptation.forecaster import Forecaster
    from rdjepa.data.readers import Reading


File = Annotated[Path, typer.Argument(help="File that `rdjepa adapt` wrote.")]


@reads_data
def adapt(
    data: Data,
    model: Start = MODEL,
    out: Annotated[Path, typer.Option(help="File for the forecaster.")] = Path("forecaster.safetensors"),
    steps: Annotated[
        int | None,
        typer.Option(min=0, help="Updates; by default 100 or the preset's own, as --retain decides; 0 is zero-shot."),
    ] = None,
    seed: Seed = 777,
    base: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(BASES)}; anchored corrects the network's forecast by what continues its context; "
            "linear corrects a fitted linear forecast (slow fields); auto combines the network's with simple "
            "forecasts, where all its weights were pretrained and some update is made."
        ),
    ] = "auto",
    calibrate: Annotated[
        list[Path] | None,
        typer.Option(
            help="Other trajectories of the same kind, to learn the width of intervals from, and whether the network "
            "is better alone (base auto); may be repeated."
        ),
    ] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(help="Instead: share of the data to keep for that, the last trajectories, or of one its end."),
    ] = None,
    borders: Borders = None,
    encoder: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(ENCODERS)}: frozen as in the paper, or tuned with the predictor's learning rate; "
            "auto tunes it with five trajectories or more (pretrained decoder, no linear base)."
        ),
    ] = "auto",
    decoder: Annotated[
        str,
        typer.Option(
            help=f"Weights that the decoder starts from, one of {', '.join(DECODERS)}: fresh ones, as in the paper, or "
            "the model's; auto takes these where it has them, and the base is not linear."
        ),
    ] = "auto",
    rehearse: Annotated[
        int,
        typer.Option(
            min=0, help="So many trajectories of each system of the pretraining are learned too, simulated again."
        ),
    ] = 0,
    rehearse_data: Annotated[
        Path | None, typer.Option(help="Dataset to read these from instead, as recordings have to be.")
    ] = None,
    retain: Annotated[
        str,
        typer.Option(
            help="Share of the weights before adaptation that is mixed into the result (pretrained decoder); auto: "
            "half, after 100 updates, where it forecasts the data well before any and they are fewer than five; else 0."
        ),
    ] = "auto",
    augment: Annotated[
        bool | None,
        typer.Option(
            help="Learn turned and mirrored images too (a system alike in all directions); by default those of fewer "
            "than five trajectories.",
        ),
    ] = None,
    resample: Resample = False,
    tile: Tile = False,
    stride: Stride = "1",
    reading: Any = None,
    force: Force = False,
    device: Device = "auto",
) -> None:
    """Adapt a pretrained model to a few trajectories of one system."""
    from rdjepa import api
    from rdjepa.forecasters.base import ForecastModel

    refuse_overwriting(
        out, [*data, *(calibrate or []), Path(model)], kind="forecaster", same_kind=is_forecaster, force=force
    )
    pace, share = stride_of(stride), share_of(retain)
    if rehearse_data is not None and not rehearse:
        raise ArgumentError("expected --rehearse with --rehearse-data, got none; say how many trajectories")
    with progress("adapt") as update:
        # `api.adapt` reads the data itself, after it has checked the cheaper arguments
        forecaster = api.adapt(
            model,
            data,
            steps=steps,
            seed=seed,
            base=base,
            resample=resample,
            tile=tile,
            reading=reading,
            stride=pace,
            calibrate=calibrate or None,
            hold_out=hold_out,
            borders=borders,
            encoder=encoder,
            decoder=decoder,
            rehearse=partial(api.rehearsal, model, rehearse, rehearse_data, progress=update) if rehearse else (),
            retain=share,
            augment="auto" if augment is None else augment,
            device=device,
            progress=update,
        )
    count, losses = len(forecaster.record["frames"]), forecaster.losses
    fitted = type(forecaster.model).fitted_to is not ForecastModel.fitted_to
    learned = "no update; fitted to them in closed form" if fitted else "no update, only their field statistics"
    if losses:
        learned = f"loss {losses[0]:.4f} in the first of {len(losses)} updates, {losses[-1]:.4f} in the last"
    verb = "replaced" if out.exists() else "saved"
    forecaster.save(out, force=force)
    say(f"{count} {'trajectory' if count == 1 else 'trajectories'}, {learned}; {verb} {out}")
    say_retention(forecaster)
    say_choice(forecaster)
    say_calibration(forecaster)


@reads_data
def evaluate(
    forecaster: File,
    data: Data,
    metric: Annotated[list[str] | None, typer.Option(help=f"May be repeated. [default: {', '.join(METRICS)}]")] = None,
    out: Annotated[Path | None, typer.Option(help="Write every row as JSON lines.")] = None,
    context: Context = CONTEXT,
    resample: Resample = False,
    reading: Any = None,
    force: Force = False,
    device: Device = "auto",
) -> None:
    """Measure a forecaster on unseen trajectories, beside what it is made of, persistence and extrapolation."""
    from rdjepa import api
    from rdjepa.adaptation.saving import load_forecaster
    from rdjepa.evaluation.aggregate import per_horizon

    if out is not None:
        refuse_overwriting(out, [forecaster, *data], kind="rows", same_kind=is_rows, force=force)
        require_ending(out, ".jsonl", ".json")
    adapted = load_forecaster(forecaster, device)
    _note_of_context(adapted, context)
    metrics = list(dict.fromkeys(metric or METRICS))
    own = adapted.model.name
    with progress("evaluate") as update:
        rows = api.compare(
            adapted, data, metrics=metrics, context=context, resample=resample, reading=reading, progress=update
        )
    if out is not None:
        lines = [json.dumps({"forecaster": name} | vars(row)) for name, part in rows.items() for row in part]
        write_bytes(out, ("\n".join(lines) + "\n").encode())
    errors = {name: {each: per_horizon(part, each) for each in metrics} for name, part in rows.items()}
    shown = {title_of(name, adapted): found for name, found in errors.items()}
    for each in metrics:
        console.print(error_table(each, shown, each))
    first = {name: sum(found[metrics[0]].values()) for name, found in errors.items()}
    say_spread(rows[own], metrics[0])
    say_measured(adapted)
    say_better_base(adapted, first[own], first["extrapolation"])
    say_simpler(first, own)
    if out is not None:
        say(f"rows in {out}")


@reads_data
def forecast(
    forecaster: File,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the forecast, by default forecast.npz; with --all HDF5, by default forecasts.h5."),
    ] = None,
    start: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="First of the newest four context frames, of those that are taken at the forecaster's stride; the "
            "last four by default.",
        ),
    ] = None,
    context: Context = CONTEXT,
    frames: Annotated[
        int, typer.Option(min=1, help="Frames to forecast; beyond five those that were forecast are fed back.")
    ] = HORIZONS,
    level: Annotated[
        float | None,
        typer.Option(help="Write a lower and an upper bound that hold this share of the points, as 0.9."),
    ] = None,
    back: Annotated[
        bool,
        typer.Option("--back", help="As --resample; then bring context and forecast back to the grid of the data."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="From every four frames of every trajectory, into one HDF5 file.")
    ] = False,
    resample: Resample = False,
    reading: Any = None,
    force: Force = False,
    device: Device = "auto",
) -> None:
    """Forecast the next five frames, or more, from four or more of one trajectory, or from all windows of many."""
    import numpy as np

    from rdjepa.adaptation.differences import grid_to
    from rdjepa.adaptation.saving import load_forecaster
    from rdjepa.data import readers
    from rdjepa.data.regrid import Regridding, has_walls

    _require_together(every=every, start=start, frames=frames, level=level, back=back, context=context)
    out = out or Path("forecasts.h5" if every else "forecast.npz")
    kind, same_kind = ("forecasts", is_forecasts) if every else ("forecast", is_forecast)
    refuse_overwriting(out, [forecaster, *data], kind=kind, same_kind=same_kind, force=force)
    require_ending(out, *((".h5", ".hdf5") if every else (".npz",)))
    adapted = load_forecaster(forecaster, device)
    grid = grid_to(adapted.model.grid, resample or back)
    reading = adapted.reading(reading)
    if every:
        _forecast_all(adapted, data, out, grid, reading, force)
        return
    trajectories = readers.load(data, limit=2, minimum_frames=CONTEXT, grid=grid, reading=reading)
    if len(trajectories) > 1:
        given = ", ".join(map(str, data))
        raise DataError(f"expected one trajectory to forecast, got several in {given}; name one, as --index 0")
    adapted.require_fitting(trajectories)
    fields = trajectories[0].fields
    first = len(fields) - CONTEXT if start is None else start
    taken = f", counted at a stride of {reading.step}," if reading.step > 1 else ""
    if first + CONTEXT > len(fields):
        raise DataError(
            f"expected a start up to {len(fields) - CONTEXT}, got {first}; the trajectory of {len(fields)} frames"
            f"{taken} ends there"
        )
    end, times = first + CONTEXT, adapted.times_of(trajectories[0])
    known = fields[max(0, end - context) : end]
    _note_of_context(adapted, context)
    edges: list[np.ndarray] = []
    if level is None:
        future = adapted.rollout(known, frames) if frames > HORIZONS else adapted.forecast(known)[:frames]
    else:
        future, *edges = (part[:frames] for part in adapted.interval(known, level))
    warn_of_novelty(adapted, known)
    newest, reference, made = fields[first:end], fields[end:], future
    if back and grid is not None:
        shape = next(readers.recordings(data, reading)).grid
        way = Regridding(shape, grid, has_walls(trajectories[0], reading.boundary))
        newest, future = way.back(newest), way.back(future)
    later = times[end - 1] + (times[1] - times[0]) * np.arange(1, frames + 1)
    bounds = {} if level is None else dict(zip(("lower", "upper"), edges, strict=True)) | {"level": level}
    write_arrays(out, context=newest, forecast=future, times=later, **bounds)
    last = end + len(future) - 1
    say(f"frames {end} to {last}{taken} in {out}, shape {future.shape}")
    say_measured(adapted)
    if level is not None:
        say_width(adapted, *edges)
    if frames > HORIZONS:
        say_growth(adapted, made, reference, known[-1])
        if adapted.stable_frames(known, made) == frames:
            say(f"stable: all {frames} frames are finite and near the range of what was adapted to")


def _forecast_all(
    adapted: "Forecaster", data: list[Path], out: Path, grid: int | None, reading: "Reading", force: bool
) -> None:
    """Forecast all windows of trajectories, one trajectory at a time, into a file."""
    from rdjepa.adaptation.stream import forecast_all
    from rdjepa.data import readers

    names: list[str] = []
    for each in readers.recordings(data, reading):
        names += [each.place] if each.count == 1 else [f"{each.place}, {each.position(i)}" for i in range(each.count)]
    trajectories = readers.trajectories(data, minimum_frames=CONTEXT, grid=grid, reading=reading)
    with progress("forecast") as update:

        def show(number: int, _: int, name: str) -> None:
            update(number, len(names), name)

        done = forecast_all(adapted, trajectories, out, names=names, force=force, progress=show)
    say(f"{done.forecasts} forecasts of {done.trajectories} trajectories in {out}")


def _note_of_context(adapted: "Forecaster", context: int) -> None:
    """Say where frames beyond those that a forecaster makes use of are given."""
    if context > adapted.model.longest:
        say(f"the newest {adapted.model.longest} of {context} frames are made use of")


def _require_together(
    *, every: bool, start: int | None, frames: int, level: float | None, back: bool, context: int
) -> None:
    """Refuse options of a forecast that exclude each other.

    Raises:
        ArgumentError: they do.
    """
    if every and (start is not None or back or frames != HORIZONS or level is not None or context != CONTEXT):
        raise ArgumentError(
            "expected --all alone, got it with --start, --context, --back, --frames or --level; leave one out"
        )
    if level is not None and (frames > HORIZONS or back or context > CONTEXT):
        got = "--back" if back else f"{frames} frames" if frames > HORIZONS else f"a context of {context}"
        raise ArgumentError(
            f"expected --level with up to {HORIZONS} frames from {CONTEXT} on the grid of the model, which are "
            f"calibrated, got it with {got}; leave one out"
        )
