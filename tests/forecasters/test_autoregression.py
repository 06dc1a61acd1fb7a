"""The map that is fitted to its own context: exact where it is one, kept in bounds where not."""

import math

import numpy as np
import pytest
import torch

from rdjepa.forecasters.autoregression import MARGIN, Autoregression, solved
from rdjepa.forecasters.base import CONTEXT, HORIZONS


def iterated(step, first, second):
    """Return a context (1, 4, C, H, W) and the five frames after it, of a map of the two newest frames."""
    frames = [first, second]
    while len(frames) < CONTEXT + HORIZONS:
        frames.append(step(frames[-1], frames[-2]))
    table = torch.stack(frames)[None]
    return table[:, :CONTEXT], table[:, CONTEXT:]


def noise(seed, components=2, side=16):
    return torch.randn(components, side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_it_finds_any_linear_map_of_two_frames_and_its_offset():
    mix = torch.tensor([[1.6, -0.2], [0.3, 1.5]], dtype=torch.float64)
    before = torch.tensor([[-0.7, 0.1], [-0.1, -0.6]], dtype=torch.float64)

    def step(newest, older):
        return torch.einsum("ij,jhw->ihw", mix, newest) + torch.einsum("ij,jhw->ihw", before, older) + 0.1

    context, future = iterated(step, noise(0), noise(1))
    assert (Autoregression()(context) - future).abs().max() < 1e-4 * future.abs().max()  # the ridge keeps it from 0


def test_it_finds_a_logistic_map_at_every_point():
    def step(newest, _):
        return 3.7 * newest * (1 - newest)

    context, future = iterated(
        step, torch.rand(2, 16, 16, dtype=torch.float64), torch.rand(2, 16, 16, dtype=torch.float64)
    )
    made = Autoregression()(context)
    assert (made[:, 0] - future[:, 0]).abs().max() < 1e-3
    assert (made - future).square().mean() < 0.01 * (context[:, -1:] - future).square().mean()


def test_waves_that_turn_at_one_rate_are_continued():
    phase = 2 * math.pi * torch.rand(16, 16, dtype=torch.float64)
    frames = torch.stack([torch.stack([torch.cos(0.4 * t + phase), torch.sin(0.4 * t + phase)]) for t in range(9)])[
        None
    ]
    made = Autoregression()(frames[:, :CONTEXT])
    assert (made - frames[:, CONTEXT:]).abs().max() < 1e-3


def test_contexts_do_not_depend_on_each_other_or_on_the_order_of_points():
    context = torch.stack([noise(seed) for seed in range(8)]).reshape(2, 4, 2, 16, 16).float()
    model = Autoregression()
    torch.testing.assert_close(model(context), torch.cat([model(each[None]) for each in context]))
    order = torch.randperm(256, generator=torch.Generator().manual_seed(0))
    shuffled = context.flatten(-2)[..., order].view(context.shape)
    torch.testing.assert_close(model(shuffled), model(context).flatten(-2)[..., order].view(2, 5, 2, 16, 16))


@pytest.mark.parametrize("growth", [0.0, 3.0, 100.0])
def test_it_stays_near_the_values_of_the_context_and_finite(growth):
    context, _ = iterated(lambda newest, _: growth * newest * newest.abs(), noise(0), noise(1))
    made = Autoregression()(context)
    low, high = context.amin((1, 3, 4)), context.amax((1, 3, 4))
    room = (MARGIN * (high - low) * (1 + 1e-9))[:, None, :, None, None]
    assert made.isfinite().all()
    assert (made >= low[:, None, :, None, None] - room).all() and (made <= high[:, None, :, None, None] + room).all()


def test_a_field_at_rest_stays_at_rest():
    context = noise(0).expand(1, 4, 2, 16, 16)
    torch.testing.assert_close(Autoregression()(context), context[:, :1].expand(-1, 5, -1, -1, -1))


@pytest.mark.parametrize("components", [1, 3])
def test_any_number_of_components_and_any_grid(components):
    context = torch.randn(2, 4, components, 6, 10)
    assert Autoregression(components)(context).shape == (2, 5, components, 6, 10)


def test_elimination_solves_what_it_is_given():
    root = torch.randn(3, 8, 8, dtype=torch.float64)
    matrix, right = root @ root.transpose(1, 2) + 0.1 * torch.eye(8), torch.randn(3, 8, 2, dtype=torch.float64)
    np.testing.assert_allclose(solved(matrix, right), torch.linalg.solve(matrix, right), rtol=1e-8)
