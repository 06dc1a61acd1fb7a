"""Parts of a computation that do not need each other, side by side on as many threads as torch has."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Part = TypeVar("Part")
Found = TypeVar("Found")


def apart(function: Callable[[Part], Found], parts: Iterable[Part]) -> list[Found]:
    """Return what a function makes of each part, in their order.

    Small tensors keep one thread busy, not several; so each part gets one, where there are several of both. When one
    fails, or the user interrupts, those that have not begun are left.
    """
    parts, count = list(parts), torch.get_num_threads()
    if count == 1 or len(parts) < 2:
        return [function(part) for part in parts]
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def alone(part: Part) -> Found:
        torch.set_num_threads(1)  # for this thread; what torch keeps of it for later ones is set right in the end
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            return function(part)

    pool = ThreadPoolExecutor(min(count, len(parts)))
    try:
        return list(pool.map(alone, parts))
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(count)
