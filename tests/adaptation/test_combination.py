import numpy as np
import pytest
import torch

from rdjepa.adaptation.combination import fit_linear, shares
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.linear import Corrected

PLAIN = Normalizer((0.0, 0.0), (1.0, 1.0))


def noise(frames=20, seed=0):
    return torch.randn(frames, 8, 8, 2, generator=torch.Generator().manual_seed(seed)).cumsum(0).numpy()


def windows(fields):
    return FORECASTING.stack(torch.from_numpy(fields).movedim(-1, 1))


def told(context):
    return context.contiguous().numpy().tobytes()


class Told(ForecastModel):
    """A network that knows what it is to forecast, by its context, up to errors of its own."""

    grid, name, preset = 8, "told", "tiny"

    def __init__(self, fields, error):
        super().__init__()
        cut = windows(fields)
        generator = torch.Generator().manual_seed(1)
        wrong = error * torch.randn(cut.targets.shape, generator=generator)
        self.known = {told(context): x for context, x in zip(cut.context, cut.targets + wrong, strict=True)}

    @classmethod
    def from_preset(cls, preset):
        raise NotImplementedError

    from_settings = from_preset

    def settings(self):
        return {}

    def predict(self, *features):
        return torch.stack([self.known[told(context)] for context in features[0]])

    def parameter_groups(self):
        return []


def test_a_network_without_error_has_all_and_one_that_says_what_the_linear_says_as_much_as_it_likes():
    fields = noise()
    linear = fit_linear([fields], PLAIN)
    assert torch.equal(shares(Told(fields, 0.0), linear, [fields], PLAIN), torch.ones(HORIZONS, 2))
    assert shares(linear, linear, [fields], PLAIN).isfinite().all()


@pytest.mark.parametrize("error", [0.3, 1.0, 100.0])
def test_no_other_share_has_a_smaller_error(error):
    fields = noise()
    linear, network = fit_linear([fields], PLAIN), Told(fields, error)
    best = shares(network, linear, [fields], PLAIN)
    cut = windows(fields)

    def error_of(shares):
        made = Corrected(network, linear.beside(shares))(cut.context)
        return (made - cut.targets).square().mean((0, 3, 4))

    for step in (-0.01, 0.01):
        other = (best + step).clamp(0, 1)
        assert (error_of(best) <= error_of(other)).all()
    assert 0 < best.mean() < 1


def test_trajectories_count_together():
    one, other = noise(seed=2), noise(14, seed=3)
    both = np.concatenate([one, other])
    linear, network = fit_linear([one, other], PLAIN), Told(both, 1.0)
    network.known |= Told(one, 0.5).known | Told(other, 2.0).known
    apart = [shares(network, linear, [each], PLAIN) for each in (one, other)]
    together = shares(network, linear, [one, other], PLAIN)
    assert (together >= torch.minimum(*apart)).all() and (together <= torch.maximum(*apart)).all()
