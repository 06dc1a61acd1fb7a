"""Many trajectories by key: in this process, in local worker processes, or on a running Dask cluster.

A trajectory depends on its key alone, so the number of workers and the order change nothing. What is whole on disk is
kept; a build that was killed goes on where it was, and has lost only what was in flight.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rdjepa.data import store
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Key

Progress = Callable[[int, int], None]
RETRIES = 3


@dataclass(frozen=True)
class Built:
    """What a build did.

    Attributes:
        made: number of trajectories that were simulated.
        kept: number that were there already.
        failed: key -> why it could not be made.
    """

    made: int
    kept: int
    failed: Mapping[Key, str]


def make(base: Path, source: str, key: Key) -> str:
    """Simulate and store one trajectory; returns "" or the reason why no draw passed. Other errors are raised.

    Args:
        base: dataset directory.
        source: what `rdjepa.systems.get` takes: the name of the key's system, or the file that defines it.
        key: the trajectory.
    """
    try:
        store.write(base, simulate(source, seed=key.index, regime=key.regime, split=key.split))
    except RuntimeError as error:
        return str(error)
    return ""


def build(
    base: Path | str,
    keys: Sequence[Key],
    *,
    sources: Mapping[str, str] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Built:
    """Make the trajectories of some keys that are not there yet.

    Args:
        base: dataset directory; on a cluster a path that all workers share.
        keys: what to make.
        sources: system name -> file that defines it, for systems of the user.
        workers: local processes, each with one thread; 1 computes in this process.
        scheduler: address of a running Dask scheduler, used instead of local processes.
        progress: called with the number of trajectories done and their total.

    Raises:
        DataError: the disk is full or not writable.
        ValueError: fewer than one worker, or a scheduler that does not answer.
    """
    if workers < 1:
        raise ValueError(f"expected at least one worker, got {workers}; raise --workers")
    base, sources = Path(base).resolve(), sources or {}
    missing = [key for key in keys if not store.is_complete(store.path_of(base, key), verify=True)]
    done = kept = len(keys) - len(missing)
    if progress:
        progress(done, len(keys))
    failed: dict[Key, str] = {}
    jobs = [(base, sources.get(key.system, key.system), key) for key in missing]
    with _results(jobs, workers, scheduler) as results:
        for key, reason in results:
            done += 1
            if reason:
                failed[key] = reason
            if progress:
                progress(done, len(keys))
    return Built(len(missing) - len(failed), kept, failed)


@contextlib.contextmanager
def _results(
    jobs: list[tuple[Path, str, Key]], workers: int, scheduler: str | None
) -> Iterator[Iterator[tuple[Key, str]]]:
    """Pairs of key and reason in the order in which they finish."""
    if scheduler is None and (workers == 1 or len(jobs) < 2):
        yield ((job[2], make(*job)) for job in jobs)
        return
    from distributed import Client, LocalCluster, as_completed  # a second's import that one process does without

    with contextlib.ExitStack() as stack:
        if scheduler is None:
            local = LocalCluster(
                n_workers=min(workers, len(jobs)),
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            )
            address = stack.enter_context(local)
        else:
            address = scheduler
        try:
            client = stack.enter_context(Client(address, timeout="20s"))
        except OSError as error:
            raise ValueError(f"expected a Dask scheduler at {scheduler}, got no answer ({error}); start it") from error
        names = [str(job[2]) for job in jobs]
        futures = client.map(make, *zip(*jobs, strict=True), key=names, retries=RETRIES)
        keys = {future.key: job[2] for future, job in zip(futures, jobs, strict=True)}

        def finished() -> Iterator[tuple[Key, str]]:
            for future in as_completed(futures):
                error = future.exception()
                if isinstance(error, ValueError | OSError):  # a full disk, a step above its limit: no use to go on
                    raise error
                yield keys[future.key], f"{type(error).__name__}: {error}" if error else future.result()
                future.release()

        yield finished()
