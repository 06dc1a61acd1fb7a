import pytest
import torch
import torch.nn.functional as F

from rdjepa.models.upsampling import double


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (1, 2, 5, 3), (3, 1, 1)])
def test_doubling_and_its_gradient_are_those_of_the_library(shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    expected = F.interpolate(x.view(1, -1, *shape[-2:]), scale_factor=2, mode="bilinear", align_corners=False)
    found = double(x)
    assert torch.allclose(found.view_as(expected), expected, atol=1e-12)
    weight = torch.randn_like(found)
    ours, theirs = (torch.autograd.grad((y.reshape(weight.shape) * weight).sum(), x)[0] for y in (found, expected))
    assert torch.allclose(ours, theirs, atol=1e-12)


def test_periodic_fields_go_on_at_the_other_end():
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    wide = torch.cat([x[..., -1:, :], x, x[..., :1, :]], dim=-2)
    wide = torch.cat([wide[..., -1:], wide, wide[..., :1]], dim=-1)
    assert torch.allclose(double(x, periodic=True), double(wide)[..., 2:-2, 2:-2], atol=1e-12)


def test_inference_leaves_nothing_that_training_cannot_take():
    with torch.inference_mode():
        double(torch.zeros(1, 7, 7))  # a size of its own: weights are kept
    x = torch.zeros(1, 7, 7, requires_grad=True)
    double(x).sum().backward()
    assert x.grad is not None
