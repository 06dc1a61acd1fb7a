import pytest
import torch

from rdjepa.models.spectral import SpectralConvolution, dft_matrices


@pytest.mark.parametrize("side", [16, 8, 4])
def test_dense_transform_equals_the_library_transform(side):
    rows, columns = min(8, side), min(8, side // 2 + 1)
    x = torch.randn(side, side, dtype=torch.float64)
    forward, _ = dft_matrices(side, 8)
    real, imaginary = (forward.double() @ x.reshape(-1)).chunk(2)
    expected = torch.fft.rfft2(x)[:rows, :columns]
    assert torch.allclose(torch.complex(real, imaginary).view(rows, columns), expected, atol=1e-5)


@pytest.mark.parametrize("side", [16, 8, 4])
def test_branch_equals_filtering_with_rows_first_and_real_edge_columns(side):
    """Any spectrum, Hermitian or not: inverse over rows, drop imaginary edge columns, real inverse."""
    rows, columns = min(8, side), min(8, side // 2 + 1)
    layer = SpectralConvolution(6)
    torch.nn.init.normal_(layer.bias)
    tokens = torch.randn(2, side * side, 6)
    grid = tokens.transpose(1, 2).reshape(2, 6, side, side)
    spectrum = torch.zeros(2, 6, side, side // 2 + 1, dtype=torch.complex64)
    weight = torch.view_as_complex(layer.weight[:, :rows, :columns].detach().contiguous())
    spectrum[..., :rows, :columns] = torch.fft.rfft2(grid)[..., :rows, :columns] * weight
    columns_done = torch.fft.ifft(spectrum, dim=-2)
    columns_done[..., 0].imag = 0
    columns_done[..., -1].imag = 0
    filtered = torch.fft.irfft(columns_done, n=side, dim=-1) + layer.bias[:, None, None]
    expected = layer.map(filtered.flatten(-2).transpose(1, 2))
    assert torch.allclose(layer(tokens), expected, atol=1e-5)


def test_branch_commutes_with_periodic_shifts():
    layer = SpectralConvolution(4)
    tokens = torch.randn(1, 16, 16, 4)
    moved = tokens.roll((3, 5), (1, 2))
    out = layer(tokens.flatten(1, 2)).unflatten(1, (16, 16)).roll((3, 5), (1, 2))
    assert torch.allclose(layer(moved.flatten(1, 2)).unflatten(1, (16, 16)), out, atol=1e-4)
