"""The suite runs with the declared array shapes checked (see conftest.py); what broadcasting would hide is refused."""

import pytest
import torch
from jaxtyping import TypeCheckError

from rdjepa.forecasters.linear import Linear
from rdjepa.forecasters.loss import forecast_loss
from rdjepa.models.predictor import Predictor
from rdjepa.models.tokenizer import Tokenizer
from rdjepa.pretraining.loss import jepa_loss


def test_offsets_that_would_broadcast_over_the_queries_are_refused():
    predictor, context, patches = Predictor(32, 1, 1, side=4), torch.randn(2, 16, 32), torch.zeros(2, 5).long()
    assert predictor(context, patches, patches).shape == (2, 5, 32)
    with pytest.raises(TypeCheckError, match="offsets"):
        predictor(context, patches, patches[:1])


def test_integer_fields_are_refused():
    with pytest.raises(TypeCheckError, match="fields"):
        Tokenizer(8)(torch.zeros(1, 2, 16, 16).long())


def test_a_context_without_a_batch_is_refused():
    with pytest.raises(TypeCheckError, match="context"):
        Linear()(torch.zeros(4, 2, 8, 8))


def test_targets_that_would_broadcast_over_the_predictions_are_refused():
    fields, latent = torch.randn(2, 5, 2, 8, 8), torch.randn(2, 6, 16)
    assert forecast_loss(fields, fields).shape == jepa_loss(latent, latent).shape == ()
    with pytest.raises(TypeCheckError, match="target"):
        forecast_loss(fields, fields[:, :1])
    with pytest.raises(TypeCheckError, match="target"):
        jepa_loss(latent, latent[:1])


def test_fields_without_components_are_refused_by_the_loss():
    with pytest.raises(TypeCheckError, match="prediction"):
        forecast_loss(torch.randn(8, 8), torch.randn(8, 8))
