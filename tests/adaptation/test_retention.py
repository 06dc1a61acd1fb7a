import pytest
import torch
from torch import nn

from rdjepa.adaptation.retention import retain, retaining, weights


@pytest.fixture
def moved():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    first = weights(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    return model, first


def test_a_share_of_the_way_back_is_gone(moved):
    model, first = moved
    own = weights(model)
    retain(model, first, 0.25)
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter, 0.25 * first[name] + 0.75 * own[name])
    retain(model, first, 1.0)
    assert all(torch.equal(parameter, first[name]) for name, parameter in model.named_parameters())


def test_nothing_is_retained_of_a_share_of_zero(moved):
    model, _ = moved
    before = weights(model)
    retain(model, {}, 0.0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.named_parameters())


def test_weights_are_retained_for_the_time_of_a_block_even_if_it_fails(moved):
    model, first = moved
    before = weights(model)
    with pytest.raises(RuntimeError, match="inside"), retaining(model, first, 0.5):
        assert not torch.equal(model[0].weight, before["0.weight"])
        raise RuntimeError("inside")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.named_parameters())
