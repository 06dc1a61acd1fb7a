from inspect import unwrap

import numpy as np
import pytest
import torch

from rdjepa.forecasters.loss import forecast_loss
from rdjepa.pretraining.loss import jepa_loss


def test_jepa_loss_ignores_scale_and_shift_of_each_vector_and_gives_targets_no_gradient():
    predicted = torch.randn(2, 5, 64, requires_grad=True)
    target = torch.randn(2, 5, 64, requires_grad=True)
    loss = jepa_loss(predicted, target)
    assert torch.allclose(loss, jepa_loss(3 * predicted + 2, 5 * target - 1), atol=1e-3)
    loss.backward()
    assert target.grad is None and predicted.grad is not None
    assert predicted.grad.abs().sum() > 0


def test_jepa_loss_of_unrelated_vectors_is_two():
    assert float(jepa_loss(torch.randn(100, 512), torch.randn(100, 512))) == pytest.approx(2.0, abs=0.05)
    x = torch.randn(3, 16)
    assert float(jepa_loss(x, x)) == 0.0


def test_forecast_loss_is_its_four_terms():
    rng = np.random.default_rng(0)
    p, u = rng.standard_normal((2, 3, 5, 2, 16, 16))
    e = p - u
    relative = np.mean(np.sqrt((e**2).sum((-3, -2, -1))) / np.sqrt((u**2).sum((-3, -2, -1))))
    gradient = np.abs(np.diff(e, axis=-2)).mean() + np.abs(np.diff(e, axis=-1)).mean()
    log = [np.log1p(np.abs(np.fft.rfft2(x, norm="ortho"))) for x in (p, u)]
    expected = (e**2).mean() + 0.5 * relative + 0.1 * gradient + 0.05 * np.abs(log[0] - log[1]).mean()
    assert float(forecast_loss(torch.from_numpy(p), torch.from_numpy(u))) == pytest.approx(expected, rel=1e-5)


def test_forecast_loss_weighs_offsets_equally():
    p, u = torch.randn(2, 5, 2, 16, 16), torch.randn(2, 5, 2, 16, 16)
    apart = torch.stack([forecast_loss(p[:, h], u[:, h]) for h in range(5)]).mean()
    assert torch.allclose(forecast_loss(p, u), apart, atol=1e-5)


def test_losses_refuse_unequal_shapes():
    """Users run without the checks of declared shapes, which test_shapes.py tests: the losses refuse on their own."""
    with pytest.raises(ValueError, match="equal shapes"):
        unwrap(forecast_loss)(torch.zeros(1, 5, 2, 8, 8), torch.zeros(1, 1, 2, 8, 8))
    with pytest.raises(ValueError, match="equal shapes"):
        unwrap(jepa_loss)(torch.zeros(1, 5), torch.zeros(1, 1))


def test_zero_target_does_not_divide_by_zero():
    assert torch.isfinite(forecast_loss(torch.ones(1, 2, 8, 8), torch.zeros(1, 2, 8, 8)))


def test_gradients_are_those_of_finite_differences():
    generator = torch.Generator().manual_seed(1)
    p, u = (torch.randn(2, 3, 2, 6, 5, dtype=torch.float64, generator=generator) for _ in range(2))
    assert torch.autograd.gradcheck(lambda x: forecast_loss(x, u), p.requires_grad_())
    v, w = (torch.randn(3, 4, 8, dtype=torch.float64, generator=generator) for _ in range(2))
    assert torch.autograd.gradcheck(lambda x: jepa_loss(x, w), v.requires_grad_())


@pytest.mark.parametrize("target", [torch.zeros(1, 2, 2, 8, 8), torch.randn(1, 2, 2, 8, 8)], ids=["zero", "generic"])
def test_a_prediction_that_equals_its_target_has_no_gradient(target):
    prediction = target.clone().requires_grad_()
    loss = forecast_loss(prediction, target)
    loss.backward()
    assert loss.item() == 0 and not prediction.grad.any()


def test_one_horizon_that_is_met_leaves_the_gradient_of_the_others():
    prediction, target = torch.randn(1, 2, 2, 8, 8).requires_grad_(), torch.randn(1, 2, 2, 8, 8)
    target[:, 0] = prediction.detach()[:, 0]
    (gradient,) = torch.autograd.grad(forecast_loss(prediction, target), prediction)
    other = prediction.detach()[:, 1].requires_grad_()
    (alone,) = torch.autograd.grad(forecast_loss(other, target[:, 1]), other)
    assert not gradient[:, 0].any() and torch.allclose(gradient[:, 1], alone / 2, atol=1e-7)


def test_latent_vectors_that_equal_their_targets_or_are_constant_have_a_finite_gradient():
    target = torch.randn(3, 16)
    for start in (target, torch.ones(3, 16)):
        predicted = start.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(jepa_loss(predicted, target), predicted)
        assert torch.isfinite(gradient).all() and (start is not target or not gradient.any())


def test_a_target_that_is_not_finite_makes_the_loss_not_finite():
    target = torch.zeros(1, 2, 8, 8)
    target[..., 0] = torch.nan
    assert torch.isnan(forecast_loss(torch.zeros(1, 2, 8, 8), target))
