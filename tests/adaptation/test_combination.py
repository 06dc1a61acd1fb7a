import math
from itertools import permutations

import numpy as np
import pytest
import torch

from rdjepa.adaptation.adapt import standardized, tensors
from rdjepa.adaptation.combination import blended, combined, correcting, least
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.errors import ArgumentError
from rdjepa.forecasters.autoregression import Autoregression
from rdjepa.forecasters.base import HORIZONS, ForecastModel
from rdjepa.forecasters.combined import EVERY, Combined
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.equation import Equation, Remembering
from rdjepa.forecasters.linear import Linear

PLAIN = Normalizer((0.0, 0.0), (1.0, 1.0))
SUPPORT = [
    np.random.default_rng(seed).standard_normal((frames, 8, 8, 2)).cumsum(0).astype(np.float32)
    for seed, frames in enumerate((20, 14, 17))
]
TENSORS = tensors(SUPPORT)
BLEND, OWN = (torch.eye(5)[i][:, None, None].expand(-1, HORIZONS, 2) for i in (1, 2))


def windows(fields):
    return FORECASTING.stack(torch.from_numpy(fields).movedim(-1, 1))


def fit(kind, trajectories):
    return kind.fit(tensors(trajectories))


def key(context):
    return context.contiguous().numpy().tobytes()


class Told(ForecastModel):
    """A network that knows what follows every window of some trajectories, up to errors of its own."""

    grid, name, preset = 8, "told", "tiny"

    def __init__(self, trajectories, error):
        super().__init__()
        generator, self.known = torch.Generator().manual_seed(1), {}
        for fields in trajectories:
            for context, targets in zip(*windows(fields), strict=True):
                self.known[key(context)] = targets + error * torch.randn(targets.shape, generator=generator)

    @classmethod
    def from_preset(cls, preset):
        return cls([], 0.0)

    from_settings = from_preset

    def settings(self):
        return {}

    def predict(self, *features):
        return torch.stack([self.known[key(context)] for context in features[0]])

    def parameter_groups(self):
        return []


def test_a_network_without_error_has_all():
    expected = torch.zeros(5, HORIZONS, 2)
    expected[0] = 1  # but for rounding: the blend is hardly anything else where no map fits
    torch.testing.assert_close(combined(Told(SUPPORT, 0.0), TENSORS)[0].shares, expected, atol=1e-3, rtol=0)


@pytest.mark.parametrize(("count", "error"), [(1, 0.3), (1, 3.0), (2, 0.3), (3, 0.3), (3, 1.0)])
def test_no_other_shares_have_a_smaller_error_where_nothing_has_seen_what_it_forecasts(count, error):
    network, support = Told(SUPPORT, error), SUPPORT[:count]
    mixed, norm = combined(network, tensors(support))
    best = mixed.shares
    assert (best >= 0).all() and 0 < best[0].mean() < 1
    torch.testing.assert_close(best.sum(0), torch.ones(HORIZONS, 2))
    assert (best[4] == 0).all() if count == 1 else (best[4] > 0).any()

    pieces = support if count > 1 else [support[0][:10], support[0][10:]]
    names = range(5 if count > 1 else 4)
    errors, squares = [], 0.0  # of each alone; those of a mixture are the mixture of theirs
    for i, fields in enumerate(pieces):
        others = pieces[:i] + pieces[i + 1 :]
        linear, equation = fit(Linear, others) if count > 1 else None, Remembering.of(fit(Equation, others))
        context, targets = (each[::EVERY] for each in windows(fields))
        alone = (torch.eye(5)[name][:, None, None].expand(5, HORIZONS, 2) for name in names)
        made = [Combined(network, linear, shares, equation)(context) for shares in alone]
        errors.append(torch.stack(made) - targets)
        squares += float(targets.square().sum())

    def error_of(shares):
        return torch.einsum("ihc,inhcyx->nhcyx", shares[: len(names)], torch.cat(errors, 1)).square().sum((0, 3, 4))

    least_error = error_of(best)
    assert norm == pytest.approx(math.sqrt(float(least_error.sum()) / squares), rel=1e-3)
    for from_, to in permutations(names, 2):
        moved = best.clone()
        step = torch.minimum(best[from_], torch.tensor(0.02))
        moved[from_], moved[to] = best[from_] - step, best[to] + step
        assert (least_error <= error_of(moved) * (1 + 1e-5)).all()


def test_many_trajectories_are_forecast_in_parts(monkeypatch):
    monkeypatch.setattr("rdjepa.adaptation.combination.PARTS", 2)
    network, (one, two, three) = Told(SUPPORT, 1.0), SUPPORT
    moments = torch.zeros(HORIZONS, 2, 5, 5, dtype=torch.float64)
    for learned, others in (([two], [one, three]), ([one, three], [two])):
        equation = fit(Equation, learned)
        own = (Combined(network, None, shares, equation) for shares in (BLEND, OWN))
        fits = (network, *own, Autoregression(), fit(Linear, learned))
        for context, targets in ((each[::EVERY] for each in windows(fields)) for fields in others):
            errors = torch.stack([fit(context) - targets for fit in fits]).double()
            moments += torch.einsum("ibnchw,jbnchw->ncij", errors, errors)
    found = combined(network, TENSORS)[0].shares
    for h, c in np.ndindex(HORIZONS, 2):
        np.testing.assert_allclose(found[:, h, c], least(moments[h, c].numpy()), atol=2e-3)


@pytest.mark.parametrize(("support", "most"), [(SUPPORT, 3 * 2), ([np.concatenate(SUPPORT)], 2)])
def test_of_long_trajectories_a_few_windows_tell(monkeypatch, support, most):
    monkeypatch.setattr("rdjepa.adaptation.combination.MOST", 2)
    seen = []

    class Counted(Told):
        def predict(self, *features):
            seen.extend(features[0])
            return super().predict(*features)

    network = Counted(support, 1.0)
    made, _ = combined(network, tensors(support), Domain(walls=True))
    assert len(seen) == most and made.equation.domain.walls


def test_units_and_constants_do_not_matter():
    units = Normalizer((3.0, -7.0), (0.5, 20.0))
    other = [(fields * [0.5, 20.0] + [3.0, -7.0]).astype(np.float32) for fields in SUPPORT]

    class Same(Told):
        def predict(self, *features):
            return features[0][:, -1:].expand(-1, HORIZONS, -1, -1, -1)

    given = (standardized(of, in_) for of, in_ in ((SUPPORT, PLAIN), (other, units)))
    found, scaled = (combined(Same([], 0.0), each)[0].shares for each in given)
    torch.testing.assert_close(found, scaled, atol=1e-3, rtol=0)


def test_shares_of_errors_that_do_not_depend_on_each_other_are_as_their_precisions():
    np.testing.assert_allclose(least(np.diag([1.0, 2.0, 4.0])), np.array([4, 2, 1]) / 7)


def test_a_forecast_whose_error_is_only_more_of_anothers_has_no_share():
    np.testing.assert_allclose(least(np.array([[1.0, 2.0], [2.0, 4.0]])), [1, 0], atol=1e-12)


def test_of_forecasts_that_are_nearly_alike_any_will_do():
    random = np.random.default_rng(0)
    for _ in range(100):
        errors = random.standard_normal(20) + 1e-7 * random.standard_normal((4, 20))
        moments = errors @ errors.T
        shares = least(moments)
        assert (shares >= 0).all() and shares.sum() == pytest.approx(1)
        assert shares @ moments @ shares <= moments.diagonal().min() * (1 + 1e-6)


def test_without_any_error_shares_are_equal_and_without_finite_ones_the_first_has_all():
    np.testing.assert_allclose(least(np.zeros((3, 3))), np.full(3, 1 / 3))
    np.testing.assert_array_equal(least(np.full((2, 2), np.nan)), [1, 0])


def test_no_trajectory_cannot_tell():
    with pytest.raises(ArgumentError, match="at least one trajectory"):
        combined(Told(SUPPORT, 0.1), [])


def test_a_blend_takes_what_the_context_tells_where_that_fits():
    class Still(Told):
        def predict(self, *features):
            return features[0][:, -1:].expand(-1, HORIZONS, -1, -1, -1)

    turns = 0.3 * np.arange(20)[:, None, None] + 6 * np.random.default_rng(0).random((8, 8))
    fields = np.stack([np.cos(turns), np.sin(turns)], axis=-1).astype(np.float32)
    context, targets = windows(fields)
    network = Still([], 0.0)
    made = blended(network, fit(Equation, [fields[:9]]))
    errors = [(made(context) - targets).norm() for made in (made, Autoregression(), network)]
    assert errors[0] < 0.05 * errors[2] and errors[0] < errors[1] + 0.05 * errors[2]


def test_a_network_corrects_the_linear_forecast_of_the_trajectories():
    network = Told(SUPPORT, 1.0)
    made = correcting(network, TENSORS)
    assert made.network is network and torch.equal(made.linear.weights, fit(Linear, SUPPORT).weights)
