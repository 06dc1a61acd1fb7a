"""Many jobs, some after others: in this process, in local worker processes, or on a running Dask cluster."""

import contextlib
import heapq
import logging
import multiprocessing
import os
import re
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from typing import Any

from rdjepa import extensions, memory
from rdjepa.checks import require_packages
from rdjepa.errors import ArgumentError

MOST_WORKERS = 4096
PATIENCE = "20s"  # with a scheduler that does not answer
ADDRESS = re.compile(r"[a-z]+://\S+|[\w.\[\]:-]+:\d{1,5}")


def check_workers(workers: int | None, scheduler: str | None) -> None:
    """Check who is to compute, before anything is written.

    Raises:
        ArgumentError: fewer than one worker or more than any machine has, no address, one that does not answer, or
            a script without `if __name__ == "__main__":`, which its own workers would run again.
    """
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise ArgumentError(
            f"expected at least one worker and at most {MOST_WORKERS}, got {workers}; correct --workers"
        )
    if (workers or 1) > 1 and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ArgumentError(
            "expected a script that starts its workers under if __name__ == '__main__':, got one that every worker "
            "runs again when it imports it; move the call there, and leave above it what is defined and registered"
        )
    if scheduler is not None and not ADDRESS.fullmatch(scheduler):
        raise ArgumentError(f"expected the address of a scheduler as tcp://host:port, got {scheduler!r}; correct it")
    if scheduler is not None:
        _client(scheduler).close()


def _distributed() -> Any:
    """Import the package of clusters, a second's work that one process does without.

    Raises:
        ArgumentError: it is not installed.
    """
    require_packages("of a cluster", "cluster", "distributed", instead="compute in one process")
    import distributed

    return distributed


def _client(address: Any) -> Any:
    """Return a Dask client of a scheduler's address, or of a local cluster.

    Raises:
        ArgumentError: it does not answer.
    """
    distributed = _distributed()
    try:
        if isinstance(address, str):
            distributed.comm.resolve_address(address)  # a name that nobody knows is not waited for
        return distributed.Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:  # no answer, or no address
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"expected a Dask scheduler at {address}, got no answer ({reason}); start it") from error


@contextlib.contextmanager
def completed(
    function: Callable[..., Any],
    jobs: Sequence[tuple],
    names: Sequence[str],
    *,
    after: Mapping[int, int] | None = None,
    begins: Callable[[int], bool] = lambda _: True,
    workers: int = 1,
    scheduler: str | None = None,
    retries: int = 0,
    held: int = 1,
) -> Iterator[Iterator[tuple[int, Any]]]:
    """Call a function on every job; yield (position of the job, result) in the order in which the jobs finish.

    Jobs begin in the order given, as far as they need not wait for others. On workers the error that ended a job is
    returned as its result, so that one job does not stop the others; in this process it is raised. When a worker is
    killed, its job starts again on another.

    Args:
        function: importable on the workers.
        jobs: arguments of each call.
        names: of the jobs, all different; a cluster takes an equal call of the same name for the same job.
        after: position of a job that has to wait -> that of an earlier one, whose result has been yielded before it
            begins.
        begins: asked, once its wait is over, whether the job of a position is done at all; if not, neither are those
            that wait for it, and none of them is yielded.
        workers: local processes, each with one thread; 1 computes in this process.
        scheduler: address of a running Dask scheduler, used instead of local processes.
        retries: further tries of a job that raised.
        held: jobs that a local worker has at a time. With 1 no job waits behind a long one while another worker is idle
            (Dask gives all out at once, and may not move them later); with 2 no worker waits for its next, short one.

    Raises:
        ArgumentError: fewer than one worker, a scheduler that does not answer, or no package for either.
    """
    check_workers(workers, scheduler)
    waiting: dict[int | None, list[int]] = defaultdict(list)  # None: of those that wait for nothing
    for position in range(len(jobs)):
        waiting[(after or {}).get(position)].append(position)
    if scheduler is None and (workers == 1 or len(jobs) < 2):
        yield _in_turn(function, jobs, waiting, begins)
        return
    distributed = _distributed()
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            with _interrupts_later(), _freed_memory_kept():
                local = distributed.LocalCluster(
                    n_workers=min(workers, len(jobs)),
                    threads_per_worker=1,
                    dashboard_address=":0",
                    silence_logs=logging.CRITICAL,
                    memory_limit=None,  # freed memory is kept, which Dask would take for use, and pause the worker
                )
                address = stack.enter_context(local)
        else:
            address = scheduler
        client = stack.enter_context(_client(address))
        if extensions.loaded():
            client.register_plugin(_loading(distributed.WorkerPlugin), name=_loading.__name__)

        def submitted(position: int) -> Any:  # one by one: client.map has one priority for all
            key = _key(names[position], function, jobs[position])
            positions[key] = position
            return client.submit(function, *jobs[position], key=key, retries=retries, priority=-position)

        most = len(jobs) if scheduler else held * min(workers, len(jobs))  # a cluster may grow
        ready, running = waiting[None], distributed.as_completed()

        def begin() -> None:
            while ready and running.count() < most:
                running.add(submitted(heapq.heappop(ready)))

        def finished() -> Iterator[tuple[int, Any]]:
            begin()
            for future in running:
                begin()
                position, error = positions[future.key], future.exception()
                yield position, error if error else future.result()
                future.release()  # else the cluster keeps every result until the end
                for each in filter(begins, waiting[position]):
                    heapq.heappush(ready, each)
                begin()

        positions: dict[str, int] = {}
        yield finished()


def _in_turn(
    function: Callable[..., Any], jobs: Sequence[tuple], waiting: Mapping[int | None, list[int]], begins: Callable
) -> Iterator[tuple[int, Any]]:
    """Call a function on one job after the other, in their order."""
    ready = set(waiting[None])
    for position, job in enumerate(jobs):
        if position in ready:
            yield position, function(*job)
            ready.update(filter(begins, waiting[position]))


def _key(name: str, function: Callable[..., Any], job: tuple) -> str:
    """Return what a cluster knows a call by: other runs may have jobs of the same name in other directories."""
    from dask.tokenize import tokenize

    return f"{name}-{tokenize(function.__module__, function.__qualname__, job)}"


def _loading(plugin: type) -> Any:
    """Return a plugin of Dask that loads in every worker, also in one that is started later, the files loaded here."""
    files = extensions.loaded()

    class Loading(plugin):
        def setup(self, worker: Any) -> None:
            for path in files:
                extensions.load(path)

    return Loading()


@contextlib.contextmanager
def _freed_memory_kept() -> Iterator[None]:
    """Start workers that keep freed memory; Dask has them give back all of it, which nearly doubles a training."""
    from dask import config

    name = "distributed.nanny.pre-spawn-environ"
    kept = {variable: os.environ.get(variable, size) for variable, (_, size) in memory.SETTINGS.items()}
    with config.set({name: config.get(name) | kept}):
        yield


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Defer an interrupt until the workers have started, so that they can be stopped in order.

    The workers inherit the blocked signal: an interrupt of the whole group reaches only this process, which then ends
    them, and none of them prints a traceback.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    received: list[int] = []
    resource_tracker.ensure_running()  # the first worker would start it, which unblocks the signal
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if received:
        signal.raise_signal(signal.SIGINT)
