"""Options that several commands share, and the names that their help lists.

The names are repeated here because the modules that define them import torch or pandas, which would slow down `--help`.
A test compares each with its definition.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from rdjepa.errors import ArgumentError

SPLITS = ("pool", "validation", "test")
REGIMES = ("id", "coeff-ood", "ic-ood")
PRESETS = ("paper", "small", "nano")
METRICS = ("relative_l2", "gradient_l1")
BASES = ("auto", "none", "anchored", "linear")
CURVE_UPDATES, CURVE_DRAWS = 40, 2
CONTEXT = 4
LOOK_UPDATES, LOOK_SHARE, LOOK_LEVEL = 100, 0.4, 0.9
HORIZONS = 5
COMPILE_MODES = ("no", "yes", "graphs")
EXPORTS = ("torch", "onnx")
BORDERS = ("zeros", "periodic", "walls")
MODEL = "nano-wide"
ENCODERS = ("auto", "frozen", "tuned")
DECODERS = ("auto", "fresh", "pretrained")
OBJECTIVES = (
    "predictive-latent",
    "field-forecast",
    "masked-fields",
    "variance-covariance",
    "random",
    "decoder",
    "adaptation",
)
PARTS = ("diffusion", "reaction", "laplacian", "masks", "blocks", "tubes", "same-time")
FRAME_PLACES = ("memory", "mapped", "device")
STUDIES = (
    "heldout",
    "source",
    "boundary",
    "scratch",
    "decoder",
    "decoder-source",
    "decoder-boundary",
    "rehearsal",
    "augmented",
    "anchored",
    "ablation",
)
PROFILES = ("paper", "small", "nano", "ablation", "ablation-long")
PHASES = ("choice", "final")

Context = Annotated[
    int,
    typer.Option(
        min=CONTEXT,
        help="Frames that are given, as far as there are some: the network sees the newest 4, the equation of a "
        "context is fitted to the newest 16.",
    ),
]
Device = Annotated[str, typer.Option(help="Where to compute: auto (a GPU when there is one), cpu or cuda.")]
LAST_INDEX = 2**53
LAST_SEED = 2**32 - 1  # NumPy's generators take no other seeds
Seed = Annotated[
    int, typer.Option(min=0, max=LAST_SEED, help="Seed of fresh weights and of the order of training windows.")
]
Model = Annotated[str, typer.Option(help="Shipped checkpoint, directory of one, or hub id, as owner/name@v1.0.")]
Start = Annotated[
    str,
    typer.Option(
        help="Shipped checkpoint, directory of one, or hub id, as owner/name@v1.0; or a forecaster without "
        "pretraining, as equation, linear or fno."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file in --out that another command made.")]
Resample = Annotated[
    bool, typer.Option("--resample", help="Bring fields on another grid to the model's, and say what that loses.")
]
Tile = Annotated[
    bool, typer.Option("--tile", help="Of a larger square grid, take overlapping squares of the model's size instead.")
]
Data = Annotated[
    list[Path],
    typer.Argument(
        help="Trajectories: HDF5 (ours, The Well, PDEBench, py-pde, others), NetCDF, Zarr, MATLAB, .npz, .npy, TIFF, "
        "or folders of these or of pictures."
    ),
]
Stride = Annotated[
    str,
    typer.Option(
        help="Take every so many frames; auto: as many as `rdjepa inspect` suggests, near the pace of pretraining."
    ),
]
Borders = Annotated[
    str | None,
    typer.Option(help=f"What the model sees beyond the borders of the fields: {', '.join(BORDERS)}; zeros by default."),
]
Field = Annotated[
    list[str] | None,
    typer.Option(help="Arrays of a file with several: a path in it, or one for each component, as u,v."),
]
Axes = Annotated[
    str | None,
    typer.Option(help='Order of axes, as "t y x c" or "b t c y x": trajectories, frames, rows, columns, components.'),
]
Components = Annotated[list[str] | None, typer.Option(help="One or two components, by position or name, as 0,2.")]
Interval = Annotated[float | None, typer.Option(help="Time between frames, in place of the times in the data.")]
Length = Annotated[
    float | None,
    typer.Option(help="Side length of the domain, which inspect shows and data add keeps; not for forecasts."),
]
Boundary = Annotated[
    str | None, typer.Option(help="How the domain ends, periodic or walls; by default as the data say or look.")
]
Spacing = Annotated[
    str | None,
    typer.Option(help="Distance between rows, and between columns, as 0.5,0.8; by default the same."),
]
Index = Annotated[
    str | None, typer.Option(help="Positions, from 0, of the trajectories that are read of many, as 0,1,2.")
]

Scheduler = Annotated[
    str | None, typer.Option(help="Address of a running Dask scheduler, used instead of local processes.")
]


def reading_of(
    field: Field = None,
    axes: Axes = None,
    components: Components = None,
    interval: Interval = None,
    length: Length = None,
    boundary: Boundary = None,
    spacing: Spacing = None,
    index: Index = None,
) -> Any:
    """Return the options about data as the `Reading` that they stand for."""
    from rdjepa.data.readers import Reading

    arrays = ",".join(field) if field else None
    chosen = tuple(names_in(*components)) if components else None
    distances: Any = None if spacing is None else _numbers_in(spacing)
    taken = None if index is None else _positions_in(index)
    return Reading(arrays, axes, chosen, interval, length, boundary=boundary, spacing=distances, index=taken)


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in the place of its parameter `reading`, the options of `reading_of`, which makes its value."""
    options, own = signature(reading_of).parameters, signature(command).parameters.values()
    shown = [each for one in own for each in (options.values() if one.name == "reading" else [one])]

    @wraps(command)
    def run(**given: Any) -> None:
        command(reading=reading_of(**{name: given.pop(name) for name in options}), **given)

    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


def stride_of(text: str) -> int | str:
    """Return the stride that a text names; "auto" as it is.

    Raises:
        ArgumentError: it is neither that nor a whole number.
    """
    if text != "auto" and not (text.isascii() and text.isdecimal()):
        raise ArgumentError(f"expected a stride of a whole number or auto, got {text!r}; give one of these")
    return text if text == "auto" else int(text)


def share_of(text: str) -> float | str:
    """Return the share that a text names; "auto" as it is.

    Raises:
        ArgumentError: it is neither that nor a number.
    """
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(
            f"expected a share to retain of a number or auto, got {text!r}; give one of these"
        ) from None


def _numbers_in(text: str) -> tuple[float, ...]:
    """Split a text into numbers at its commas.

    Raises:
        ArgumentError: there is anything else.
    """
    try:
        return tuple(map(float, text.split(",")))
    except ValueError as error:
        raise ArgumentError(f"expected numbers separated by commas, got {text!r}; give them as 0.5,0.8") from error


def _positions_in(text: str) -> tuple[int, ...]:
    """Split a text into whole numbers at its commas.

    Raises:
        ArgumentError: there is anything else.
    """
    numbers = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in numbers):
        raise ArgumentError(f"expected whole numbers separated by commas, got {text!r}; give them as 0,1,2")
    return tuple(map(int, numbers))


def names_in(*texts: str) -> list[str]:
    """Split texts into names at their commas.

    Raises:
        ArgumentError: there is none.
    """
    text = ",".join(texts)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ArgumentError(f"expected names separated by commas, got {text!r}; give at least one")
    return names
