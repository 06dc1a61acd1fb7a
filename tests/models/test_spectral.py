import pytest
import torch

from rdjepa.models.spectral import SpectralConvolution, dft_matrices, kept_rows


@pytest.mark.parametrize("side", [16, 8, 4])
def test_dense_transform_equals_the_library_transform(side):
    rows, columns = kept_rows(side, 8), min(8, side // 2 + 1)
    x = torch.randn(side, side, dtype=torch.float64)
    forward, _ = dft_matrices(side, 8)
    real, imaginary = (forward.double() @ x.reshape(-1)).chunk(2)
    expected = torch.fft.rfft2(x)[rows, :columns]
    assert torch.allclose(torch.complex(real, imaginary).view(len(rows), columns), expected, atol=1e-5)


def test_kept_rows_are_the_lowest_wavenumbers_of_both_signs():
    assert kept_rows(16, 8) == [0, 1, 2, 3, -4, -3, -2, -1]
    assert kept_rows(4, 8) == [0, 1, -2, -1]
    assert sorted(kept_rows(9, 9)) == [-4, -3, -2, -1, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("rows", "columns", "share"),
    [(2, 2, 1.0), (2, -2, 1.0), (3, 3, 1.0), (3, -3, 1.0), (4, -4, 1.0), (0, 4, 1.0), (4, 4, 0.0), (4, 0, 0.5)],
)
def test_waves_along_both_diagonals_are_seen_alike_up_to_wavenumber_three(rows, columns, share):
    layer = SpectralConvolution(1)
    with torch.no_grad():
        layer.weight[..., 0], layer.weight[..., 1] = 1.0, 0.0
    i, j = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
    wave = torch.cos(2 * torch.pi * (rows * i + columns * j) / 16).reshape(1, 256, 1)
    assert torch.allclose(layer(wave), layer.map(share * wave), atol=1e-5)  # a filter of ones keeps what it sees


@pytest.mark.parametrize("side", [16, 8, 4])
def test_branch_equals_filtering_with_rows_first_and_real_edge_columns(side):
    """Any spectrum, Hermitian or not: inverse over rows, drop imaginary edge columns, real inverse."""
    rows, columns = kept_rows(side, 8), min(8, side // 2 + 1)
    layer = SpectralConvolution(6)
    torch.nn.init.normal_(layer.bias)
    tokens = torch.randn(2, side * side, 6)
    grid = tokens.transpose(1, 2).reshape(2, 6, side, side)
    spectrum = torch.zeros(2, 6, side, side // 2 + 1, dtype=torch.complex64)
    weight = torch.view_as_complex(layer.weight[:, rows, :columns].detach().contiguous())
    spectrum[..., rows, :columns] = torch.fft.rfft2(grid)[..., rows, :columns] * weight
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


def test_inference_leaves_nothing_that_training_cannot_take():
    layer = SpectralConvolution(4, modes=3)
    tokens = torch.randn(1, 11 * 11, 4)  # a side of its own: matrices are kept
    with torch.inference_mode():
        layer(tokens)
    tokens.requires_grad_()
    layer(tokens).sum().backward()
    assert tokens.grad is not None
