"""Weights drawn from a seed, apart from the random numbers of the program around.

Layers draw their weights from a generator that all threads of a program share.
"""

import contextlib
import threading
from collections.abc import Iterator

import torch

_ALONE = threading.RLock()  # a network that is built from a seed may build others


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw what layers draw in a block from a seed, and leave torch's global generators as they were.

    One thread at a time is in such a block, so a seed gives the same weights in every thread. Nothing keeps threads
    out that draw outside of such blocks.
    """
    with _ALONE:
        generators = _generators()
        before = [generator.get_state() for generator in generators]
        try:
            for generator in generators:
                generator.manual_seed(seed)
            yield
        finally:
            for generator, state in zip(generators, before, strict=True):
                generator.set_state(state)


def _generators() -> list[torch.Generator]:
    """Return the generators that weights are drawn from: of the CPU, and of a GPU that is torch's default device."""
    device = torch.get_default_device()
    if device.type != "cuda":
        return [torch.default_generator]
    torch.cuda.init()  # there are no generators before
    return [torch.default_generator, torch.cuda.default_generators[device.index or 0]]
