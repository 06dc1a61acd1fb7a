"""File input and output: atomic writing, tensors, checkpoints, the hub, provenance, model cards, Markdown tables."""
