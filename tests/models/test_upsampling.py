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
