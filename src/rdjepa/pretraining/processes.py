"""Many devices: the processes that `torchrun` started, and the share of each in a pretraining.

Every process holds the whole model (DistributedDataParallel). One optimizer step is one batch of the configuration,
whatever the number of processes: each takes its share of the samples, gradients are averaged, and clipping, AdamW and
the target encoder are then updated alike in every process. So the result is that of one process up to the order of
summation, and a saved state does not depend on the number of processes.
"""

import contextlib
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from rdjepa.errors import ArgumentError, ProcessError

READING = timedelta(hours=6)  # that others wait while the first process reads the data


@dataclass(frozen=True)
class Ranks:
    """This process among those of the run; the default is a run of one.

    Attributes:
        rank: number of this process; number 0 leads: it alone writes and reports.
        size: number of processes.
        local: number of this process on its machine, which is also that of its GPU.
    """

    rank: int = 0
    size: int = 1
    local: int = 0

    @property
    def leads(self) -> bool:
        """Whether this process writes and reports."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """Return this process's own GPU when there are several processes on GPUs; otherwise the device as it is."""
        return torch.device("cuda", self.local) if device.type == "cuda" and self.size > 1 else device

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return a module whose backward pass averages gradients over the processes; for one process, the module."""
        if self.size == 1:
            return module
        with warnings.catch_warnings():  # torch 2.13 renames the argument
            warnings.simplefilter("ignore", FutureWarning)
            return DistributedDataParallel(module, broadcast_buffers=False, gradient_as_bucket_view=True)

    def parts(self, batch: int, accumulate: int) -> list[slice]:
        """Return this process's samples of a batch, one slice per accumulated pass, all of the same size.

        Raises:
            ArgumentError: the batch cannot be divided so.
        """
        size, rest = divmod(batch, self.size * accumulate)
        if rest or not size:
            raise ArgumentError(
                f"expected a batch that {self.size} processes times {accumulate} accumulated passes divide, "
                f"got {batch}; change one of the three"
            )
        firsts = [(number * self.size + self.rank) * size for number in range(accumulate)]
        return [slice(first, first + size) for first in firsts]

    def mean(self, value: Tensor) -> Tensor:
        """Average a value over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
            value /= self.size
        return value

    def wait(self) -> None:
        """Wait until every process has reached this point."""
        if self.size > 1:
            dist.barrier()

    @contextlib.contextmanager
    def leader_first(self) -> Iterator[None]:
        """Run the block in process 0, then in the others, so that they find what it made."""
        if not self.leads:
            self.wait()
        yield
        if self.leads:
            self.wait()

    def check_consistent(self, number: int, what: str) -> None:
        """Refuse to go on when the processes disagree about a number.

        Raises:
            ArgumentError: they do.
        """
        numbers: list = [number]
        if self.size > 1:
            numbers = [None] * self.size
            dist.all_gather_object(numbers, number)
        if len(set(numbers)) > 1:
            raise ArgumentError(
                f"expected the same {what} in every process, got {numbers}; give them one run directory"
            )


def environment() -> Ranks:
    """Read what torchrun (or Slurm through it) wrote into the environment; a run of one without it.

    Raises:
        ArgumentError: what is there was not written by a launcher.
    """
    get = os.environ.get
    given = [get("RANK", "0"), get("WORLD_SIZE", "1"), get("LOCAL_RANK", "0")]
    if not all(number.isdecimal() for number in given):
        raise ArgumentError(
            f"expected numbers in RANK, WORLD_SIZE and LOCAL_RANK, got {', '.join(given)}; start it by torchrun, or "
            "unset them for one process"
        )
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not get(name)]
    if given[1] != "1" and missing:
        raise ArgumentError(
            f"expected {' and '.join(missing)} beside WORLD_SIZE={given[1]}, as a launcher sets them, got none; start "
            "it by torchrun, or unset WORLD_SIZE for one process"
        )
    return Ranks(*map(int, given))


@contextlib.contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the processes of the environment: NCCL between GPUs, Gloo between CPUs. A process that fails ends all.

    Raises:
        ArgumentError: fewer GPUs than processes on this machine.
        ProcessError: in those that are left when one was lost.
    """
    ranks = environment()
    if ranks.size == 1:
        yield ranks
        return
    if device.type == "cuda":
        if ranks.local >= (count := torch.cuda.device_count()):
            raise ArgumentError(
                f"expected a GPU for every process of this machine, got {count} and process {ranks.local}; "
                "lower --nproc-per-node"
            )
        torch.cuda.set_device(ranks.local)
    try:
        with _ended_by_signals():
            own = ranks.device(device) if device.type == "cuda" else None
            dist.init_process_group("nccl" if own else "gloo", timeout=READING, device_id=own)
        yield ranks
    except RuntimeError as error:
        if not _of_a_lost_process(error):
            raise
        raise ProcessError(
            f"expected {ranks.size} processes until the end of the run, got fewer in process {ranks.rank} "
            f"({' '.join(str(error).split())[:100]}); where no other process says why, run the same command with "
            "--resume, which goes on from the last state"
        ) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _of_a_lost_process(error: RuntimeError) -> bool:
    """Return whether an error is of the connection to other processes; Gloo's has no class of its own."""
    return isinstance(error, dist.DistError) or "gloo/transport" in str(error)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals end the process at once: it waits for others in compiled code, where no handler of Python runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
