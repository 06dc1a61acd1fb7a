"""A preset small enough to train inside a test, for tests and for the processes that they start."""

from rdjepa.models.rdjepa import ModelConfig

TINY = ModelConfig(32, 1, (1, 1, 1, 1, 1), temporal_blocks=1, predictor_blocks=1, decoder_width=8, grid=32, patch=4)
