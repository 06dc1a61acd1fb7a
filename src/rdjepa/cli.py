"""The command line: parsing only, each verb calls one function."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Few-trajectory forecasting of reaction-diffusion systems.")


@app.command()
def pretrain(
    preset: Annotated[str, typer.Option(help="Model size: paper, small or nano.")] = "nano",
    data: Annotated[Path, typer.Option(help="Directory of stored trajectories.")] = Path("datasets"),
    out: Annotated[Path, typer.Option(help="Run directory.")] = Path("runs/pretrain"),
    steps: Annotated[int | None, typer.Option(help="Optimiser steps.")] = None,
    precision: Annotated[str | None, typer.Option(help="float32 or bfloat16.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in --out.")] = False,
) -> None:
    """Pretrain an encoder and predictor on stored trajectories of the five source systems."""
    from rdjepa import api

    api.pretrain(preset, data, out, steps=steps, precision=precision, resuming=resume)


@app.command()
def dummy() -> None:
    """Placeholder."""


def main() -> None:
    """Entry point."""
    app()
