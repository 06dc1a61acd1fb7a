"""A network's forecast, corrected by what continues its context: an error that is known at once is not forecast again.

    forecast[h] = network[h] + IFFT( G(k) FFT(continued - network[1]) ),    G(k) = max(0, 1 - s(k) / d(k))

A network that learned one trajectory by heart forecasts that trajectory's levels and speeds on all others. How far it
is wrong can be seen in the first frame that it forecasts, since most of that frame is known already: the context
continues to it. `continued` repeats the newest frame, continues the last change, or the last change and its change,
whichever misses the next frame least on the support, for each component and wavelength; s(k) is the mean square of what
it misses there, and d(k) that of its difference from the network in the context itself, both in a shell of wave
numbers. Where they differ by no more than the continuation is wrong anyway, nothing is corrected; what is larger is the
network's error, and all five frames are corrected by as much. That is the shrinkage of James and Stein (1961), shell by
shell, and has no number to choose. Between walls the spectra are those of the fields and their mirror images, which go
on without a jump.

It is fitted to the support but takes no update, and stands around a network after its adaptation. Not part of the
paper's protocol.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.around import Beside
from rdjepa.forecasters.base import CONTEXT, ForecastModel

CONTINUATIONS = ((0.0, 0.0, 0.0, 1.0), (0.0, 0.0, -1.0, 2.0), (0.0, 1.0, -3.0, 3.0))  # weights of the context frames
SHELLS = 33  # the mean of the field, then wave numbers up to 1, 2, ... in 64 grid spacings, and all beyond
TOGETHER = 8  # windows in memory
RULE = {"continuations": len(CONTINUATIONS), "shells": SHELLS}


class Anchored(Beside):
    """A network whose forecasts are corrected by what its first frame misses of the continued context.

    Args:
        network: any forecaster.
        missed: (3, C, S) mean squares of what continuations miss; infinite, so that nothing is corrected, when None.
        walls: whether fields are mirrored at their borders; they are periodic otherwise.

    Attributes:
        missed: (3, C, S).
    """

    missed: Tensor

    def __init__(self, network: ForecastModel, missed: Tensor | None = None, walls: bool = False) -> None:
        super().__init__(network)
        self.walls = walls
        if missed is None:
            missed = torch.full((len(CONTINUATIONS), network.components, SHELLS), torch.inf)
        self.register_buffer("missed", missed)

    def features(self, context: Tensor) -> tuple[Tensor, ...]:
        """Return the spectrum of the continued context (B, C, H, W), then the network's features."""
        return (self._continued(context), *self.network.features(context))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        continued, *rest = features
        forecast = self.network.predict(*rest)
        apart = continued - _spectrum(forecast[:, 0], self.walls)
        shells, least = _shells(apart), self.missed.amin(0).to(apart.device)
        gain = (1 - least / _mean_square(apart, shells).clamp(min=torch.finfo(torch.float32).tiny)).clamp(min=0)
        rows, columns = forecast.shape[-2:]
        return forecast + torch.fft.ifft2(gain[:, :, shells] * apart).real[:, None, :, :rows, :columns]

    def _continued(self, context: Float[Tensor, "B T C H W"]) -> Float[Tensor, "B C H W"]:
        """Return the spectrum of the next frame, by the continuation that misses least at each wavelength."""
        spectrum = _spectrum(context, self.walls)
        weights = context.new_tensor(CONTINUATIONS, dtype=torch.float32)[self.missed.argmin(0)]  # (C, S, 4)
        return torch.einsum("chwt,btchw->bchw", weights[:, _shells(spectrum)].to(spectrum.dtype), spectrum)


@torch.no_grad()
def missed_by_continuations(support: Sequence[Float[Tensor, "T C H W"]], walls: bool = False) -> Float[Tensor, "3 C S"]:
    """Return the mean squares of what continuations miss of the next frame's spectrum, by component and shell.

    Args:
        support: standardized trajectories.
        walls: whether they are mirrored at their borders.

    Raises:
        ArgumentError: no trajectories, or one that is too short for a window.
    """
    shortest = min((len(fields) for fields in support), default=0)
    if shortest <= CONTEXT:
        raise ArgumentError(f"expected trajectories of at least {CONTEXT + 1} frames, got {shortest}; give longer")
    found: list[Tensor] = []
    for fields in support:
        for frames in fields.unfold(0, CONTEXT + 1, 1).movedim(-1, 1).split(TOGETHER):
            continued = torch.einsum("kt,btchw->bkchw", frames.new_tensor(CONTINUATIONS), frames[:, :CONTEXT])
            spectrum = _spectrum(continued - frames[:, None, CONTEXT], walls)
            found.append(_mean_square(spectrum.flatten(0, 1), _shells(spectrum)).unflatten(0, spectrum.shape[:2]))
    return torch.cat(found).mean(0)


def _spectrum(fields: Float[Tensor, "*B H W"], walls: bool) -> Tensor:
    """Return the spectrum of fields, or between walls of them and their mirror images, (2 H, 2 W)."""
    if walls:
        fields = torch.cat([fields, fields.flip(-1)], dim=-1)
        fields = torch.cat([fields, fields.flip(-2)], dim=-2)
    return torch.fft.fft2(fields.float())


def _shells(spectrum: Float[Tensor, "*B H W"]) -> Tensor:
    """Return the shell of each coefficient of a spectrum (H, W)."""
    rows, columns = (torch.fft.fftfreq(side, device=spectrum.device) for side in spectrum.shape[-2:])
    number = 2 * (SHELLS - 1) * torch.hypot(rows[:, None], columns[None])
    return number.sub(1e-4).ceil().long().clamp(min=0, max=SHELLS - 1)


def _mean_square(spectrum: Float[Tensor, "B C H W"], shells: Tensor) -> Float[Tensor, "B C S"]:
    """Return the mean square of the coefficients in each shell; 0 in one that has none."""
    squares, index = spectrum.abs().square().flatten(2), shells.flatten()
    sums = squares.new_zeros(*squares.shape[:2], SHELLS).index_add(2, index, squares)
    counts = squares.new_zeros(SHELLS).index_add(0, index, torch.ones_like(squares[0, 0]))
    return sums / counts.clamp(min=1)
