import pytest
import torch

from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import CONTEXT
from rdjepa.forecasters.combined import POWER, REACH, SMALL, Combined, blending
from rdjepa.forecasters.equation import Equation, Fitted
from rdjepa.forecasters.familiar import Familiar, novelty
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


@pytest.mark.parametrize("size", [0.5, 3.0])
def test_weights_are_those_of_the_two_variances(size):
    """What is missed over three frames grows with the square of the lead; values below 1 count as 1."""
    variance = torch.tensor([0.01, 0.02, 0.05, 0.1, 0.4], dtype=torch.float64)

    class Known(Equation):
        def fitted(self, context):
            shape = (1, 5, 2, 8, 8)
            every = variance[:, None, None, None].expand(shape)
            return Fitted(torch.zeros(shape), every, torch.full((1, 2, 8, 8), 0.3, dtype=torch.float64))

    g = blending(torch.full((1, CONTEXT, 2, 8, 8), size), Known())[1]
    own = variance + (torch.arange(1, 6) / 3) ** 2 * 0.3**2
    expected = own / (own + 0.1 * max(size**2, 1))
    torch.testing.assert_close(g.double(), expected[None, :, None, None, None].expand(g.shape), rtol=1e-5, atol=0)


def test_a_network_weighs_where_the_context_is_disturbed_and_not_far_from_there():
    def turning(size, phase, count):
        times = 0.3 * torch.arange(count)[:, None, None] + 6.3 * phase
        return (1 + size) * torch.stack([times.cos(), times.sin()], 1)

    drawn = torch.rand(2, 2, 48, 48, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    equation = Equation.fit([turning(drawn[0, 0], drawn[0, 1], 8)])
    context = turning(drawn[1, 0], drawn[1, 1], CONTEXT)[None]
    quiet = blending(context, equation)[1]
    assert quiet.max() < 1e-6
    context[0, -1, 0, 24, 24] += 1.0
    weight = (blending(context, equation)[1] - quiet)[0, :, 0]
    for horizon, here in enumerate(weight, 1):
        n = REACH * horizon
        near = torch.zeros(48, 48, dtype=torch.bool)
        near[24 - n : 25 + n, 24 - n : 25 + n] = True
        assert here[near].min() > 20 * here[~near].max()


def test_the_blend_is_the_equation_where_that_fits_and_the_network_where_it_does_not():
    shares = torch.zeros(5, 5, 2)
    shares[1] = 1
    phase, noise = 6.3 * torch.rand(24, 24), 5 * torch.randn(4, 2, 24, 24)
    turning = torch.stack([torch.stack([torch.cos(0.3 * t + phase), torch.sin(0.3 * t + phase)]) for t in range(4)])
    for fields, which in ((turning[None], Equation()), (noise[None], Persistence())):
        other = Equation() if isinstance(which, Persistence) else Persistence()
        made, apart = Combined(Persistence(), None, shares)(fields), (which(fields) - other(fields)).norm()
        assert (made - which(fields)).norm() < 0.1 * apart


def test_the_further_a_context_is_from_the_support_the_less_is_the_network_trusted():
    context = FIELDS[None, :CONTEXT].repeat(4, 1, 1, 1, 1)
    plain = blending(context, Equation())[1]
    found = blending(context, Equation(), torch.tensor([0.0, 0.5, 1.0, 7.0]))[1]
    assert (found[0] == 1).all() and torch.equal(found[2:], plain[2:])
    odds = [g / (1 - g) for g in (plain[1], found[1])]  # of errors: the equation's over the network's variance
    torch.testing.assert_close(odds[1], 2**POWER * odds[0], rtol=1e-4, atol=0)


def test_a_network_is_trusted_nowhere_more_than_on_the_support():
    context = FIELDS[None, :CONTEXT].repeat(3, 1, 1, 1, 1)
    unlike = torch.tensor([0.0, 0.2, 0.9])
    found = blending(context, Equation(), unlike, torch.tensor(0.2 * SMALL))[1]
    torch.testing.assert_close(found[0], found[1])  # as if its error were that on the support
    assert torch.equal(found[2], blending(context, Equation(), unlike)[1][2])
    poor = blending(context, Equation(), unlike, torch.tensor(9.0))[1]  # never less than where nothing is known of it
    torch.testing.assert_close(poor, blending(context, Equation())[1])


class Described(Persistence):
    def latent_summary(self, *features):
        return features[0].std((1, 2, 3, 4))[:, None].expand(-1, 3)


def test_a_blend_is_the_network_alone_where_it_has_learned_the_context():
    shares = torch.zeros(5, 5, 2)
    shares[1] = 1
    network = Described()
    known = Familiar(network.latent_summary(CONTEXTS[:1]).numpy(), 0.1)
    learned, plain = Combined(network, None, shares, None, known), Combined(network, None, shares)
    far = known.novelty(network.latent_summary(CONTEXTS[1:]).numpy())
    assert far > 1
    torch.testing.assert_close(learned(CONTEXTS)[0], network(CONTEXTS)[0])
    torch.testing.assert_close(learned(CONTEXTS)[1], plain(CONTEXTS)[1])
    assert learned.familiar is not None and learned.familiar.reach == 0.1 and plain.familiar is None


def test_novelty_on_a_device_is_that_of_the_support():
    known = Familiar(torch.randn(7, 5).numpy(), 1.7)
    latents = torch.randn(9, 5)
    found = novelty(latents, torch.from_numpy(known.latents), torch.tensor(known.reach))
    assert found.numpy() == pytest.approx(known.novelty(latents.numpy()))


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
