import math

import pytest
import torch

from rdjepa.models.embeddings import lead_time_features, sinusoid, spatial_embedding


def test_sinusoid_puts_all_sines_before_all_cosines():
    e = sinusoid(torch.tensor([3]), 8)[0]
    frequencies = [10000 ** (-2 * j / 8) for j in range(4)]
    expected = [math.sin(3 * f) for f in frequencies] + [math.cos(3 * f) for f in frequencies]
    assert torch.allclose(e, torch.tensor(expected))


def test_sinusoid_refuses_an_odd_width():
    with pytest.raises(ValueError, match="even"):
        sinusoid(torch.arange(2), 7)


def test_spatial_embedding_is_row_half_then_column_half():
    e = spatial_embedding(16, 64).view(16, 16, 64)
    assert torch.equal(e[5, 2, :32], e[5, 11, :32])
    assert torch.equal(e[5, 2, 32:], e[9, 2, 32:])
    assert torch.equal(e[5, 2, :32], sinusoid(torch.tensor([5]), 32)[0])


def test_lead_time_features_keep_their_digits_at_the_highest_octave():
    offsets = torch.arange(9)
    tau = offsets.double() / 8
    angle = 2 * torch.pi * 2.0 ** torch.arange(16, dtype=torch.float64) * tau[:, None]
    exact = torch.cat([angle.sin(), angle.cos(), tau[:, None], tau[:, None] ** 2], dim=-1)
    features = lead_time_features(offsets)
    assert features.shape == (9, 34)
    assert torch.allclose(features.double(), exact, atol=1e-6)
    assert torch.equal(features[8, :16], torch.zeros(16))
    assert torch.equal(features[8, 16:], torch.ones(18))
