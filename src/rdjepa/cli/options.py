"""Options that several commands share, and the names that their help lists.

The names are repeated here because the modules that define them import torch or pandas, which would slow down `--help`.
A test compares each with its definition.
"""

from pathlib import Path
from typing import Annotated

import typer

from rdjepa.errors import ArgumentError

SPLITS = ("pool", "validation", "test")
REGIMES = ("id", "coeff-ood", "ic-ood")
PRESETS = ("paper", "small", "nano")
BASES = ("none", "linear")
COMPILE_MODES = ("no", "yes", "graphs")
EXPORTS = ("torch", "onnx")
FRAME_PLACES = ("memory", "mapped", "device")
STUDIES = ("heldout", "source", "boundary", "scratch")
PROFILES = ("paper", "small", "nano")

Device = Annotated[str, typer.Option(help="Where to compute: auto (a GPU when there is one), cpu or cuda.")]
LAST_SEED = 2**32 - 1  # NumPy's generators take no other seeds
Seed = Annotated[
    int, typer.Option(min=0, max=LAST_SEED, help="Seed of fresh weights and of the order of training windows.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file in --out that another command made.")]
Resample = Annotated[
    bool, typer.Option("--resample", help="Average fields that are finer than the model's grid over blocks of points.")
]
Data = Annotated[
    list[Path],
    typer.Argument(help="Trajectories: HDF5 (ours, The Well, PDEBench), .npz or .npy files, or directories of ours."),
]

Scheduler = Annotated[
    str | None, typer.Option(help="Address of a running Dask scheduler, used instead of local processes.")
]


def names_in(text: str) -> list[str]:
    """Split a text into names at its commas.

    Raises:
        ArgumentError: there is none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ArgumentError(f"expected names separated by commas, got {text!r}; give at least one")
    return names
