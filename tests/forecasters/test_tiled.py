import numpy as np
import pytest
import torch

from rdjepa.errors import ArgumentError
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.tiled import OVERLAP, Tiled, places, squares


class Pointwise(ForecastModel):
    """Five times the newest frame, by a network that takes 16 points per side only."""

    grid = 16

    @classmethod
    def from_preset(cls, preset):
        return cls()

    @classmethod
    def from_settings(cls, settings):
        return cls()

    def settings(self):
        return {}

    def predict(self, *features):
        assert features[0].shape[-2:] == (16, 16)
        return features[0][:, -1:].expand(-1, 5, -1, -1, -1)

    def latent_summary(self, *features):
        return features[0].mean(dim=(1, 3, 4))

    def parameter_groups(self):
        return []


@pytest.mark.parametrize("walls", [False, True])
@pytest.mark.parametrize("grid", [17, 24, 32, 47, 128])
def test_squares_cover_every_point_and_overlap(grid, walls):
    covered = places(grid, 16, walls)
    assert set(covered.ravel()) == set(range(grid))
    pairs = list(zip(covered, np.roll(covered, -1, axis=0), strict=True))
    for one, other in pairs[:-1] if walls else pairs:
        assert len(set(one) & set(other)) >= OVERLAP * 16 - 1  # starts are rounded
    assert not walls or (covered[0, 0], covered[-1, -1]) == (0, grid - 1)


def test_between_walls_both_sides_are_blended_alike():
    blending = Tiled(Pointwise(), 24, True).blending
    torch.testing.assert_close(blending, blending.flip(0, 1))


@pytest.mark.parametrize("walls", [False, True])
def test_blending_what_was_cut_gives_the_fields_again(walls):
    model = Tiled(Pointwise(), 40, walls)
    fields = torch.randn(2, 3, 40, 40)
    assert torch.allclose(model.blend(model.cut(fields)), fields, atol=1e-5)
    assert torch.allclose(model.blending.sum(dim=1), torch.ones(40))


@pytest.mark.parametrize("walls", [False, True])
def test_a_trajectory_is_cut_as_the_network_is_given_it(walls):
    fields = np.random.default_rng(0).standard_normal((3, 40, 40, 2))
    cut = Tiled(Pointwise(), 40, walls).cut(torch.from_numpy(fields).movedim(-1, 1))  # (3, 2, n, 16, 16)
    assert np.array_equal(np.stack(squares(fields, 16, walls)), cut.permute(2, 0, 3, 4, 1).numpy())


def test_squares_lie_row_by_row():
    model = Tiled(Pointwise(), 32, walls=True)
    squares = model.cut(torch.arange(32.0)[:, None] * 100 + torch.arange(32.0))
    assert [float(square[0, 0]) for square in squares[:3]] == [0, 8, 16]
    assert float(squares[3, 0, 0]) == 800


@pytest.mark.parametrize("walls", [False, True])
def test_a_network_that_sees_points_alone_forecasts_as_on_the_whole_grid(walls):
    context = torch.randn(2, 4, 2, 40, 40)
    made = Tiled(Pointwise(), 40, walls)(context)
    assert torch.allclose(made, context[:, -1:].expand(-1, 5, -1, -1, -1), atol=1e-5)


def test_a_context_is_described_by_the_mean_over_its_squares():
    model = Tiled(Pointwise(), 32, walls=False)
    context = torch.randn(3, 4, 2, 32, 32)
    described = model.latent_summary(*model.features(context))
    assert described is not None and described.shape == (3, 2)


def test_what_cannot_be_tiled_is_refused():
    with pytest.raises(ArgumentError, match="more than 16 points per side to tile, got 16"):
        Tiled(Pointwise(), 16, walls=False)
    with pytest.raises(ArgumentError, match="one that takes any grid"):
        squares(np.zeros((2, 32, 32, 2)), Linear.grid, walls=False)
