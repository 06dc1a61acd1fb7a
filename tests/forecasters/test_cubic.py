"""A cubic equation: its terms, and how it is integrated."""

from typing import Any

import numpy as np
import pytest
import torch

from cubics import BOUNDS, FINE, coefficients, drawn
from rdjepa.forecasters.cubic import (
    Advance,
    _diffusion,
    _laplacian,
    monomials_of,
    products,
    refinement,
    second_difference,
)
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.squares import _differentiation, _mean_second_difference


def test_there_are_as_many_monomials_as_exponents_of_sum_three_or_less():
    assert [len(monomials_of(components)) for components in (1, 2, 3)] == [4, 10, 20]


@pytest.mark.parametrize("distance", [1.0, 1.25])
@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
def test_waves_decay_as_the_five_point_laplacian_has_them(walls, distance):
    x = np.arange(16)
    wave = np.cos(np.pi * 3 * (x + 0.5) / 16) if walls else np.cos(2 * np.pi * 3 * x / 16)
    rate = (2 - 2 * np.cos(np.pi * 3 / 16 if walls else 2 * np.pi * 3 / 16)) / distance**2
    times = torch.tensor([[0.0], [0.7], [40.0]], dtype=torch.float64)
    made = _diffusion(times, 16, 1, walls, distance) @ torch.from_numpy(wave)
    np.testing.assert_allclose(made, np.exp(-rate * times.numpy()) * wave, atol=1e-12)
    found = _diffusion(times, 16, 1, walls, distance)
    np.testing.assert_allclose(found.sum(1), np.ones((3, 16)), atol=1e-12)  # nothing is lost
    assert found.min() > -1e-12  # and no new extremes are made


@pytest.mark.parametrize("size", [2, 3, 5])
def test_nothing_is_lost_through_walls_however_near(size):
    found = _diffusion(torch.tensor([[0.7]], dtype=torch.float64), size, 1, True, 1.0)[0]
    np.testing.assert_allclose(found.sum(0), np.ones(size), atol=1e-12)
    assert found[0, 1] > 0.1


@pytest.mark.parametrize("finer", [1, 2, 3])
@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 12])
def test_what_is_refined_has_the_means_of_its_cells(size, walls, finer):
    advance, frame = Advance(coefficients(), BOUNDS, (size, 6), Domain(walls, finer=finer)), drawn(1, 2, size, 6)
    assert advance.refined(frame).shape == (1, 2, finer * size, finer * 6)
    torch.testing.assert_close(advance.means(advance.refined(frame)), frame)
    ones = torch.ones(finer * size, dtype=torch.float64)
    torch.testing.assert_close(refinement(size, finer, walls, frame.device).sum(1), ones)


@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
def test_refinement_is_of_fifth_order(walls):
    errors = []
    for size in (24, 48):
        edges = np.linspace(0, np.pi if walls else 2 * np.pi, 2 * size + 1)
        points = np.diff(np.sin(3 * edges)) / np.diff(edges) / 3  # means of the cosine, which walls mirror
        expected = torch.from_numpy(points).view(size, 2).T  # first the first points of all cells
        made = refinement(size, 2, walls, expected.device) @ expected.mean(0)
        errors.append((made.view(2, size) - expected).abs().max())
    assert 0.8 * 2**5 < errors[0] / errors[1] < 1.25 * 2**5


@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
def test_what_is_corrected_has_the_means_of_the_frame(walls):
    advance, frame = Advance(coefficients(), BOUNDS, (5, 6), Domain(walls, finer=3)), drawn(1, 2, 5, 6)
    state = drawn(1, 2, 15, 18, seed=1)
    torch.testing.assert_close(advance.means(advance.corrected(state, frame)), frame)
    torch.testing.assert_close(advance.corrected(state, advance.means(state)), state)
    torch.testing.assert_close(advance.corrected(0 * state, frame), advance.refined(frame))


def test_steps_are_of_second_order_and_exact_without_diffusion_up_to_the_fourth(monkeypatch):
    state = drawn(1, 2, 8, 8, size=0.5)
    for diffusion, order in (((0.1, 0.05), 2), ((0.0, 0.0), 4)):
        ends = []
        for steps in (2, 4, 8):
            monkeypatch.setattr("rdjepa.forecasters.cubic.STEPS", steps)
            ends.append(Advance(coefficients(size=0.3, diffusion=diffusion), BOUNDS, (4, 4), FINE).interval(state))
        ratio = (ends[0] - ends[1]).norm() / (ends[1] - ends[2]).norm()
        assert 0.7 * 2**order < ratio < 1.5 * 2**order


def test_rates_are_the_sum_of_the_monomials():
    weights, state = coefficients(3), drawn(3, 2, 6, 4)
    expected = torch.einsum("bcn,nbyx->bcyx", weights[..., :-1], torch.stack(products(state)))
    torch.testing.assert_close(Advance(weights, BOUNDS, (3, 2), FINE)._kinetics(state), expected)


def test_what_is_kept_has_values_whoever_asks_first():
    """A trace has none, and tensors of inference mode take no part in training."""

    class Laplacian(torch.nn.Module):
        def forward(self, fields):
            return _laplacian(fields, PLAIN)

    fields = drawn(1, 2, 6, 5)
    functions: Any = (second_difference, _mean_second_difference, refinement, _differentiation)
    for function in functions:
        function.cache_clear()
    with torch.inference_mode():
        _laplacian(fields, Domain(walls=True))
        _differentiation(2, fields.device)
        refinement(6, 2, True, fields.device)
        _mean_second_difference(6, 2, 2, True, 1.0, fields.device)
    torch.export.export(Laplacian(), (fields,))
    kept = [*second_difference(6, 1, False, 1.0, fields.device), *second_difference(6, 1, True, 1.0, fields.device)]
    kept += [refinement(6, 2, True, fields.device), _mean_second_difference(6, 2, 2, True, 1.0, fields.device)]
    for each in (*kept, _differentiation(2, fields.device)):
        assert type(each) is torch.Tensor and not each.is_inference()
