"""What a cubic equation misses of frames, and the derivatives that are integrated along the way."""

import math

import pytest
import torch

from cubics import BOUNDS, FINE, WALLS, coefficients, drawn
from rdjepa.forecasters.cubic import Advance, monomials_of, products
from rdjepa.forecasters.domain import PLAIN, Domain
from rdjepa.forecasters.squares import BANDS, Derivatives, squares


def test_from_the_second_frame_on_what_is_within_cells_is_what_the_equation_made_of_it():
    """Fronts that move, narrower than a cell: dx/dt = 4 (x + 0.3) (1 - x^2) + D Laplacian x."""
    weights = torch.zeros(1, 2, len(monomials_of(2)) + 1, dtype=torch.float64)
    for c in range(2):
        of = [monomials_of(2).index((c,) * order) for order in range(4)]
        weights[0, c, of] = torch.tensor([1.2, 4, -1.2, -4], dtype=torch.float64)
        weights[0, c, -1] = 0.15
    advance, frames = Advance(weights, BOUNDS, (12, 12), FINE), []
    along = torch.sin(torch.arange(12, dtype=torch.float64) * math.pi / 6)
    state = advance.refined(torch.stack([along[:, None] + along, along[:, None] - along])[None])
    for _ in range(6):
        state = advance.interval(state)
        frames.append(advance.means(state))
    missed = squares(torch.stack(frames[2:], 1), weights, BOUNDS, FINE).value.view(3, BANDS).sum(1)
    assert missed[1] < 0.5 * missed[0] and missed[2] < 0.05 * missed[0]


def test_the_turn_is_the_derivative_of_the_kinetics_of_alike_points_up_to_the_third_order(monkeypatch):
    cells, along, errors = drawn(1, 2, 3, 3), drawn(1, 2, 3, 3, seed=1), []
    state, change = (each.repeat(1, 1, 2, 2) for each in (cells, along))
    for steps in (2, 4):
        monkeypatch.setattr("rdjepa.forecasters.cubic.STEPS", steps)
        advance = Advance(coefficients(), BOUNDS, (3, 3), FINE)
        end, expected = torch.autograd.functional.jvp(advance.react, state, change)
        before, after = (advance.means(torch.stack(products(each), 1)) for each in (state, end))
        made = torch.einsum("bijhw,bjhw->bihw", Derivatives(advance, FINE, 2).turn(before, after), along)
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
