"""Compute the missing cells of a study and the pretrainings that they start from, and report the progress (S3.1)."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import torch

from rdjepa.data.parallel import check_workers, completed
from rdjepa.errors import CheckpointError, OutputError, StudyError
from rdjepa.io.checkpoint import read_config, read_sources, shipped
from rdjepa.models.device import device_named
from rdjepa.progress import Progress
from rdjepa.study import changes
from rdjepa.study.attempts import BUSY, DONE, KEPT, attempt, name_of, title_of
from rdjepa.study.cell import Cell, identity
from rdjepa.study.collect import known_records
from rdjepa.study.directory import Directory
from rdjepa.study.fingerprints import identifier, shared_identifier
from rdjepa.study.plan import cells, needed, pretrained, settings, starts_of
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import Profile
from rdjepa.study.record import CellRecord
from rdjepa.study.status import status
from rdjepa.study.supply import Supply, keys_of

__all__ = ["RunReport", "cells", "missing_cells", "missing_pretrainings", "outstanding", "run", "status"]


def missing_cells(
    root: Path | str, plan: Sequence[Cell], profile: Profile, known: Sequence[CellRecord] = ()
) -> list[Cell]:
    """Return the cells that are not finished in a study directory, which need not exist, nor among known records.

    Of those the precision of training may be another.

    Raises:
        StudyError: a directory of another version, or begun with other settings or another checkpoint.
    """
    directory, finished = Directory(root), {shared_identifier(record["identity"]) for record in known}
    for name, own in settings(plan, profile).items():
        directory.check(name, own)
    contents = {cell: identity(cell, profile) for cell in plan}
    return [
        cell
        for cell, content in contents.items()
        if shared_identifier(content) not in finished and not directory.is_done(identifier(content))
    ]


def missing_pretrainings(root: Path | str, missing: Sequence[Cell], profile: Profile) -> list[Pretraining]:
    """Return the pretrainings that some cells start from and that are not finished, in the order of their need."""
    directory = Directory(root)
    return [each for each in needed(directory, missing, profile) if not directory.is_done(each.name)]


def outstanding(
    root: Path | str,
    plan: Sequence[Cell],
    profile: Profile,
    data: Path | str | None = None,
    limit: int = Supply.limit,
    known: Path | str | Sequence[Path | str] | None = None,
) -> tuple[Supply, list[Cell], list[Pretraining]]:
    """Return what supplies a run, and the cells and pretrainings that it lacks; arguments and errors as of `run`.

    Field statistics that are known already, from finished cells or the pretraining of the model, are kept in `root`.
    """
    supply = Supply(Path(root).absolute(), None if data is None else Path(data).absolute(), limit, profile.grid)
    seen = [name for each in starts_of(plan, profile) for name, _ in each.systems]
    supply.check(dict.fromkeys([*(key.system for key in keys_of(plan, profile)), *seen]))
    finished = known_records(known)
    missing = missing_cells(root, plan, profile, finished)
    names = list(dict.fromkeys(cell.system for cell in missing))
    supply.take_statistics(finished, names)
    with nullcontext() if pretrained(missing) else suppress(CheckpointError):  # what starts from no model needs none
        if read_config(profile.checkpoint)[1].model["grid"] == profile.grid:
            supply.take_pretraining_statistics(read_sources(profile.checkpoint), names, profile.statistics)
    return supply, missing, missing_pretrainings(root, missing, profile)


@dataclass(frozen=True)
class RunReport:
    """The outcome of a run, by cell and by pretraining.

    Attributes:
        done: cells that it computed.
        kept: number of cells that were there already, or known.
        busy: cells that another process computes, or whose pretraining it does.
        failed: cell or pretraining -> class and message of its error.
        stopped: failed pretraining -> the cells that it stops; all others were computed.
        pretrained: pretrainings that it computed.
    """

    done: tuple[Cell, ...]
    kept: int
    busy: tuple[Cell, ...]
    failed: Mapping[Cell | Pretraining, str]
    stopped: Mapping[Pretraining, tuple[Cell, ...]] = field(default_factory=dict)
    pretrained: tuple[Pretraining, ...] = ()


def run(
    root: Path | str,
    plan: Sequence[Cell],
    profile: Profile,
    *,
    data: Path | str | None = None,
    limit: int = Supply.limit,
    known: Path | str | Sequence[Path | str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> RunReport:
    """Compute the cells that are not finished, in the order of the plan, and first what they start from.

    Of every group of changes the pretrainings come before the cells, and a worker that finds nothing to do there goes
    on with the next group. A pretraining that was stopped goes on from its newest state, and one that failed stops only
    the cells that start from it.

    Args:
        root: study directory; on a cluster a path that all workers share, like `data`.
        plan: the cells.
        profile: sizes and settings of the runs.
        data: dataset that is read before anything is simulated.
        limit: bytes of simulated trajectories to keep in `root`.
        known: another study directory or an export, or several: their cells are not computed again, and field
            statistics are taken from their records.
        workers: local processes; one for each GPU, or one, when None. A single one computes in this process;
            several import the script that calls this, which has to do so under `if __name__ == "__main__":`.
        scheduler: address of a running Dask scheduler, used instead of local processes.
        device: "auto", "cpu", "cuda"; several GPUs are shared out among the workers.
        progress: called with the number done, their total and a text: first for trajectories, then for cells.

    Raises:
        StudyError: a directory of another version or other settings, nothing in `known`, no updates of fresh weights.
        OutputError: the directory cannot be written.
        DataError: no dataset in `data`, or one of another recipe.
        CheckpointError: the checkpoint is missing or of another size.
    """
    check_workers(workers, scheduler)
    device_named(device)
    if not profile.adapt.steps:
        _refuse_untrained(plan)
    directory = Directory(root)
    supply, missing, starts = outstanding(root, plan, profile, data, limit, known)
    profile = _claimed(directory, plan, profile)
    number = workers if workers is not None else max(1, torch.cuda.device_count())
    preparing = None if progress is None else lambda done, total, _: progress(done, total, "trajectories")
    supply.prepare(missing, profile, workers=number, scheduler=scheduler, progress=preparing)
    supply.prepare_pretrainings(starts, workers=number, scheduler=scheduler, progress=preparing)
    jobs, kept = _jobs(missing, starts, profile), len(plan) - len(missing)
    outcomes: dict[Cell | Pretraining, str] = {}

    def report(what: str) -> None:
        if progress:
            progress(kept + len(outcomes), kept + len(jobs), what)

    report("cells")
    every = list(jobs)
    place = {job: position for position, job in enumerate(every)}
    after = {place[job]: place[start] for job, start in jobs.items() if start}
    with completed(
        attempt,
        [(supply, job, profile, device) for job in every],
        [name_of(job, profile) for job in every],
        after=after,
        begins=lambda position: outcomes[every[after[position]]] in (DONE, KEPT),
        workers=number,
        scheduler=scheduler,
    ) as results:
        for position, result in results:
            job = every[position]
            if isinstance(result, StudyError | OutputError):
                raise result
            if isinstance(result, Exception):  # the worker was killed again and again
                last = f"{type(result).__name__}: {result}"
                directory.fail(name_of(job, profile), title_of(job, profile), f"{last}\n")
                result = last
            outcomes[job] = result
            report(str(job))
    return _reported(jobs, outcomes, kept)


def _jobs(
    missing: Sequence[Cell], starts: Sequence[Pretraining], profile: Profile
) -> dict[Cell | Pretraining, Pretraining | None]:
    """Return the jobs of a run, of each group the pretrainings before the cells -> the one that each waits for."""
    found: dict[Cell | Pretraining, Pretraining | None] = {}
    for _, members in groupby(missing, key=lambda cell: cell.group):
        group = list(members)
        found |= {each: each.start for each in starts_of(group, profile) if each in starts}
        found |= {cell: cell.pretraining(profile) for cell in group}
    return {job: start if start in found else None for job, start in found.items()}


def _reported(
    jobs: Mapping[Cell | Pretraining, Pretraining | None], outcomes: Mapping[Cell | Pretraining, str], kept: int
) -> RunReport:
    """Return what became of all jobs; those without an outcome were not begun, `kept` cells were there before."""
    found = dict(outcomes)
    stopped: dict[Pretraining, tuple[Cell, ...]] = {}
    for job, start in jobs.items():
        if job in found or start is None:
            continue
        if isinstance(job, Cell) and found[start] != BUSY:
            stopped[start] = (*stopped.get(start, ()), job)
        else:
            found[job] = found[start]
    done, also_kept, busy = (
        tuple(job for job in jobs if isinstance(job, Cell) and found.get(job) == kind) for kind in (DONE, KEPT, BUSY)
    )
    return RunReport(
        done,
        kept + len(also_kept),
        busy,
        {job: outcome for job, outcome in found.items() if outcome not in (DONE, KEPT, BUSY)},
        stopped,
        tuple(job for job, outcome in found.items() if isinstance(job, Pretraining) and outcome == DONE),
    )


def _refuse_untrained(plan: Sequence[Cell]) -> None:
    """Refuse cells without updates of what has to learn, before anything is simulated for them."""
    fresh = [cell for cell in plan if cell.trained and not changes.baseline(cell.forecaster).keeps_decoder]
    if fresh:
        raise StudyError(
            f"expected at least one update of a forecaster with fresh weights, got 0 for {fresh[0]}; raise --steps, or "
            "choose others with --only"
        )


def _claimed(directory: Directory, plan: Sequence[Cell], profile: Profile) -> Profile:
    """Enter the settings of a run into its directory; return the profile with a checkpoint that all workers find."""
    for name, own in settings(plan, profile).items():
        directory.claim(name, own)
    if pretrained(plan) and profile.checkpoint not in shipped() and Path(profile.checkpoint).exists():
        # a worker on a cluster may run in another working directory; what is not there is an id of the hub
        return replace(profile, checkpoint=str(Path(profile.checkpoint).resolve()))
    return profile
