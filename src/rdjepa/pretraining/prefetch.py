"""The batches of a run in order; with a GPU, a second thread prepares the next one while the current one trains."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Self

import torch

from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Batch, Dataset, Plan
from rdjepa.pretraining.targets import Sampler


class Prefetcher:
    """Batches number `first`, `first` + 1, ... of a run, each as the parts that this process computes.

    Frames in memory are cut in the second thread. Frames on the device are cut in the caller's thread, so that no
    other one launches work on the device; the second thread then only draws the plan. On a CPU there is no second
    thread: preparing takes milliseconds, and threads of two pools that share the cores cost a quarter of the step.

    Attributes:
        waited: seconds that `next` has waited for prepared batches so far.
    """

    def __init__(
        self,
        dataset: Dataset,
        config: PretrainConfig,
        sampler: Sampler,
        side: int,
        parts: list[slice],
        device: torch.device,
        first: int,
    ) -> None:
        self.dataset, self.config, self.sampler = dataset, config, sampler
        self.side, self.parts, self.device = side, parts, device
        self.resident = dataset.frames.table.device.type == device.type != "cpu"
        self.index, self.waited = first, 0.0
        self.thread = None if device.type == "cpu" else ThreadPoolExecutor(1)
        self.upcoming = self._begin(first)

    def next(self) -> list[Batch]:
        """Return the parts of the next batch on the device, and start preparing the one after it."""
        began = time.perf_counter()
        prepared = self.upcoming()
        self.waited += time.perf_counter() - began
        self.index += 1
        self.upcoming = self._begin(self.index)
        cut = [self.dataset.cut(part) if isinstance(part, Plan) else part for part in prepared]
        return [batch.to(self.device) for batch in cut]

    def _begin(self, index: int) -> Callable[[], list[Plan] | list[Batch]]:
        """Start preparing a batch; return a function that waits for it."""
        if self.thread is None:
            return partial(self._prepare, index)
        return self.thread.submit(self._prepare, index).result

    def _prepare(self, index: int) -> list[Plan] | list[Batch]:
        config, weights = self.config, dict(self.config.weights)
        plans = [
            self.dataset.plan(config.seed, index, config.batch, self.side, self.sampler, part, weights, config.strides)
            for part in self.parts
        ]
        if self.resident:
            return plans
        batches = [self.dataset.cut(plan) for plan in plans]
        return [batch.pinned() for batch in batches] if self.device.type == "cuda" else batches

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the second thread."""
        if self.thread is not None:
            self.thread.shutdown(cancel_futures=True)
