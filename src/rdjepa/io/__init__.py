"""File input and output: atomic writing, tensors, checkpoints, the hub, provenance and model cards."""
