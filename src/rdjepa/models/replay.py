"""Forward and backward passes captured once as CUDA graphs, and replayed: a GPU then waits for no launch.

A pass of these networks is thousands of kernels that take a few microseconds each, as long as it takes to launch one.
Nothing is compiled, and the numbers are those of the plain pass where nothing but the gradients changes from pass to
pass: warm-up passes would draw random numbers, and count in running statistics. No network here does either.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor

from rdjepa.errors import Note, warn

WARM_UP = 3  # plain passes before a capture: libraries allocate and choose their kernels in the first ones

Passes = Callable[..., tuple[Tensor, ...]]


class _Captured(NamedTuple):
    """A graph, where it reads and writes, and the gradients that it leaves."""

    graph: torch.cuda.CUDAGraph
    given: tuple[Tensor, ...]
    made: tuple[Tensor, ...]
    gradients: list[Tensor | None]


class Replayed:
    """A function of tensors whose first result is a loss, with the backward pass of that loss.

    A call leaves gradients in the parameters and returns the results, detached. On a GPU every combination of shapes is
    captured when it first occurs; results and gradients are valid until the next call with that combination. On another
    device, and after a capture that failed, of which a note tells, passes are plain.

    Args:
        function: of tensors on one device, without transfers to it or from it.
        parameters: those that the loss reaches.
    """

    def __init__(self, function: Passes, parameters: Iterable[Tensor]) -> None:
        self.function, self.parameters = function, list(parameters)
        self.captured: dict[tuple, _Captured] = {}
        self.plain = False

    def __call__(self, *given: Tensor) -> tuple[Tensor, ...]:
        """Run both passes."""
        if self.plain or given[0].device.type != "cuda":
            return self._passes(given)
        with torch.cuda.device(given[0].device):
            return self._replayed(given)

    def _replayed(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Replay both passes on the current device, which is that of the tensors."""
        kind = tuple((x.shape, x.dtype) for x in given)
        if kind not in self.captured:
            reason = None
            try:
                self.captured[kind] = self._capture(given)
            except RuntimeError as error:
                reason = str(error)
            if reason is not None:  # outside of the handler: its traceback keeps the memory of the failed capture
                self.plain = True
                self.captured.clear()
                warn(f"passes are launched one kernel at a time, since a CUDA graph failed ({reason})", Note)
                torch.cuda.synchronize()
                return self._passes(given)
        found = self.captured[kind]
        for own, new in zip(found.given, given, strict=True):
            own.copy_(new)
        found.graph.replay()
        for parameter, gradient in zip(self.parameters, found.gradients, strict=True):
            parameter.grad = gradient
        return found.made

    def _capture(self, given: tuple[Tensor, ...]) -> _Captured:
        """Capture both passes on tensors of their own."""
        own = tuple(x.clone() for x in given)
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(WARM_UP):
                self._passes(own)
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        self._forget()
        stream, pool = torch.cuda.current_stream(), torch.cuda.graph_pool_handle()
        try:
            # on a stream of this device, while others prepare batches
            with torch.cuda.graph(graph, pool, beside, capture_error_mode="thread_local"):
                made = self._passes(own)
        except RuntimeError:  # before torch 2.12 the stream of the capture stays, and its pool open to later captures
            torch.cuda.set_stream(stream)
            for undo in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
                with suppress(RuntimeError, AttributeError):
                    getattr(torch._C, undo)(torch.cuda.current_device(), pool)
            raise
        return _Captured(graph, own, made, [parameter.grad for parameter in self.parameters])

    def _passes(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        self._forget()
        loss, *others = self.function(*given)
        loss.backward()
        return (loss.detach(), *(x.detach() for x in others))

    def _forget(self) -> None:
        """Leave no gradient, so that the pass that follows makes its own instead of adding to one."""
        for parameter in self.parameters:
            parameter.grad = None
