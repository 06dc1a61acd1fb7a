import pytest
import torch

from rdjepa.forecasters.base import CONTEXT
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import Persistence

FIELDS = torch.randn(12, 2, 8, 8, generator=torch.Generator().manual_seed(0)).cumsum(0)
CONTEXTS = torch.stack([FIELDS[:CONTEXT], FIELDS[3 : 3 + CONTEXT]])


def test_it_is_the_sum_of_three_forecasts_in_their_shares():
    shares = torch.rand(3, 5, 2)
    made = Combined(Persistence(), Linear.fit([FIELDS]), shares)
    parts = (made.network(CONTEXTS), made.autoregression(CONTEXTS), made.linear(CONTEXTS))
    expected = torch.stack([share[:, :, None, None] * part for share, part in zip(shares, parts, strict=True)]).sum(0)
    torch.testing.assert_close(made(CONTEXTS), expected)


def test_without_shares_it_is_the_network():
    torch.testing.assert_close(Combined(Persistence())(CONTEXTS), Persistence()(CONTEXTS))


def test_it_cannot_be_built_without_a_network():
    with pytest.raises(ValueError, match="build the network first"):
        Combined.from_preset("nano")
    with pytest.raises(ValueError, match="restore the network first"):
        Combined.from_settings({})
