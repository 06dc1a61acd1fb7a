"""An adapted forecaster as a program that runs without this package: torch.export or ONNX, normalizer included."""

import contextlib
import copy
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.checks import among, require_packages
from rdjepa.data.statistics import Normalizer
from rdjepa.errors import ArgumentError, Note, warn
from rdjepa.forecasters.base import CONTEXT, HORIZONS, ForecastModel
from rdjepa.forecasters.equation import Equation
from rdjepa.io.atomic import replacing
from rdjepa.io.kinds import refuse_replacing
from rdjepa.models.device import in_float32

ENDINGS = {"torch": ".pt2", "onnx": ".onnx"}
FORMATS = tuple(ENDINGS)
TOLERANCE = 1e-4  # largest difference from `Forecaster.forecast`, in standard deviations of the component
BATCHES = (1, 3)  # contexts per call with which a written program is checked; it is traced with two
SIDES = (24, 32)  # of the grid that a forecaster of any grid is traced with
LARGEST = 2**31 - 1  # of a free dimension; torch 2.7 needs one
RECORD = "rdjepa.json"


class Program(nn.Module):
    """Context (B, 4, H, W, C) in physical units to forecast (B, 5, H, W, C), float32, as one module."""

    mean: Tensor
    scale: Tensor

    def __init__(self, model: ForecastModel, normalizer: Normalizer) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).cpu().float().eval().requires_grad_(False)
        self.register_buffer("mean", torch.tensor(normalizer.mean, dtype=torch.float32))
        self.register_buffer("scale", torch.tensor(normalizer.scale, dtype=torch.float32))

    def forward(self, context: Tensor) -> Tensor:
        """Forecast (B, 5, H, W, C) from context (B, 4, H, W, C)."""
        standard = ((context - self.mean) / self.scale).movedim(-1, -3)
        return self.model(standard).movedim(-3, -1) * self.scale + self.mean


class Exported(NamedTuple):
    """A written program.

    Attributes:
        path: its file.
        difference: the largest difference from `Forecaster.forecast` that was found, in standard deviations.
    """

    path: Path
    difference: float


@in_float32
def export(forecaster: Forecaster, path: str | Path, format: str | None = None, force: bool = False) -> Exported:
    """Write a forecaster as a program, read it again, and compare its forecasts with the forecaster's.

    The program takes an input `context` (B, 4, H, W, C), float32 in physical units, channels last, for any B, and
    returns `forecast` (B, 5, H, W, C). What it was made from is in the file, as JSON under the name "rdjepa.json".

    Args:
        forecaster: adapted forecaster.
        path: file; by custom .pt2 for "torch", to be read by torch.export.load, and .onnx for "onnx".
        format: "torch" or "onnx"; by the ending of the path when None. The latter needs the extra `export`.
        force: replace an existing file.

    Raises:
        ArgumentError: another format, one that the ending of the path denies, packages that are missing, a network that
            cannot be exported, the equation alone, whose matrices are those of one grid, or a program whose forecasts
            are others; nothing is written then.
        OutputError: the file exists, or cannot be written.
    """
    path, ends = Path(path), {ending: name for name, ending in ENDINGS.items()}
    told = ends.get(path.suffix.lower())
    format = among(format or told or FORMATS[0], FORMATS, "a format")
    if told not in (None, format):
        raise ArgumentError(
            f"expected a file ending on {ENDINGS[format]} for {format}, got {path.name}; change one of the two"
        )
    if isinstance(forecaster.model, Equation):
        raise ArgumentError(
            "expected a forecaster whose program is the same on every grid, got the equation alone, whose matrices "
            "depend on it; export one of adapt that is combined with it, or keep the forecaster"
        )
    write = _write_torch if format == "torch" else _onnx_writer()
    if forecaster.base == "combined":
        warn(
            "the equation of each context is solved in many steps, each a part of the program, which takes minutes to "
            "write, and much longer as ONNX; a forecaster of adapt --base none has none",
            Note,
        )
    refuse_replacing(path, kind="program", same_kind=lambda _: False, force=force)
    with replacing(path) as part, _quiet():
        program = Program(forecaster.model, forecaster.normalizer)
        try:
            run = write(program, _context(forecaster, 2), _record(forecaster), part)
            difference = max(_difference(run, forecaster, batch) for batch in BATCHES)
        except OSError:
            raise  # of the disk
        except Exception as error:  # the exporters raise many kinds of errors about a network
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")
            raise ArgumentError(
                f"expected a network that can be exported to {format}, got {type(error).__name__} from "
                f"{forecaster.model.name} ({reason[:200]}); try the other format, or keep the forecaster"
            ) from error
        if not difference <= TOLERANCE:
            raise ArgumentError(
                f"expected an exported program with the forecaster's numbers up to {TOLERANCE:g} standard deviations, "
                f"got a difference of {difference:.3g}; try the other format, or keep the forecaster"
            )
    return Exported(path, difference)


Write = Callable[[Program, Tensor, str, Path], Callable[[np.ndarray], np.ndarray]]


def _write_torch(program: Program, context: Tensor, record: str, part: Path) -> Callable[[np.ndarray], np.ndarray]:
    stream = io.BytesIO()  # torch's writer aborts the process where a disk is full
    torch.export.save(_traced(program, context), stream, extra_files={RECORD: record})
    part.write_bytes(stream.getvalue())
    with part.open("rb") as file:
        module = torch.export.load(file).module()
    return lambda given: module(torch.from_numpy(given)).numpy()


def _onnx_writer() -> Write:
    """Return the function that writes ONNX.

    Raises:
        ArgumentError: the packages that it takes are not there.
    """
    packages = ("onnx", "onnxruntime", "onnxscript")
    require_packages("of ONNX", "export", *packages, instead="take the format torch")
    import onnxruntime

    def write(program: Program, context: Tensor, record: str, part: Path) -> Callable[[np.ndarray], np.ndarray]:
        made = torch.onnx.export(
            _traced(program, context),
            (context,),
            dynamo=True,
            input_names=["context"],
            output_names=["forecast"],
            verbose=False,
        )
        assert made is not None
        made.model.metadata_props[RECORD] = record
        made.save(str(part), external_data=False)
        session = onnxruntime.InferenceSession(str(part), providers=["CPUExecutionProvider"])
        return lambda given: session.run(["forecast"], {"context": given})[0]

    return write


def _traced(program: Program, context: Tensor) -> Any:
    """Return the program as torch.export takes it; the number of contexts is free, and the grid where it is not set."""
    free: dict[int, Any] = {0: torch.export.Dim("batch", min=1, max=LARGEST)}
    if program.model.grid is None:
        free |= {2: torch.export.Dim("height", min=2, max=LARGEST), 3: torch.export.Dim("width", min=2, max=LARGEST)}
    with torch.no_grad():
        return torch.export.export(program, (context,), dynamic_shapes=(free,), strict=False)  # True by default in 2.7


def _context(forecaster: Forecaster, batch: int) -> Tensor:
    """Return contexts of smooth fields that turn into others, in the forecaster's units, (B, 4, H, W, C).

    What is fitted to a context has no answer of its own in white noise.
    """
    sides = SIDES if forecaster.model.grid is None else (forecaster.model.grid,) * 2
    noise = np.random.default_rng(batch).standard_normal((2, batch, *sides, forecaster.model.components))
    waves = np.fft.fftfreq(sides[0])[:, None] ** 2 + np.fft.fftfreq(sides[1])[None] ** 2
    smooth = np.fft.ifft2(np.fft.fft2(noise, axes=(2, 3)) * np.exp(-100 * waves)[..., None], axes=(2, 3)).real
    one, other = smooth / smooth.std(axis=(2, 3), keepdims=True)
    angles = 0.3 * np.arange(CONTEXT)[:, None, None, None]
    fields = np.cos(angles) * one[:, None] + np.sin(angles) * other[:, None]
    return torch.from_numpy(forecaster.normalizer.restore(fields).astype(np.float32))


def _difference(run: Callable[[np.ndarray], np.ndarray], forecaster: Forecaster, batch: int) -> float:
    context = _context(forecaster, batch).numpy()
    alike = Forecaster(forecaster.model, forecaster.normalizer)  # which takes any second component
    mine, theirs = alike.forecast(context), run(context)
    if theirs.shape != mine.shape:
        raise ValueError(f"a forecast of shape {theirs.shape}")
    return float(np.abs((theirs - mine) / np.asarray(forecaster.normalizer.scale)).max())


def _record(forecaster: Forecaster) -> str:
    """Return what the program was made from and how it is called, as JSON."""
    layout = {"context": f"(B, {CONTEXT}, H, W, C)", "forecast": f"(B, {HORIZONS}, H, W, C)", "units": "physical"}
    content = {"forecaster": forecaster.model.name, "base": forecaster.base, "grid": forecaster.model.grid}
    return json.dumps(content | layout | {"record": forecaster.record}, default=str)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' remarks about their own internals from the user."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
