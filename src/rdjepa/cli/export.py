"""The command export."""

from pathlib import Path
from typing import Annotated

import typer

from rdjepa.cli.console import say
from rdjepa.cli.options import EXPORTS
from rdjepa.cli.outputs import refuse_overwriting


def export(
    forecaster: Annotated[Path, typer.Argument(help="File that `rdjepa adapt` wrote.")],
    out: Annotated[Path | None, typer.Option(help="File to write; FORECASTER.pt2 or .onnx by default.")] = None,
    format: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(EXPORTS)}; by the ending of --out, or torch, by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a forecaster as a program that runs without rdjepa, and check that it gives the same numbers."""
    from rdjepa.adaptation.export import ENDINGS, TOLERANCE
    from rdjepa.adaptation.export import export as write
    from rdjepa.adaptation.saving import load_forecaster
    from rdjepa.checks import among

    ending = ENDINGS[among(format or EXPORTS[0], EXPORTS, "a format")]
    path = forecaster.parent / f"{forecaster.stem}{ending}" if out is None else out
    adapted = load_forecaster(forecaster)
    refuse_overwriting(path, [forecaster], kind="program", same_kind=lambda _: False, force=force)
    written = write(adapted, path, format, force)
    say(
        f"{written.path}: context (B, 4, H, W, 2) in physical units to forecast (B, 5, H, W, 2); it differs from "
        f"rdjepa forecast by up to {written.difference:.1e} standard deviations ({TOLERANCE:g} allowed)",
    )
