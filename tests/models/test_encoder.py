import pytest
import torch

from rdjepa.errors import ArgumentError
from rdjepa.models.encoder import Encoder
from rdjepa.models.tokenizer import Tokenizer


def encoder() -> Encoder:
    return Encoder(32, 2, (1, 1, 1, 1, 1), temporal_blocks=2)


def test_patches_are_row_major_and_whole():
    field = torch.arange(128 * 128.0).view(1, 1, 128, 128)
    patches = Tokenizer(8).patches(field)
    assert patches.shape == (1, 1, 256, 64)
    assert torch.equal(patches[0, 0, 17].view(8, 8), field[0, 0, 8:16, 8:16])


def test_tokens_average_the_components():
    tokenizer = Tokenizer(16)
    fields = torch.randn(1, 2, 128, 128)
    parts = [p(x) for p, x in zip(tokenizer.project, tokenizer.patches(fields)[0], strict=True)]
    mean = (parts[0] + tokenizer.identity[0] + parts[1] + tokenizer.identity[1]) / 2
    assert torch.allclose(tokenizer(fields)[0], mean + tokenizer.mix(tokenizer.norm(mean)), atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 4, 2, 8, 8), (1, 4, 1, 16, 16), (1, 4, 16, 16, 2)])
def test_other_fields_than_it_was_built_for_are_refused(shape):
    with pytest.raises(ArgumentError, match=r"expected frames \(B, T, 2, 16, 16\), channels first, got"):
        Encoder(8, 2, (1, 1, 1, 1, 1), 2, 1, side=4, patch=4)(torch.zeros(shape))


def test_latent_grid_of_four_frames_and_of_one():
    frames = torch.randn(2, 4, 2, 128, 128)
    e = encoder()
    assert e(frames).shape == (2, 256, 32)
    assert e(frames[:, :1]).shape == (2, 256, 32)


def test_hidden_patches_have_no_influence_and_visible_ones_do():
    e = encoder()
    frames = torch.randn(1, 4, 2, 128, 128)
    changed = frames.clone()
    changed[:, 2, :, 8:16, 16:24] += 1.0  # patch 16 + 2 of frame 2
    mask = torch.zeros(1, 4, 256, dtype=torch.bool)
    assert not torch.allclose(e(frames, mask), e(changed, mask))
    mask[0, 2, 18] = True
    assert torch.equal(e(frames, mask), e(changed, mask))


def test_an_empty_mask_changes_nothing():
    e = encoder()
    frames = torch.randn(1, 4, 2, 128, 128)
    assert torch.equal(e(frames), e(frames, torch.zeros(1, 4, 256, dtype=torch.bool)))


def test_output_is_layer_normalized():
    z = encoder()(torch.randn(1, 4, 2, 128, 128))
    assert torch.allclose(z.mean(-1), torch.zeros(1, 256), atol=1e-5)
    assert torch.allclose(z.var(-1, unbiased=False), torch.ones(1, 256), atol=1e-2)
