"""What the errors before any update decide."""

import pytest
import torch

from rdjepa.adaptation import combination, retention
from rdjepa.adaptation.adapt import Windows
from rdjepa.adaptation.decision import Decision, decide
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.persistence import Persistence

STEPS, NONE = 2_000, torch.zeros(0)


@pytest.fixture
def decided(monkeypatch):
    """Decides for a network of a given error, and of another one beside simple forecasts."""

    def make(error, together, count, **options):
        monkeypatch.setattr(retention, "unadapted", lambda *_: error)
        monkeypatch.setattr(combination, "combined", lambda network, *_: (Combined(network), together))
        support = count * [torch.zeros(9, 2, 8, 8)]
        return decide(Persistence(), Windows(0, (), NONE, NONE), support, STEPS, **options)

    return make


@pytest.mark.parametrize(
    ("error", "together", "count", "options", "steps", "share", "blend"),
    [
        (0.2, 0.15, 1, {}, retention.UPDATES, retention.SHARE, False),  # the network knows the system
        (0.8, 0.05, 1, {}, retention.UPDATES, retention.SHARE, False),  # what stands beside it does
        (0.8, 0.15, 1, {}, STEPS, 0.0, True),  # neither
        (0.2, 0.15, retention.SEVERAL, {}, STEPS, 0.0, False),
        (0.2, 0.15, 1, {"retains": False}, STEPS, 0.0, False),
        (0.2, 0.15, 1, {"shortens": False}, STEPS, retention.SHARE, False),
    ],
)
def test_updates_share_and_combination_follow_from_the_errors(
    decided, error, together, count, options, steps, share, blend
):
    found = decided(error, together, count, **options)
    assert (found.steps, found.share) == (steps, share)
    assert found.told["unadapted"] == error and found.told["together"] == together
    shares = found.combined.shares
    assert (shares[1] == blend).all() and (shares[0] != blend).all()  # of `Combined` alone the network has all


def test_a_network_alone_asks_no_simple_forecast_and_is_what_forecasts(decided):
    found = decided(0.2, None, 1, combines=False)
    assert found.told == {"unadapted": 0.2} and found.combined is None and found.share == retention.SHARE
    network = Persistence()
    assert found.around(network) is network


def test_other_weights_stand_in_the_same_combination():
    equation, other = Equation(), Equation()
    shares = torch.rand(5, 5, 2)
    decision = Decision(STEPS, combined=Combined(Persistence(), None, shares, equation))
    network = Persistence()
    made = decision.around(network)
    assert isinstance(made, Combined) and made.network is network and made.equation is equation
    assert torch.equal(made.shares, shares)
    again = decision.around(network, other)
    assert isinstance(again, Combined) and again.equation is other
