import pytest
import torch

from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import CONTEXT
from rdjepa.forecasters.combined import LEAST, REACH, Combined, judged, weight
from rdjepa.forecasters.equation import Equation, Fitted
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import Extrapolation, Persistence

FIELDS = torch.randn(12, 2, 8, 8, generator=torch.Generator().manual_seed(0)).cumsum(0)
CONTEXTS = torch.stack([FIELDS[:CONTEXT], FIELDS[3 : 3 + CONTEXT]])


def turning(phase, count=CONTEXT):
    """States that turn on a circle, at every point in a phase of its own; they obey a linear equation."""
    return torch.stack([torch.stack([torch.cos(0.3 * t + phase), torch.sin(0.3 * t + phase)]) for t in range(count)])


def test_it_is_the_sum_of_five_forecasts_in_their_shares():
    shares = torch.rand(5, 5, 2)
    made = Combined(Persistence(), Linear.fit([FIELDS]), shares)
    network, (own, r) = made.network(CONTEXTS), judged(CONTEXTS, made.equation)
    g = weight(network, own, r)
    parts = (network, g * network + (1 - g) * own, own, Autoregression()(CONTEXTS), made.linear(CONTEXTS))
    expected = torch.stack([share[:, :, None, None] * part for share, part in zip(shares, parts, strict=True)]).sum(0)
    torch.testing.assert_close(made(CONTEXTS), expected)


class Told(Equation):
    """An equation that is told what it finds."""

    def __init__(self, variance, near, far):
        super().__init__()
        self.found = Fitted(torch.zeros_like(variance), variance, torch.stack([near, far], dim=1))

    def fitted(self, context):
        return self.found


def test_an_equation_errs_around_where_it_misses_more_from_further_back():
    zeros = torch.zeros(1, 2, 96, 96, dtype=torch.float64)
    far, variance = zeros.clone(), torch.zeros(1, 5, 2, 96, 96, dtype=torch.float64)
    far[0, 0, 48, 48] = 1.0
    variance[0, 2, 1, 48, 48] = 1.0
    r = judged(CONTEXTS[:1], Told(variance, zeros, far))[1][0]
    for h in range(1, 6):
        reach = REACH * h
        n = 2 * reach + 1
        expected = torch.zeros(96, 96, dtype=torch.float64)
        expected[48 - reach : 49 + reach, 48 - reach : 49 + reach] = h**2 / 8 / n**2
        torch.testing.assert_close(r[h - 1, 0], expected)
    n = 2 * REACH + 1
    assert r[:, 1].count_nonzero() == n**2 and r[2, 1, 48, 48].item() == pytest.approx(1 / n**2)
    assert not judged(CONTEXTS[:1], Told(0 * variance, far, far))[1].any()  # noise, or what has already happened
    assert not judged(CONTEXTS[:1], Told(0 * variance, far, zeros))[1].any()


def test_noise_is_no_fault_of_the_equation_that_would_grow():
    context = turning(6.3 * torch.rand(48, 48, generator=torch.Generator().manual_seed(0)))[None]
    noise = 0.1 * torch.randn(context.shape, generator=torch.Generator().manual_seed(1))
    equation = Equation.fit([context[0]])
    errors = judged(context + noise, equation)[1].mean((0, 2, 3, 4))
    missed = equation.fitted(context + noise).missed.square().mean()
    assert missed > noise.square().mean()
    assert errors[0] < 0.1 * missed and errors[-1] < missed  # its square would be 25 / 9 of it


def test_the_weights_are_those_of_two_variances():
    network, equation = torch.randn(2, 3, 5, 2, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    r = torch.rand(3, 5, 2, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.5
    r[:, 0, :, :, 1:] = 1e9  # it is sure in the first column alone
    g, first = weight(network, equation, r), (network - equation)[:, 0, :, :, 0].square()
    for one, told, own in zip(g, first, r, strict=True):
        s = ((told / own[0, :, :, 0]).sum() / (1 / own[0, :, :, 0]).sum()).item()
        expected = torch.stack([own[h] / (own[h] + (h + 1) * s) for h in range(5)])
        torch.testing.assert_close(one, expected, rtol=1e-5, atol=0)


def test_a_network_that_says_the_same_is_trusted_up_to_a_bound():
    fields = 3 * torch.randn(1, 5, 2, 12, 12, generator=torch.Generator().manual_seed(0))
    r = torch.full_like(fields, LEAST, dtype=torch.float64)
    for size in (0.1, 10.0):
        square = max(1.0, (size * fields[:, 0]).square().mean().item())
        expected = torch.full_like(fields, 1 / (1 + square))
        torch.testing.assert_close(weight(size * fields, size * fields, r), expected)


def test_a_network_that_is_wrong_at_the_first_frame_weighs_less_at_all():
    fields = torch.randn(1, 5, 2, 12, 12, generator=torch.Generator().manual_seed(0))
    r, other = torch.ones_like(fields, dtype=torch.float64), fields.clone()
    other[:, 0] += 1
    assert (weight(other, fields, r) < 0.6 * weight(fields, fields, r)).all()
    later = fields.clone()
    later[:, 1:] += 1  # what the equation forecasts there is no measure
    assert torch.equal(weight(later, fields, r), weight(fields, fields, r))


def test_the_blend_is_the_equation_where_that_fits_and_the_network_where_it_does_not():
    shares = torch.zeros(5, 5, 2)
    shares[1] = 1
    draw = torch.Generator().manual_seed(0)
    smooth = turning(6.3 * torch.rand(24, 24, generator=draw))
    jumping = 5 * torch.randn(CONTEXT, 2, 24, 24, generator=draw)
    for fields, which in ((smooth[None], Equation()), (jumping[None], Persistence())):
        other = Equation() if isinstance(which, Persistence) else Persistence()
        made, apart = Combined(Persistence(), None, shares)(fields), (which(fields) - other(fields)).norm()
        assert (made - which(fields)).norm() < 0.2 * apart


def test_a_longer_context_is_forecast_by_the_blend_and_the_network_sees_the_newest_four():
    shares = torch.zeros(5, 5, 2)
    shares[3] = 1  # autoregression
    longer, made = FIELDS[None, :9], Combined(Extrapolation(), None, shares)
    torch.testing.assert_close(made(longer[:, -CONTEXT:]), Autoregression()(longer[:, -CONTEXT:]))
    network, (own, r) = Extrapolation()(longer[:, -CONTEXT:]), judged(longer, made.equation)
    torch.testing.assert_close(made(longer), torch.lerp(own, network, weight(network, own, r)))


def test_without_shares_it_is_the_network():
    torch.testing.assert_close(Combined(Persistence())(CONTEXTS), Persistence()(CONTEXTS))


def test_it_cannot_be_built_without_a_network():
    with pytest.raises(ValueError, match="build the network first"):
        Combined.from_preset("nano")
    with pytest.raises(ValueError, match="restore the network first"):
        Combined.from_settings({})
