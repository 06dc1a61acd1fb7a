"""The roofline of torch code: the seconds that its arithmetic and memory traffic imply on a device.

Williams, Waterman, Patterson, Roofline: an insightful visual performance model, CACM 52 (2009). Every operator that is
dispatched, backward pass and optimizer included, costs the larger of its floating-point operations over the device's
measured rate, of matrix products or of Fourier transforms, and its bytes in and out over the measured copy rate; a view
costs nothing. Operators are taken one by one: a fused program can do better, and data that stay in a cache move faster
than the copy rate.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry


@dataclass(frozen=True)
class Ceilings:
    """Peak rates of a device.

    Attributes:
        products: floating-point operations per second in a product of two square matrices.
        fourier: the same in two-dimensional real Fourier transforms of 128 x 128 points.
        bytes: read and written per second in a copy that is larger than every cache.
    """

    products: float
    fourier: float
    bytes: float


def timings(job: Callable[[], object], device: torch.device, repeats: int) -> list[float]:
    """Return the seconds of each of several runs after a warm-up."""
    taken = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        job()
        if device.type == "cuda":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return taken[1:]


def measure(device: torch.device, dtype: torch.dtype = torch.float32, side: int = 2048) -> Ceilings:
    """Measure the three rates, each by its fastest run."""

    def best(job: Callable[[], object]) -> float:
        return min(timings(job, device, 7))

    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    source = torch.empty(2**27, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    fields = torch.randn(64, 128, 128, device=device)
    return Ceilings(
        products=2 * side**3 / best(lambda: torch.mm(a, b)),
        fourier=2.5 * fields.numel() * math.log2(128**2) / best(lambda: torch.fft.rfft2(fields)),
        bytes=2 * source.numel() / best(lambda: target.copy_(source)),
    )


def _fourier(function: str, args: tuple, out: torch.Tensor) -> float:
    """Count the operations of Fourier transforms: 5 N log2 N for N points, half of it where one side is real."""
    full = args[0] if function == "_fft_r2c" else out
    points = math.prod(full.shape[d] for d in args[1])
    return full.numel() * math.log2(max(points, 2)) * (5 if function == "_fft_c2c" else 2.5)


class Roofline(TorchDispatchMode):
    """A context that adds up operations and implied seconds of the operators in it.

    Attributes:
        flops: floating-point operations; a multiplication and an addition are two.
        seconds: implied by the ceilings.
    """

    def __init__(self, ceilings: Ceilings) -> None:
        super().__init__()
        self.ceilings, self.flops, self.seconds = ceilings, 0.0, 0.0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = function(*args, **kwargs)
        packet = function._overloadpacket
        flops, rate = 0.0, self.ceilings.products
        if packet in flop_registry:
            flops = flop_registry[packet](*args, **kwargs, out_val=out) * (
                4 if isinstance(out, torch.Tensor) and out.is_complex() else 1
            )
        elif packet.__name__.startswith("_fft_"):
            flops, rate = _fourier(packet.__name__, args, out), self.ceilings.fourier
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        made = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        places = {x.untyped_storage().data_ptr() for x in given}
        viewed = bool(made) and all(x.untyped_storage().data_ptr() in places for x in made)
        moved = 0 if viewed and not function._schema.is_mutable else sum(x.nbytes for x in given + made)
        self.flops += flops
        self.seconds += max(flops / rate, moved / self.ceilings.bytes)
        return out
