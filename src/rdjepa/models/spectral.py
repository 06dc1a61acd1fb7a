"""The spectral branch: learned complex weights on the lowest Fourier modes of each feature (S2.2 ii).

The paper keeps at most eight modes per spatial direction and does not say which. Here they are the wavenumbers -4..3
along the rows and 0..7 along the columns of the real transform, so that a wave along (1, 1) and one along (1, -1) are
both seen; wavenumbers 0..7 in both directions would be blind to the second. Both diagonals are seen alike up to
wavenumber 3. Of 4, which has no row of its own on a grid of 16 points a side, only (4, -4) of the two, and half of the
wave (4, 0) along the rows.

The grids are at most 16 points per side and the modes at most 8, so the truncated transform and its inverse are
written as two small dense matrices. They equal `torch.fft.rfft2`, a selection, and the real inverse in which the
imaginary parts of the zero and Nyquist columns are dropped after the row transform; unlike the library inverse
they therefore agree on every device, and no FFT kernel is launched.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.models.compiling import constant, once


def kept_rows(side: int, modes: int) -> list[int]:
    """Return the kept wavenumbers along the rows, in the order of `torch.fft.fftfreq`: 0, 1, ..., -2, -1."""
    count = min(modes, side)
    return [*range((count + 1) // 2), *range(-(count // 2), 0)]


def dft_matrices(side: int, modes: int) -> tuple[Tensor, Tensor]:
    """Compute the forward and inverse real matrices of the truncated transform on a side x side grid.

    The kept block is the rows `kept_rows(side, modes)` and the columns 0..min(modes, side//2+1)-1 of the real
    transform.

    Returns:
        forward: (2 R Q, side^2), real parts of the R x Q coefficients first, then imaginary parts.
        inverse: (side^2, 2 R Q), from the same order back to the grid.
    """
    wavenumbers = kept_rows(side, modes)
    rows, columns = len(wavenumbers), min(modes, side // 2 + 1)
    points = torch.arange(side, dtype=torch.float64)
    ky = torch.tensor(wavenumbers, dtype=torch.float64)[:, None, None, None]
    kx = torch.arange(columns, dtype=torch.float64)[None, :, None, None]
    angle = 2 * torch.pi * (ky * points[None, None, :, None] + kx * points[None, None, None, :]) / side
    cosine = angle.cos().reshape(rows * columns, side * side)
    sine = angle.sin().reshape(rows * columns, side * side)
    # A real transform keeps one column for +kx and -kx; column zero and the Nyquist column are their own mirror images.
    multiplicity = torch.full((rows, columns), 2.0, dtype=torch.float64)
    multiplicity[:, 0] = 1.0
    if side % 2 == 0 and columns == side // 2 + 1:
        multiplicity[:, -1] = 1.0
    scale = multiplicity.reshape(-1, 1) / side**2
    forward = torch.cat([cosine, -sine]).float()
    inverse = torch.cat([scale * cosine, -scale * sine]).T.contiguous().float()
    return forward, inverse


@once
def _matrices_on(side: int, modes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Copy `dft_matrices` to a device, once."""
    forward, inverse = dft_matrices(side, modes)
    return forward.to(device), inverse.to(device)


@constant
def matrices_on(side: int, modes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return `dft_matrices` on a device; a compiled network holds them as constants."""
    return _matrices_on(side, modes, device)


class SpectralConvolution(nn.Module):
    """Per-feature multiplication of low Fourier modes by complex weights, then a map over features.

    Weights are stored as real pairs (d, modes, modes, 2), allocated at `modes` for every stage, of which a stage takes
    what its grid has: row k belongs to the wavenumber k, or k - modes from the middle on. There is one bias per
    feature. Always computed in float32.

    The paper states no initial scale. Real and imaginary parts start from N(0, 1 / 2d), as for a sum over d features,
    although each feature is multiplied alone: the wider the model, the weaker this branch begins beside the local one.

    Args:
        width: number of features d.
        modes: modes kept per direction.
    """

    def __init__(self, width: int, modes: int = 8) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, modes, modes, 2) * (2.0 * width) ** -0.5)
        self.bias = nn.Parameter(torch.zeros(width))
        self.map = nn.Linear(width, width)

    def forward(self, tokens: Float[Tensor, "*B S d"]) -> Float[Tensor, "*B S d"]:
        """Filter tokens (B, side * side, d), row-major on a square grid."""
        side = round(tokens.shape[-2] ** 0.5)
        forward, inverse = matrices_on(side, self.modes, tokens.device)
        with torch.autocast(tokens.device.type, enabled=False):
            real, imaginary = (forward @ tokens.float()).chunk(2, dim=-2)
            a, b = self.kept(side).flatten(1, 2).transpose(0, 1).unbind(-1)
            product = torch.cat([real * a - imaginary * b, real * b + imaginary * a], dim=-2)
            filtered = inverse @ product + self.bias
        return self.map(filtered.to(tokens.dtype))

    def kept(self, side: int) -> Float[Tensor, "d R Q 2"]:
        """Return the weights of the modes of a grid, float32: a coarser one takes the low ones, `kept_rows` of them.

        Slices alone: an index would be copied to the device in every pass, which no CUDA graph can hold.
        """
        rows, columns = min(self.modes, side), min(self.modes, side // 2 + 1)
        weight = self.weight[:, :, :columns].float()
        if rows < self.modes:
            weight = torch.cat([weight[:, : (rows + 1) // 2], weight[:, self.modes - rows // 2 :]], dim=1)
        return weight
