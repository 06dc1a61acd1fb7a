from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

from rdjepa.models.replay import Replayed


def passes(model, device):
    def function(x, y):
        made = model(x)
        return (made - y).square().mean(), made

    return Replayed(function, model.parameters()), [torch.randn(n, 3, device=device) for n in (4, 4, 6, 4)]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_losses_results_and_gradients_are_those_of_plain_passes(device):
    model = nn.Sequential(nn.Linear(3, 5), nn.SiLU(), nn.Linear(5, 3)).to(device)
    both, batches = passes(model, device)
    for x in batches:
        loss, made = both(x, -x)
        found = [torch.as_tensor(parameter.grad).clone() for parameter in model.parameters()]
        assert not loss.requires_grad and not made.requires_grad
        model.zero_grad(set_to_none=True)
        expected = (model(x) + x).square().mean()
        expected.backward()
        assert torch.allclose(loss, expected) and torch.allclose(made, model(x), atol=1e-6)
        for own, parameter in zip(found, model.parameters(), strict=True):
            assert torch.allclose(own, torch.as_tensor(parameter.grad), atol=1e-6)


@pytest.mark.gpu
def test_one_graph_is_captured_for_every_combination_of_shapes():
    both, batches = passes(nn.Linear(3, 3).to("cuda"), "cuda")
    for x in batches:
        both(x, x)
    assert len(both.captured) == 2


@pytest.mark.gpu
def test_what_cannot_be_captured_is_computed_plainly_with_a_note():
    model = nn.Linear(3, 3).to("cuda")
    both = Replayed(lambda x: (model(x).square().mean() * float(x.sum()),), model.parameters())
    with pytest.warns(UserWarning, match="CUDA graph"):
        both(torch.ones(2, 3, device="cuda"))
    assert both.plain and model.weight.grad is not None


def test_a_failure_without_a_message_is_computed_plainly_too(monkeypatch):
    model = nn.Linear(3, 3)
    both = Replayed(lambda x: (model(x).square().mean(),), model.parameters())

    def fail(given):
        raise RuntimeError

    monkeypatch.setattr(both, "_capture", fail)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr(both, "_passes", lambda given: (given[0].sum(),))
    with FakeTensorMode(), pytest.warns(UserWarning, match="CUDA graph failed"):
        both(torch.empty(2, 3, device="cuda"))
    assert both.plain and not both.captured
