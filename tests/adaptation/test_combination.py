import pytest
import torch

from rdjepa.adaptation.combination import shares
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.linear import Corrected, Linear


def noise(frames=20, seed=0):
    return torch.randn(frames, 2, 8, 8, generator=torch.Generator().manual_seed(seed)).cumsum(0)


class Told(ForecastModel):
    """A network that knows what it is to forecast, by its context, up to errors of its own."""

    grid, name, preset = 8, "told", "tiny"

    def __init__(self, fields, error):
        super().__init__()
        cut = FORECASTING.stack(fields)
        generator = torch.Generator().manual_seed(1)
        wrong = error * torch.randn(cut.targets.shape, generator=generator)
        self.known = {context.sum().item(): x for context, x in zip(cut.context, cut.targets + wrong, strict=True)}

    @classmethod
    def from_preset(cls, preset):
        raise NotImplementedError

    from_settings = from_preset

    def settings(self):
        return {}

    def predict(self, *features):
        return torch.stack([self.known[context.sum().item()] for context in features[0]])

    def parameter_groups(self):
        return []


def test_a_network_without_error_has_all_and_one_that_says_what_the_linear_says_as_much_as_it_likes():
    fields = noise()
    linear = Linear.fit([fields])
    assert torch.equal(shares(Told(fields, 0.0), linear, [fields]), torch.ones(HORIZONS, 2))
    assert shares(linear, linear, [fields]).isfinite().all()


@pytest.mark.parametrize("error", [0.3, 1.0, 100.0])
def test_no_other_share_has_a_smaller_error(error):
    fields = noise()
    linear, network = Linear.fit([fields]), Told(fields, error)
    best = shares(network, linear, [fields])
    cut = FORECASTING.stack(fields)

    def error_of(shares):
        made = Corrected(network, linear.beside(shares))(cut.context)
        return (made - cut.targets).square().mean((0, 3, 4))

    for step in (-0.01, 0.01):
        other = (best + step).clamp(0, 1)
        assert (error_of(best) <= error_of(other)).all()
    assert 0 < best.mean() < 1


def test_trajectories_count_together():
    one, other = noise(seed=2), noise(14, seed=3)
    both = torch.cat([one, other])
    linear, network = Linear.fit([one, other]), Told(both, 1.0)
    network.known |= Told(one, 0.5).known | Told(other, 2.0).known
    apart = [shares(network, linear, [each]) for each in (one, other)]
    together = shares(network, linear, [one, other])
    assert (together >= torch.minimum(*apart)).all() and (together <= torch.maximum(*apart)).all()
