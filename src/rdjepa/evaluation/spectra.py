"""Radial energy spectra of forecast errors and of reference fields."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft


@dataclass(frozen=True)
class SpectrumRow:
    """Energies in one ring of wavenumbers at one horizon.

    Attributes:
        regime: of the trajectories.
        horizon: lead time h in stored frames, from 1.
        wavenumber: periods per domain length, rounded.
        error: energy of the error in this ring.
        reference: energy of the reference field in this ring.
    """

    regime: str
    horizon: int
    wavenumber: int
    error: float
    reference: float


def radial_energy(fields: np.ndarray, spacing: tuple[float, float] = (1.0, 1.0)) -> np.ndarray:
    """Return the energy of fields by radial wavenumber, both components with equal weight.

    Args:
        fields: (..., H, W, C).
        spacing: distance between neighboring rows, and between neighboring columns.

    Returns:
        (..., bins) float64; entry k is the sum of |F|^2 / (H W)^2 over wavenumbers that round to k, averaged over
        components, so that the sum over k is the mean square of the fields (Parseval). Wavenumbers count periods per
        length of the longer side of the domain.
    """
    return _rings(_power(fields), fields.shape[-2], spacing)


class RadialSpectra:
    """Mean spectra of errors and of reference fields, accumulated over the windows of many trajectories.

    Fields are standardized by a mean and a scale per component first, so that all components have equal weight.
    """

    def __init__(self, mean: Sequence[float], scale: Sequence[float]) -> None:
        self.mean, self.scale = np.asarray(mean, np.float32), np.asarray(scale, np.float32)
        self.totals: dict[str, list] = defaultdict(lambda: [0, 0.0, 0.0])
        self.width = 0

    def add(self, regime: str, prediction: np.ndarray, reference: np.ndarray) -> None:
        """Add the forecasts and references (B, N, H, W, C) of B windows, in physical units."""
        self.width = reference.shape[-2]
        total = self.totals[regime]
        total[0] += len(reference)
        total[1] = total[1] + _power((prediction - reference) / self.scale).sum(axis=0)
        total[2] = total[2] + _power((reference - self.mean) / self.scale).sum(axis=0)

    def rows(self) -> list[SpectrumRow]:
        """Return one row per regime, horizon and ring."""
        rows = []
        for regime, (count, error, reference) in self.totals.items():
            pair = (_rings(error / count, self.width), _rings(reference / count, self.width))
            for horizon, (of_error, of_reference) in enumerate(zip(*pair, strict=True), start=1):
                rows += [
                    SpectrumRow(regime, horizon, k, float(e), float(r))
                    for k, (e, r) in enumerate(zip(of_error, of_reference, strict=True))
                ]
        return rows


def _power(fields: np.ndarray) -> np.ndarray:
    """Return the energy per wavenumber of the half spectrum, (..., H, W // 2 + 1), averaged over components.

    Modes of the other half have the same energy, so a factor of 2 counts them in. The columns 0 and W / 2 have none,
    since their conjugates are in the same column.
    """
    width = fields.shape[-2]
    transform = scipy.fft.rfft2(np.moveaxis(fields, -1, 0), norm="forward")
    power = (transform.real**2 + transform.imag**2).mean(axis=0, dtype=np.float64)
    twice = np.full(width // 2 + 1, 2.0)
    twice[0] = 1.0
    if width % 2 == 0:
        twice[-1] = 1.0
    return power * twice


def _rings(power: np.ndarray, width: int, spacing: tuple[float, float] = (1.0, 1.0)) -> np.ndarray:
    """Sum a half spectrum (..., H, W // 2 + 1) over rings of wavenumbers: (..., bins)."""
    height = power.shape[-2]
    tall, wide = height * spacing[0], width * spacing[1]
    rows = np.fft.fftfreq(height, 1 / height) * (max(tall, wide) / tall)
    columns = np.fft.rfftfreq(width, 1 / width) * (max(tall, wide) / wide)
    ring = np.rint(np.hypot(rows[:, None], columns)).astype(int).ravel()
    flat = power.reshape(-1, ring.size)
    sums = np.stack([np.bincount(ring, weights=line) for line in flat])
    return sums.reshape(*power.shape[:-2], -1)
