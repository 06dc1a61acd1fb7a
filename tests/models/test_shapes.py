"""The suite runs with the declared array shapes checked (see conftest.py); what broadcasting would hide is refused."""

import pytest
import torch
from jaxtyping import TypeCheckError

from rdjepa.forecasters.linear import Linear
from rdjepa.models.predictor import Predictor
from rdjepa.models.tokenizer import Tokenizer


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
