"""The command view."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rdjepa.cli.console import say
from rdjepa.cli.options import Device, Force, Resample, reads_data
from rdjepa.cli.outputs import refuse_overwriting
from rdjepa.errors import ArgumentError
from rdjepa.io.kinds import is_forecaster


@reads_data
def view(
    files: Annotated[
        list[Path],
        typer.Argument(help="Trajectories, and before them perhaps a file that `rdjepa adapt` wrote."),
    ],
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("view.html"),
    resample: Resample = False,
    reading: Any = None,
    force: Force = False,
    device: Device = "auto",
) -> None:
    """Write one page for the browser that plays trajectories and their forecasts; it needs no network."""
    from rdjepa.adaptation.differences import grid_to
    from rdjepa.adaptation.saving import load_forecaster
    from rdjepa.data import readers
    from rdjepa.data.windows import FORECASTING
    from rdjepa.evaluation.view import view as write
    from rdjepa.viz.page import is_page

    refuse_overwriting(out, files, kind="page", same_kind=is_page, force=force)
    if out.suffix.lower() not in ("", ".html", ".htm"):
        raise ArgumentError(f"expected a file ending on .html for a page, got {out}; name another file")
    adapted = load_forecaster(files[0], device) if files[0].is_file() and is_forecaster(files[0]) else None
    data = files[1:] if adapted else files
    if resample and not adapted:
        raise ArgumentError(
            "expected a forecaster before the trajectories, to whose grid they are resampled, got none; name one, or "
            "leave --resample out"
        )
    if not data:
        raise ArgumentError(f"expected trajectories after the forecaster {files[0]}, got none; name some to forecast")
    trajectories = readers.load(
        data,
        minimum_frames=FORECASTING.length if adapted else 2,  # a forecast is of five frames, and is played too
        grid=grid_to(adapted.model.grid, resample) if adapted else None,
        reading=adapted.reading(reading) if adapted else reading,
    )
    if adapted:
        adapted.require_fitting(trajectories)
    path = write(
        trajectories,
        out,
        adapted.forecast if adapted else None,
        title=", ".join(each.name for each in files),
        losses=adapted.losses if adapted else (),
    )
    say(f"{path}, {path.stat().st_size / 2**20:.1f} MiB: open it in a browser")
