"""A cubic equation: its terms, how it is integrated, and the derivatives of where that ends."""

from typing import Any

import numpy as np
import pytest
import torch

from rdjepa.forecasters.cubic import (
    BANDS,
    Advance,
    _differentiation,
    _diffusion,
    _laplacian,
    _mean_second_difference,
    _products,
    _refinement,
    _second_difference,
    monomials_of,
    squares,
)
from rdjepa.forecasters.domain import PLAIN, Domain

HIGH = torch.full((1, 2, 1, 1), 9.0, dtype=torch.float64)
BOUNDS = (-HIGH, HIGH)
FINE = Domain(finer=2)
WALLS = Domain(walls=True, finer=2, spacing=(1.0, 1.25))


def drawn(*shape, size=1.0, seed=0):
    return size * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def coefficients(count=1, size=0.1, diffusion=(0.4, 0.2)):
    found = drawn(count, 2, 11, size=size)
    found[..., -1] = torch.tensor(diffusion)
    return found


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
    torch.testing.assert_close(_refinement(size, finer, walls, frame.device).sum(1), ones)


@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
def test_refinement_is_of_fifth_order(walls):
    errors = []
    for size in (24, 48):
        edges = np.linspace(0, np.pi if walls else 2 * np.pi, 2 * size + 1)
        points = np.diff(np.sin(3 * edges)) / np.diff(edges) / 3  # means of the cosine, which walls mirror
        expected = torch.from_numpy(points).view(size, 2).T  # first the first points of all cells
        made = _refinement(size, 2, walls, expected.device) @ expected.mean(0)
        errors.append((made.view(2, size) - expected).abs().max())
    assert 0.8 * 2**5 < errors[0] / errors[1] < 1.25 * 2**5


@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
def test_what_is_corrected_has_the_means_of_the_frame(walls):
    advance, frame = Advance(coefficients(), BOUNDS, (5, 6), Domain(walls, finer=3)), drawn(1, 2, 5, 6)
    state = drawn(1, 2, 15, 18, seed=1)
    torch.testing.assert_close(advance.means(advance.corrected(state, frame)), frame)
    torch.testing.assert_close(advance.corrected(state, advance.means(state)), state)
    torch.testing.assert_close(advance.corrected(0 * state, frame), advance.refined(frame))


def test_from_the_second_frame_on_what_is_within_cells_is_what_the_equation_made_of_it():
    """Fronts that move, narrower than a cell: dx/dt = 4 (x + 0.3) (1 - x^2) + D Laplacian x."""
    weights = torch.zeros(1, 2, len(monomials_of(2)) + 1, dtype=torch.float64)
    for c in range(2):
        of = [monomials_of(2).index((c,) * order) for order in range(4)]
        weights[0, c, of] = torch.tensor([1.2, 4, -1.2, -4], dtype=torch.float64)
        weights[0, c, -1] = 0.15
    advance, frames = Advance(weights, BOUNDS, (12, 12), FINE), []
    along = torch.sin(torch.arange(12, dtype=torch.float64) * np.pi / 6)
    state = advance.refined(torch.stack([along[:, None] + along, along[:, None] - along])[None])
    for _ in range(6):
        state = advance.interval(state)
        frames.append(advance.means(state))
    missed = squares(torch.stack(frames[2:], 1), weights, BOUNDS, FINE).value.view(3, BANDS).sum(1)
    assert missed[1] < 0.5 * missed[0] and missed[2] < 0.05 * missed[0]


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
    expected = torch.einsum("bcn,nbyx->bcyx", weights[..., :-1], torch.stack(_products(state)))
    torch.testing.assert_close(Advance(weights, BOUNDS, (3, 2), FINE)._kinetics(state), expected)


def test_the_turn_is_the_derivative_of_the_kinetics_of_alike_points_up_to_the_third_order(monkeypatch):
    cells, along, errors = drawn(1, 2, 3, 3), drawn(1, 2, 3, 3, seed=1), []
    state, change = (each.repeat(1, 1, 2, 2) for each in (cells, along))
    for steps in (2, 4):
        monkeypatch.setattr("rdjepa.forecasters.cubic.STEPS", steps)
        advance = Advance(coefficients(), BOUNDS, (3, 3), FINE)
        end, expected = torch.autograd.functional.jvp(advance.react, state, change)
        before, after = (advance.means(torch.stack(_products(each), 1)) for each in (state, end))
        made = torch.einsum("bijhw,bjhw->bihw", advance.turn(before, after), along)
        errors.append((made - advance.means(expected)).norm())
    assert 0.7 * 2**3 < errors[0] / errors[1] < 1.4 * 2**3


@pytest.mark.parametrize(
    ("domain", "frames", "through"),
    [(PLAIN, 3, False), (Domain(walls=True), 3, False), (FINE, 2, False), (FINE, 4, True), (WALLS, 4, True)],
    ids=["periodic", "walls", "cells", "through cells", "through cells at walls"],
)
def test_derivatives_are_those_of_what_is_missed(domain, frames, through):
    frames, weights = drawn(2, frames, 2, 8, 6, size=0.5).cumsum(1), coefficients(2)
    bounds = (BOUNDS[0].expand(2, -1, -1, -1), BOUNDS[1].expand(2, -1, -1, -1))
    here = squares(frames, weights, bounds, domain, through)
    for place in ((0, 0), (0, 4), (1, 7), (1, 10)):
        step = torch.zeros_like(weights)
        step[:, place[0], place[1]] = 1e-4
        ahead, behind = (squares(frames, weights + sign * step, bounds, domain).value for sign in (1, -1))
        # value - 2 cross d: what the trapezoidal rule leaves out of it is of second order in the step
        torch.testing.assert_close(
            -2 * here.cross[..., place[0] * 11 + place[1]], (ahead - behind) / 2e-4, rtol=0.1, atol=1e-3
        )


def test_squares_foretell_those_nearby_and_their_gram_is_no_less_than_zero():
    frames, weights, away = drawn(1, 4, 2, 12, 12, size=0.1).cumsum(1), coefficients(), drawn(1, 2, 11, size=1e-3)
    gram, cross, value = squares(frames, weights, BOUNDS, PLAIN).summed()
    d = away.flatten(1)
    foretold = value - 2 * (cross * d).sum(1) + torch.einsum("bi,bij,bj->b", d, gram, d)
    there = squares(frames, weights + away, BOUNDS, PLAIN).value.sum(1)
    assert (there - foretold).abs() < 0.1 * (there - value).abs()
    assert torch.linalg.eigvalsh(gram).min() > -1e-6 * gram.diagonal(dim1=1, dim2=2).max()


def test_a_part_is_of_its_interval_and_its_rows():
    frames, weights = drawn(1, 3, 2, 10, 6, size=0.5).cumsum(1), coefficients(diffusion=(0.0, 0.0))
    whole = squares(frames, weights, BOUNDS, PLAIN)
    assert whole.value.shape == (1, 2 * BANDS)
    changed = frames.clone()
    changed[0, -1, :, -1] += 1.0  # a row of the last band, at the end of the last interval
    parts = squares(changed, weights, BOUNDS, PLAIN)
    for one, other in zip(whole, parts, strict=True):
        same = [torch.equal(one[0, part], other[0, part]) for part in range(2 * BANDS)]
        assert same[:-1] == [True] * (2 * BANDS - 1) and (one is whole.gram or not same[-1])


@pytest.mark.parametrize("domain", [PLAIN, FINE], ids=["points", "cells"])
def test_a_path_of_the_equation_itself_misses_nothing(domain):
    weights, frame = coefficients(), drawn(1, 2, 8, 8, size=0.3)
    advance, path = Advance(weights, BOUNDS, (8, 8), domain), [frame]
    state = advance.refined(frame)
    for _ in range(2):
        path.append(advance.means(state := advance.interval(state)))
    found = squares(torch.stack(path, dim=1), weights, BOUNDS, domain)
    assert found.value.max() < 1e-25 and found.cross.abs().max() < 1e-10


def test_what_is_kept_has_values_whoever_asks_first():
    """A trace has none, and tensors of inference mode take no part in training."""

    class Laplacian(torch.nn.Module):
        def forward(self, fields):
            return _laplacian(fields, PLAIN)

    fields = drawn(1, 2, 6, 5)
    functions: Any = (_second_difference, _mean_second_difference, _refinement, _differentiation)
    for function in functions:
        function.cache_clear()
    with torch.inference_mode():
        _laplacian(fields, Domain(walls=True))
        _differentiation(2, fields.device)
        _refinement(6, 2, True, fields.device)
        _mean_second_difference(6, 2, 2, True, 1.0, fields.device)
    torch.export.export(Laplacian(), (fields,))
    kept = [*_second_difference(6, 1, False, 1.0, fields.device), *_second_difference(6, 1, True, 1.0, fields.device)]
    kept += [_refinement(6, 2, True, fields.device), _mean_second_difference(6, 2, 2, True, 1.0, fields.device)]
    for each in (*kept, _differentiation(2, fields.device)):
        assert type(each) is torch.Tensor and not each.is_inference()
