"""How a pretraining is computed; nothing here changes what is computed beyond the order of rounding."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rdjepa.checks import Count, among, check
from rdjepa.errors import ArgumentError, InsufficientMemoryError, out_of_memory

MODES = ("no", "yes", "graphs")
PLACES = ("memory", "mapped", "device")


@dataclass(frozen=True)
class Engine:
    """Choices of speed and memory.

    Attributes:
        compile: "no", "yes" (kernels fused by torch.compile), or "graphs" (the plain kernels of both passes of a step
            replayed as one CUDA graph, `rdjepa.models.replay`; several processes launch them as they are).
        accumulate: passes that a batch is divided into, one after the other; more of them take less memory.
        frames: where the frames are kept: "memory", "mapped" (from a file, for data larger than memory), or "device".
    """

    compile: str = "no"
    accumulate: Count = 1
    frames: str = "memory"

    def __post_init__(self) -> None:
        """Refuse unknown values, and CUDA graphs with accumulated passes."""
        check(self)
        among(self.compile, MODES, "compile")
        among(self.frames, PLACES, "frames")
        if self.replays and self.accumulate > 1:
            raise ArgumentError("expected one pass a step with CUDA graphs, got more; use compile no, or accumulate 1")

    @property
    def compiled(self) -> bool:
        """Whether the networks are compiled."""
        return self.compile == "yes"

    @property
    def replays(self) -> bool:
        """Whether both passes of a step are replayed as one CUDA graph."""
        return self.compile == "graphs"

    def prepare(self, networks: Sequence[nn.Module]) -> None:
        """Compile networks in place, each for every shape that occurs."""
        if self.compiled:
            for module in networks:
                module.compile(dynamic=False)

    def futures(self, frames: Tensor, batch: int) -> Tensor:
        """Pad target frames (n, C, H, W) with zeros to a multiple of the batch: few shapes to compile or capture."""
        missing = -len(frames) % batch if self.compiled or self.replays else 0
        return F.pad(frames, (0, 0) * 3 + (0, missing)) if missing else frames

    def eager(self) -> contextlib.AbstractContextManager:
        """Return a context without compilation, for shapes that occur too seldom to be worth it."""
        return torch.compiler.set_stance("force_eager") if self.compiled else contextlib.nullcontext()


def fastest(device: torch.device, accumulate: int = 1) -> Engine:
    """Return the fastest choices for a device that take no minutes before the first step.

    On a GPU: frames on it, and CUDA graphs, or plain kernels for accumulated passes. On a CPU: plain kernels and frames
    in memory.
    """
    if device.type != "cuda":
        return Engine(accumulate=accumulate)
    return Engine("graphs" if accumulate == 1 else "no", accumulate, "device")


@contextlib.contextmanager
def explain_out_of_memory() -> Iterator[None]:
    """Turn running out of memory into a sentence.

    Raises:
        InsufficientMemoryError: instead of what Python, NumPy or torch raise.
    """
    try:
        yield
    except InsufficientMemoryError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise InsufficientMemoryError(
            "expected enough memory for a step, got too little; raise --accumulate, keep the frames elsewhere "
            "(--frames memory or mapped), or take a smaller preset"
        ) from error
