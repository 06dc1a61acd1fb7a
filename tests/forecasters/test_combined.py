import pytest
import torch

from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import CONTEXT
from rdjepa.forecasters.combined import REACH, Combined, blending
from rdjepa.forecasters.equation import Equation
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.persistence import Extrapolation, Persistence

FIELDS = torch.randn(12, 2, 8, 8, generator=torch.Generator().manual_seed(0)).cumsum(0)
CONTEXTS = torch.stack([FIELDS[:CONTEXT], FIELDS[3 : 3 + CONTEXT]])


def test_it_is_the_sum_of_five_forecasts_in_their_shares():
    shares = torch.rand(5, 5, 2)
    made = Combined(Persistence(), Linear.fit([FIELDS]), shares)
    network, (own, g) = made.network(CONTEXTS), blending(CONTEXTS, made.equation)
    parts = (network, g * network + (1 - g) * own, own, Autoregression()(CONTEXTS), made.linear(CONTEXTS))
    expected = torch.stack([share[:, :, None, None] * part for share, part in zip(shares, parts, strict=True)]).sum(0)
    torch.testing.assert_close(made(CONTEXTS), expected)


def test_a_network_weighs_where_the_context_is_disturbed_and_at_first_not_far_from_there():
    def turning(phase, count):
        return torch.stack(
            [torch.stack([torch.cos(0.3 * t + phase), torch.sin(0.3 * t + phase)]) for t in range(count)]
        )

    phases = torch.rand(2, 48, 48, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    equation = Equation.fit([turning(6.3 * phases[0], 8)])
    context = turning(phases[1], CONTEXT)[None]
    quiet = blending(context, equation)[1]
    assert quiet.max() < 0.02
    context[0, -1, 0, 24, 24] += 1.0
    weight = (blending(context, equation)[1] - quiet)[0, :, 0]
    for horizon, here in enumerate(weight, 1):
        n = REACH * horizon
        near = torch.zeros(48, 48, dtype=torch.bool)
        near[24 - n : 25 + n, 24 - n : 25 + n] = True
        assert here[near].mean() > here[~near].mean()
        assert horizon > 2 or here[near].min() > 5 * here[~near].max()  # later no coefficient is sure


def test_the_blend_is_the_equation_where_that_fits_and_the_network_where_it_does_not():
    shares = torch.zeros(5, 5, 2)
    shares[1] = 1
    phase, noise = 6.3 * torch.rand(24, 24), 5 * torch.randn(4, 2, 24, 24)
    turning = torch.stack([torch.stack([torch.cos(0.3 * t + phase), torch.sin(0.3 * t + phase)]) for t in range(4)])
    for fields, which in ((turning[None], Equation()), (noise[None], Persistence())):
        other = Equation() if isinstance(which, Persistence) else Persistence()
        made, apart = Combined(Persistence(), None, shares)(fields), (which(fields) - other(fields)).norm()
        assert (made - which(fields)).norm() < 0.1 * apart


def test_values_far_from_those_of_training_leave_the_network_less_weight():
    fields = 3 * torch.randn(1, CONTEXT, 2, 12, 12, generator=torch.Generator().manual_seed(0)).cumsum(1)
    near, far = (blending(size * fields, Equation())[1] for size in (1.0, 10.0))
    # the equation's errors grow with the values, and so does what they are against
    assert (far - near).abs().max() < 0.05


def test_a_longer_context_is_forecast_by_the_blend_and_the_network_sees_the_newest_four():
    shares = torch.zeros(5, 5, 2)
    shares[3] = 1  # autoregression
    longer, made = FIELDS[None, :9], Combined(Extrapolation(), None, shares)
    torch.testing.assert_close(made(longer[:, -CONTEXT:]), Autoregression()(longer[:, -CONTEXT:]))
    own, g = blending(longer, made.equation)
    torch.testing.assert_close(made(longer), torch.lerp(own, Extrapolation()(longer[:, -CONTEXT:]), g))


def test_without_shares_it_is_the_network():
    torch.testing.assert_close(Combined(Persistence())(CONTEXTS), Persistence()(CONTEXTS))


def test_it_cannot_be_built_without_a_network():
    with pytest.raises(ValueError, match="build the network first"):
        Combined.from_preset("nano")
    with pytest.raises(ValueError, match="restore the network first"):
        Combined.from_settings({})
