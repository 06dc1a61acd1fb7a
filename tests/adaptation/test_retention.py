import pytest
import torch
from torch import nn

from rdjepa.adaptation import retention
from rdjepa.adaptation.adapt import windows
from rdjepa.adaptation.retention import knows, relative_error, retain, retaining, share_for, weights
from rdjepa.forecasters.persistence import Persistence


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


@pytest.mark.parametrize(
    ("most", "taken"), [(1_000, range(16)), (16, range(16)), (15, range(0, 16, 2)), (5, (0, 4, 8, 12))]
)
def test_the_error_is_that_of_the_windows_of_the_support_of_which_some_are_taken(most, taken):
    own, other = torch.randn(2, 24, 2, 4, 4, generator=torch.Generator().manual_seed(0)).unbind()
    data = windows(Persistence(), [own], [100 * other])
    assert data.own == 16 < len(data.targets)
    targets = torch.stack([own[start + 4 : start + 9] for start in taken])
    newest = torch.stack([own[start + 3] for start in taken])[:, None]
    expected = (newest - targets).norm() / targets.norm()
    assert relative_error(Persistence(), data, most) == pytest.approx(float(expected), rel=1e-5)


def test_fields_of_zeros_are_forecast_without_error():
    assert relative_error(Persistence(), windows(Persistence(), [torch.zeros(9, 2, 4, 4)])) == 0.0


@pytest.mark.parametrize(
    ("error", "together", "known"),
    [(0.29, None, True), (0.3, None, False), (0.9, 0.09, True), (0.9, 0.1, False), (0.1, 0.9, True)],
)
def test_a_system_is_known_by_the_network_or_by_what_stands_beside_it(error, together, known):
    assert knows(error, together) is known
    assert share_for(known, 4) == (retention.SHARE if known else 0.0) and share_for(known, 5) == 0.0
