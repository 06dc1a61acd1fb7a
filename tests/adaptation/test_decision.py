"""What the errors before any update decide, and those on others after them."""

import pytest
import torch

from rdjepa.adaptation import combination, retention
from rdjepa.adaptation.adapt import Windows
from rdjepa.adaptation.decision import FIRST, Decision, decide, settle, withhold
from rdjepa.forecasters.combined import Combined
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.persistence import Persistence

STEPS, NONE = 2_000, torch.zeros(0)


@pytest.fixture
def decided(monkeypatch):
    """Decides for a network of a given error, and of another one beside simple forecasts."""

    def make(error, together, count, **options):
        monkeypatch.setattr(retention, "relative_error", lambda *_: error)
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
        (0.2, 0.15, 9, {"trajectories": 1}, retention.UPDATES, retention.SHARE, False),  # squares of a single one
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


def test_the_record_has_what_network_and_blend_have_together(monkeypatch):
    shares = torch.rand(5, 5, 2)
    monkeypatch.setattr(retention, "relative_error", lambda *_: 0.2)
    monkeypatch.setattr(combination, "combined", lambda network, *_: (Combined(network, None, shares), 0.1))
    found = decide(Persistence(), Windows(0, (), NONE, NONE), [torch.zeros(9, 2, 8, 8)], STEPS)
    torch.testing.assert_close(torch.tensor(found.told["combined"]), shares[0] + shares[1])


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


@pytest.mark.parametrize("turns", [True, False])
def test_other_trajectories_say_whether_anything_stands_beside_the_network(turns):
    fields, shares = torch.full((12, 2, 8, 8), 2.0), torch.zeros(5, 5, 2)
    if turns:  # which a map of each point knows, and persistence does not
        angles = 0.3 * torch.arange(12)[:, None, None] + 6 * torch.rand(
            8, 8, generator=torch.Generator().manual_seed(0)
        )
        fields = torch.stack([angles.cos(), angles.sin()], dim=1)
    shares[3 if turns else 4] = 1  # the autoregression, or a linear forecast that was fitted to nothing
    decision = Decision(STEPS, combined=Combined(Persistence(), None, shares), told={"together": 0.1, "combined": []})
    found, network = settle(decision, Persistence(), [fields]), Persistence()
    errors = found.told["on_others"]
    if turns:
        assert errors["combined"] < 0.1 * errors["network"]
        assert isinstance(found.around(network), Combined) and "combined" in found.told
    else:
        assert errors == {"network": 0.0, "combined": 1.0}
        assert found.around(network) is network and "combined" not in found.told and found.told["together"] == 0.1


PIECES = [[torch.zeros(10, 2, 8, 8)], [torch.zeros(9, 2, 8, 8), torch.zeros(11, 2, 8, 8)]]  # windows: 2, and 1 and 3


@pytest.mark.parametrize(("images", "windows"), [(1, [2, 3, 4, 5]), (2, [2, 3, 4, 5, 8, 9, 10, 11])])
def test_the_last_trajectory_is_withheld_with_all_its_pieces_and_images(images, windows):
    found = withhold(Decision(STEPS, combined=Combined(Persistence())), PIECES, images)
    assert found is not None and found.windows.tolist() == windows and found.updates == STEPS // FIRST


@pytest.mark.parametrize(
    ("options", "pieces"),
    [({}, PIECES[1:]), ({"share": 0.5}, PIECES), ({"combined": None}, PIECES), ({"steps": FIRST - 1}, PIECES)],
)
def test_nothing_is_withheld_where_there_is_nothing_to_choose(options, pieces):
    decision = Decision(**{"steps": STEPS, "combined": Combined(Persistence())} | options)
    assert withhold(decision, pieces, 1) is None


def test_of_a_long_trajectory_windows_from_all_of_it_choose(monkeypatch):
    fields, seen = torch.arange(40.0)[:, None, None, None].expand(40, 2, 8, 8), []

    class Watching(Persistence):
        def forward(self, context):
            seen.extend(context[:, 0, 0, 0, 0].tolist())
            return super().forward(context)

    network = Watching()
    settle(Decision(STEPS, combined=Combined(Persistence())), network, [fields], most=3)
    assert {*seen} == {0, 15, 31}
