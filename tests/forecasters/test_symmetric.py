"""Images are those of the symmetries of the square and solutions of the same equation; forecasts may turn with them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rdjepa import forecasters, systems
from rdjepa.forecasters.domain import Domain
from rdjepa.forecasters.fno import Config
from rdjepa.forecasters.persistence import Persistence
from rdjepa.forecasters.rd_jepa import DecoderKept
from rdjepa.forecasters.symmetric import Symmetric, images, upright
from rdjepa.models.rdjepa import build
from rdjepa.pde.rollout import rollout

SQUEEZED = Domain(spacing=(1.0, 2.0))


def test_the_images_of_a_square_are_a_group_of_eight():
    field = torch.arange(9.0).reshape(1, 3, 3)
    found = images(field)
    assert torch.equal(found[0], field)
    distinct = {tuple(image.flatten().tolist()) for image in found}
    assert len(distinct) == 8
    for image in found:
        assert {tuple(again.flatten().tolist()) for again in images(image)} == distinct


def test_other_rectangles_keep_their_shape_without_quarter_turns():
    field = torch.arange(6.0).reshape(2, 3)
    found = images(field)
    assert [image.shape for image in found] == [(2, 3)] * 4
    assert len({tuple(image.flatten().tolist()) for image in found}) == 4


def test_the_images_of_a_solution_are_the_solutions_from_the_images_of_its_start():
    system = systems.get("gray-scott")
    numerics = replace(system.numerics, size=32, stored=32, first=0.05, last=1.0, frames=3)
    p = system.draw(seed=0)
    system = replace(system, numerics=numerics)
    state = system.regimes["id"].initial_conditions[0].build(numerics.grid, p, np.random.default_rng(0))
    solution = rollout(system, p, state)
    for start, image in zip(
        images(torch.from_numpy(state)), images(torch.from_numpy(solution).movedim(-1, 1)), strict=True
    ):
        np.testing.assert_allclose(rollout(system, p, start.numpy().copy()), image.movedim(1, -1), rtol=1e-4, atol=1e-5)


def test_squares_of_cells_that_are_none_have_no_quarter_turns():
    assert len(images(torch.arange(9.0).reshape(3, 3), SQUEEZED)) == 4


@pytest.mark.parametrize("shape", [(2, 3, 6, 6), (2, 3, 6, 8)])
def test_every_image_is_turned_back(shape):
    fields = torch.randn(shape)
    assert all(torch.equal(image, fields) for image in upright(images(fields)))


@pytest.mark.parametrize(("domain", "count"), [(Domain(), 8), (SQUEEZED, 4)])
def test_a_forecast_turns_with_its_context(tiny, domain, count):
    network = DecoderKept(build("tiny", seed=0)).eval()
    context = torch.randn(2, 4, 2, tiny.grid, tiny.grid)
    with torch.no_grad():
        symmetric, plain = Symmetric(network, domain), network(context)
        forecast, turned = symmetric(context), images(context, domain)
        assert len(turned) == count
        for image, expected in zip(turned, images(forecast, domain), strict=True):
            torch.testing.assert_close(symmetric(image), expected, rtol=1e-5, atol=1e-5)
        assert not torch.allclose(network(turned[1]), images(plain, domain)[1], atol=1e-3)


def test_the_mean_square_error_over_all_images_is_never_larger():
    network = forecasters.build("fno", Config(width=4, layers=1, modes=4, readout=4, grid=16), seed=0)
    contexts = torch.stack(images(torch.randn(4, 2, 16, 16)))
    truth = torch.stack(images(torch.randn(5, 2, 16, 16)))
    with torch.no_grad():
        plain, mean = ((model(contexts) - truth).square().mean() for model in (network, Symmetric(network)))
    assert mean < plain


def test_what_turns_with_its_context_already_stays_as_it_is():
    context = torch.randn(2, 4, 2, 8, 8)
    torch.testing.assert_close(Symmetric(Persistence())(context), Persistence()(context))


def test_contexts_are_described_as_the_network_does(tiny):
    network = DecoderKept(build("tiny", seed=0)).eval()
    context = torch.randn(2, 4, 2, tiny.grid, tiny.grid)
    symmetric, expected = Symmetric(network), network.description(context)
    assert expected is not None
    for found in (symmetric.description(context), symmetric.latent_summary(*symmetric.features(context))):
        assert found is not None and torch.equal(found, expected)
