"""An adapted model in physical units: what `rdjepa.adapt` returns, and its file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rdjepa import forecasters
from rdjepa.data.fields import channels_first, channels_last
from rdjepa.data.statistics import Normalizer
from rdjepa.errors import DataError
from rdjepa.forecasters.base import CONTEXT, ForecastModel
from rdjepa.forecasters.linear import Corrected
from rdjepa.io.tensors import CheckpointError, load_tensors, save_tensors

AT_ONCE = {"cpu": 2}  # windows of one pass; more leave the processor's cache and take half as long again


class Forecaster:
    """Forecasts five frames from four, physical units in and out.

    Attributes:
        model: the trained network.
        normalizer: the affine map between physical and standardized fields.
        record: how it was made: checkpoint, fingerprint, support, updates, seed.
        losses: training loss of every update.
    """

    def __init__(
        self,
        model: ForecastModel,
        normalizer: Normalizer,
        record: Mapping[str, Any],
        losses: list[float] | None = None,
    ) -> None:
        self.model, self.normalizer = model.eval(), normalizer
        self.record, self.losses = dict(record), list(losses or [])

    @property
    def device(self) -> torch.device:
        """Where the network is; the CPU for one without parameters."""
        return next((p.device for p in self.model.parameters()), torch.device("cpu"))

    @property
    def base(self) -> str:
        """What the network's output is added to: "none", or the "linear" forecast."""
        return "linear" if isinstance(self.model, Corrected) else "none"

    @torch.no_grad()
    def forecast(self, context: np.ndarray) -> np.ndarray:
        """Forecast the five frames after the context.

        Args:
            context: (4, H, W, C), or (B, 4, H, W, C), consecutive frames in physical units, oldest first.

        Returns:
            (5, H, W, C), or (B, 5, H, W, C), float32; entry h - 1 is the frame h intervals after the newest one.

        Raises:
            DataError: wrong shape, or values that are not finite.
        """
        context = np.asarray(context)
        grid, components = self.model.grid, self.model.components
        height, width = (grid, grid) if grid is not None else context.shape[-3:-1]
        frame = (CONTEXT, height, width, components)
        if context.shape[-4:] != frame or context.ndim not in (4, 5):
            raise DataError(f"expected a context of shape {frame}, got {context.shape}; give four whole frames")
        if not np.isfinite(context).all():
            raise DataError("expected a finite context, got NaN or infinite values; clean the frames first")
        batched = context if context.ndim == 5 else context[None]
        standard = channels_first(self.normalizer.standardize(batched.astype(np.float32)))
        few = AT_ONCE.get(self.device.type, 8)
        pieces = torch.from_numpy(standard).split(few)
        parts = [self.model(piece.to(self.device)).float().cpu().numpy() for piece in pieces]
        fields = self.normalizer.restore(channels_last(np.concatenate(parts))).astype(np.float32)
        return fields if context.ndim == 5 else fields[0]

    def save(self, path: str | Path) -> Path:
        """Write the forecaster as one safetensors file, atomically."""
        path = Path(path)
        record = {
            "kind": "forecaster",
            "forecaster": self.model.name,
            "preset": self.model.preset,
            "settings": self.model.settings(),
            "base": self.base,
            "normalizer": self.normalizer.to_dict(),
            "record": self.record,
            "losses": self.losses,
        }
        save_tensors(path, self.model.state_dict(), record)
        return path


def load_forecaster(path: str | Path) -> Forecaster:
    """Read what `Forecaster.save` wrote.

    Raises:
        CheckpointError: missing, damaged or foreign.
    """
    tensors, header = load_tensors(Path(path))
    if header.get("kind") != "forecaster":
        raise CheckpointError(f"expected an adapted forecaster, got a {header.get('kind')} file at {path}")
    try:
        model = forecasters.restore(header["forecaster"], header["settings"])
        if header.get("base") == "linear":
            model = Corrected(model)
        model.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"expected a forecaster of this version, got another at {path} ({error})") from error
    model.preset = header["preset"]
    return Forecaster(model, Normalizer.from_dict(header["normalizer"]), header["record"], header["losses"])
