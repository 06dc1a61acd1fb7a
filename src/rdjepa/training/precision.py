"""Mixed precision of the training loops."""

import contextlib

import torch


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager:
    """Mixed precision on a device: bfloat16 autocast, or nothing for float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    if precision != "bfloat16":
        raise ValueError(f"expected the precision float32 or bfloat16, got {precision!r}")
    return torch.autocast(device.type, dtype=torch.bfloat16)
