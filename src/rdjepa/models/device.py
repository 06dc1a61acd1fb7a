"""Where and in which precision networks compute."""

import contextlib

import torch

from rdjepa.errors import ArgumentError


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager:
    """Mixed precision on a device: bfloat16 autocast, or nothing for float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    if precision != "bfloat16":
        raise ArgumentError(f"expected the precision float32 or bfloat16, got {precision!r}")
    return torch.autocast(device.type, dtype=torch.bfloat16)


def device_named(name: str) -> torch.device:
    """Turn "auto", "cpu", "cuda" or "mps" into a device; auto takes a GPU when there is one.

    Raises:
        ArgumentError: the device is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ArgumentError(f"expected the device auto, cpu or a GPU of this machine, got {name!r}") from error
    return device
