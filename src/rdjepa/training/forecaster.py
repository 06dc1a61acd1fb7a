"""An adapted model in physical units: what `rdjepa.adapt` returns, and its file."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rdjepa.data.fields import DataError, channels_first, channels_last
from rdjepa.data.normalization import Normalizer
from rdjepa.forecasters.rd_jepa import LearningRates, RDJEPAForecaster
from rdjepa.models.base import CONTEXT
from rdjepa.models.rdjepa import RDJEPA, ModelConfig
from rdjepa.training.tensorfile import CheckpointError, load_tensors, save_tensors


class Forecaster:
    """Forecasts five frames from four, physical units in and out.

    Attributes:
        model: the trained network.
        config: its sizes.
        normalizer: the affine map between physical and standardized fields.
        record: how it was made: checkpoint, fingerprint, support, updates, seed.
        losses: training loss of every update.
    """

    def __init__(
        self,
        model: RDJEPAForecaster,
        config: ModelConfig,
        normalizer: Normalizer,
        record: Mapping[str, Any],
        losses: list[float] | None = None,
    ) -> None:
        self.model, self.config, self.normalizer = model.eval(), config, normalizer
        self.record, self.losses = dict(record), list(losses or [])

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.model.parameters()).device

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
        grid, components = self.config.grid, self.config.components
        frame = (CONTEXT, grid, grid, components)
        if context.shape[-4:] != frame or context.ndim not in (4, 5):
            raise DataError(f"expected a context of shape {frame}, got {context.shape}; give four whole frames")
        if not np.isfinite(context).all():
            raise DataError("expected a finite context, got NaN or infinite values; clean the frames first")
        batched = context if context.ndim == 5 else context[None]
        standard = channels_first(self.normalizer.standardize(batched.astype(np.float32)))
        parts = [self.model(part.to(self.device)).float().cpu().numpy() for part in torch.from_numpy(standard).split(8)]
        fields = self.normalizer.restore(channels_last(np.concatenate(parts))).astype(np.float32)
        return fields if context.ndim == 5 else fields[0]

    def save(self, path: str | Path) -> Path:
        """Write the forecaster as one safetensors file, atomically."""
        path = Path(path)
        record = {
            "kind": "forecaster",
            "model": self.config.to_dict(),
            "rates": asdict(self.model.rates),
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
    config = ModelConfig.from_dict(header["model"])
    model = RDJEPAForecaster(RDJEPA(config), LearningRates(**header["rates"]))
    model.load_state_dict(tensors)
    return Forecaster(model, config, Normalizer.from_dict(header["normalizer"]), header["record"], header["losses"])
