import torch

from rdjepa.models.predictor import Predictor, PredictorBlock, latent_laplacian


def test_latent_laplacian_kills_constants_and_scales_fourier_modes():
    side, width = 16, 3
    assert torch.allclose(latent_laplacian(torch.ones(1, side * side, width)), torch.zeros(1, side * side, width))
    rows = torch.arange(side)[:, None].expand(side, side)
    mode = torch.cos(2 * torch.pi * 3 * rows / side).reshape(1, -1, 1)
    eigenvalue = (torch.cos(torch.tensor(2 * torch.pi * 3 / side)) - 1) / 2
    assert torch.allclose(latent_laplacian(mode), eigenvalue * mode, atol=1e-6)


def test_full_grid_equals_one_query_list_per_offset():
    predictor = Predictor(32, 2, 2)
    context = torch.randn(2, 256, 32)
    patches = torch.arange(256).expand(2, 256)
    whole = predictor.full_grid(context, 3)
    for h in (1, 2, 3):
        alone = predictor(context, patches, torch.full_like(patches, h))
        assert torch.allclose(whole[:, h - 1], alone, atol=1e-5)


def test_order_of_queries_does_not_matter():
    predictor = Predictor(32, 2, 2)
    context = torch.randn(1, 256, 32)
    patches, offsets = torch.randint(256, (1, 40)), torch.randint(9, (1, 40))
    order = torch.randperm(40)
    shuffled = predictor(context, patches[:, order], offsets[:, order])
    assert torch.allclose(predictor(context, patches, offsets)[:, order], shuffled, atol=1e-5)


def test_queries_attend_to_each_other_within_a_list():
    predictor = Predictor(32, 2, 1)
    context = torch.randn(1, 256, 32)
    patches = torch.tensor([[3, 7]])
    together = predictor(context, patches, torch.tensor([[1, 2]]))
    other = predictor(context, patches, torch.tensor([[1, 8]]))
    assert not torch.allclose(together[:, 0], other[:, 0])


def test_gates_start_at_a_quarter():
    block = Predictor(32, 2, 1).blocks[0]
    assert isinstance(block, PredictorBlock)
    assert block.gate_diffusion.item() == block.gate_reaction.item() == 0.25
