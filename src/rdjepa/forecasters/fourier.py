"""Spectral convolution of two blocks of low modes, as in the 2-D Fourier neural operator (Li et al. 2021)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rdjepa.errors import ArgumentError


def real_inverse(spectrum: Tensor, size: Sequence[int]) -> Tensor:
    """Invert `rfft2` for spectra (..., H, W // 2 + 1) whose zero and Nyquist columns are not Hermitian.

    The rows are inverted first; then the imaginary part of the two real columns is dropped, which the library's inverse
    does on CPUs and not on GPUs. So the result is the same on every device.

    Args:
        spectrum: (..., H, W // 2 + 1), complex.
        size: (H, W) of the result.

    Returns:
        (..., H, W), real.
    """
    rows = torch.fft.ifft(spectrum, dim=-2)
    column = torch.arange(rows.shape[-1], device=rows.device)
    keep = (column > 0) & (2 * column < size[1])
    rows = torch.complex(rows.real, rows.imag * keep)
    return torch.fft.irfft(rows, n=size[1], dim=-1)


class DenseSpectralConvolution(nn.Module):
    """Multiply low modes by complex matrices over channels: two blocks, ky = 0..rows-1 and ky = -low..-1.

    Weights are stored as real pairs (2 blocks stacked along ky: channels in, channels out, ky, kx, 2).

    Args:
        width: channels in and out.
        positive: rows ky = 0..positive-1.
        negative: rows ky = -negative..-1.
        columns: columns kx = 0..columns-1.
    """

    def __init__(self, width: int, positive: int, negative: int, columns: int) -> None:
        super().__init__()
        self.positive, self.negative, self.columns = positive, negative, columns
        self.weight = nn.Parameter(torch.rand(width, width, positive + negative, columns, 2) / width**2)

    def check(self, height: int, width: int) -> None:
        """Refuse a grid that has fewer modes than are kept.

        Raises:
            ArgumentError: it has fewer.
        """
        if self.positive + self.negative > height or self.columns > width // 2 + 1:
            least = max(self.positive + self.negative, 2 * self.columns - 2)
            raise ArgumentError(f"expected a grid of at least {least} points per side, got {height} x {width}")

    def multiply(self, spectrum: Tensor) -> Tensor:
        """Filter a half spectrum (B, width, H, W // 2 + 1), complex; everything beyond the kept modes is zero."""
        weight = torch.view_as_complex(self.weight)
        out = torch.zeros_like(spectrum)
        p, n, q = self.positive, self.negative, self.columns
        out[:, :, :p, :q] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :p, :q], weight[:, :, :p])
        if n:
            out[:, :, -n:, :q] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -n:, :q], weight[:, :, p:])
        return out

    def forward(self, x: Tensor) -> Tensor:
        """Filter fields (B, width, H, W), in the precision of the weights whatever the one around it."""
        with torch.autocast(x.device.type, enabled=False):
            spectrum = torch.fft.rfft2(x.to(self.weight.dtype))
            return real_inverse(self.multiply(spectrum), x.shape[-2:])
