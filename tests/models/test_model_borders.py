import pytest
import torch

from rdjepa.errors import ArgumentError
from rdjepa.models.borders import BORDERS, Convolution
from rdjepa.models.decoder import Decoder
from rdjepa.models.predictor import latent_laplacian
from rdjepa.models.rdjepa import ModelConfig, build, with_fresh_decoder

SIDE, PATCH, LATENT = 4, 4, 8


def decoder(borders: str) -> Decoder:
    torch.manual_seed(0)
    return Decoder(LATENT, 8, patch=PATCH, borders=borders)


def tokens(grid: torch.Tensor) -> torch.Tensor:
    return grid.flatten(-2).transpose(-2, -1)


def test_kinds_of_borders_share_their_weights():
    states = [decoder(borders).state_dict() for borders in BORDERS]
    for other in states[1:]:
        assert all(torch.equal(other[name], value) for name, value in states[0].items()) and len(other) == len(
            states[0]
        )


def test_a_convolution_padded_with_zeros_is_that_of_the_library():
    ours = Convolution(2, 3, 4, 2)
    theirs = torch.nn.Conv2d(2, 3, 4, stride=2, padding=1)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 2, 8, 8)
    assert torch.equal(ours(x), theirs(x))


@pytest.mark.parametrize("size, stride", [(3, 1), (4, 2)])
@pytest.mark.parametrize("borders, mode", [("periodic", "circular"), ("walls", "replicate")])
def test_other_convolutions_are_those_of_a_continued_field(borders, mode, size, stride):
    layer, x = Convolution(2, 3, size, stride, borders), torch.randn(1, 2, 8, 8)
    wide = torch.nn.functional.pad(x, (1, 1, 1, 1), mode=mode)
    assert torch.allclose(layer(x), torch.nn.functional.conv2d(wide, layer.weight, layer.bias, stride))


@pytest.mark.parametrize("borders, moves", [("periodic", True), ("zeros", False), ("walls", False)])
def test_a_periodic_decoder_alone_moves_with_its_input(borders, moves):
    latent, frame = (
        torch.randn(1, 1, LATENT, SIDE, SIDE),
        torch.randn(1, 2, SIDE * PATCH, SIDE * PATCH),
    )
    model = decoder(borders)
    moved = model(tokens(latent.roll((1, 2), (-2, -1))), frame.roll((PATCH, 2 * PATCH), (-2, -1)))
    expected = model(tokens(latent), frame).roll((PATCH, 2 * PATCH), (-2, -1))
    assert torch.allclose(moved, expected, atol=1e-4) is moves


@pytest.mark.parametrize("borders, unseen", [("periodic", True), ("zeros", False), ("walls", True)])
def test_a_constant_field_shows_no_border_unless_zeros_are_beyond(borders, unseen):
    latent = torch.ones(1, 1, SIDE * SIDE, LATENT)
    out = decoder(borders)(latent, torch.ones(1, 2, SIDE * PATCH, SIDE * PATCH))
    assert bool((out - out[..., :1, :1]).abs().max() < 1e-4) is unseen


def test_the_laplacian_between_walls_is_that_of_the_field_and_its_mirror_image():
    grid = torch.randn(1, 3, SIDE, SIDE)
    mirrored = torch.cat([grid, grid.flip(-2)], dim=-2)
    mirrored = torch.cat([mirrored, mirrored.flip(-1)], dim=-1)
    whole = latent_laplacian(tokens(mirrored)).transpose(1, 2).unflatten(-1, (2 * SIDE, 2 * SIDE))
    assert torch.allclose(latent_laplacian(tokens(grid), "walls"), tokens(whole[..., :SIDE, :SIDE]))


def test_a_copy_for_adaptation_takes_other_borders_and_leaves_the_model():
    model = build("nano", seed=1)
    copy = with_fresh_decoder(model, 2, "walls")
    assert (copy.config.borders, copy.predictor.borders) == ("walls", "walls")
    assert (model.config.borders, model.predictor.borders) == ("zeros", "zeros")
    assert ModelConfig.from_dict(copy.config.to_dict()) == copy.config
    assert "borders" not in model.config.to_dict()
    with pytest.raises(ArgumentError, match="borders among zeros, periodic, walls"):
        with_fresh_decoder(model, 2, "mirrors")
