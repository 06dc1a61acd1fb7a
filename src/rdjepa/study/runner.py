"""Compute the missing cells of a study and the pretrainings that they start from, and report the progress (S3.1)."""

import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import torch

from rdjepa.data.parallel import check_workers, completed
from rdjepa.errors import OutputError, StudyError
from rdjepa.forecasters import registry as forecasters
from rdjepa.io.checkpoint import read_sources, shipped
from rdjepa.models.device import device_named
from rdjepa.progress import Progress
from rdjepa.study import changes, pretrainings
from rdjepa.study.cell import Cell, Record, compute, identity, read_record
from rdjepa.study.collect import read_records
from rdjepa.study.cost import left, left_to_pretrain
from rdjepa.study.directory import Directory
from rdjepa.study.fingerprints import but_precision, checkpoint_fingerprint, identifier
from rdjepa.study.plan import cells, select
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import Profile
from rdjepa.study.supply import Supply, keys_of

__all__ = ["RunReport", "Status", "cells", "missing_cells", "missing_pretrainings", "run", "select", "status"]

DONE, KEPT, BUSY = "done", "kept", "busy"


def missing_cells(root: Path | str, plan: Sequence[Cell], profile: Profile, known: Sequence[Record] = ()) -> list[Cell]:
    """Return the cells that are not finished in a study directory, which need not exist, nor among known records.

    Of those the precision of training may be another.
    """
    directory, finished = Directory(root), {identifier(but_precision(record["identity"])) for record in known}
    directory.check(profile.name, profile.settings())
    contents = {cell: identity(cell, profile) for cell in plan}
    return [
        cell
        for cell, content in contents.items()
        if identifier(but_precision(content)) not in finished and not directory.is_done(identifier(content))
    ]


def take_statistics(supply: Supply, missing: Sequence[Cell], profile: Profile, known: Sequence[Record]) -> None:
    """Keep the field statistics that are known already: from finished cells, and from the pretraining of the model.

    Raises:
        CheckpointError: the model does not name its data.
    """
    names = list(dict.fromkeys(cell.system for cell in missing))
    supply.take_statistics(known, names)
    if _pretrained(missing):
        supply.take_pretraining_statistics(read_sources(profile.checkpoint), names, profile.statistics)


def missing_pretrainings(root: Path | str, missing: Sequence[Cell], profile: Profile) -> list[Pretraining]:
    """Return the pretrainings that some cells start from and that are not finished, in the order of their need."""
    directory = Directory(root)
    return [each for each in _needed(directory, missing, profile) if not directory.is_pretrained(each.name)]


@dataclass(frozen=True)
class RunReport:
    """The outcome of a run, by cell and by pretraining.

    Attributes:
        done: cells that it computed.
        kept: number of cells that were there already, or known.
        busy: cells that another process computes, or whose pretraining it does.
        failed: cell or pretraining -> last line of its traceback.
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
    known: Path | str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> RunReport:
    """Compute the cells that are not finished, in the order of the plan, and first what they start from.

    Of every group of changes the pretrainings come before the cells. A pretraining that was stopped goes on from its
    newest state, and one that failed stops only the cells that start from it.

    Args:
        root: study directory; on a cluster a path that all workers share, like `data`.
        plan: the cells.
        profile: sizes and settings of the runs.
        data: dataset that is read before anything is simulated.
        limit: bytes of simulated trajectories to keep in `root`.
        known: another study directory or an export: its cells are not computed again, and field statistics are taken
            from their records.
        workers: local processes; one for each GPU, or one, when None. A single one computes in this process.
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
    directory = Directory(root)
    supply = Supply(directory.root, None if data is None else Path(data).absolute(), limit, profile.grid)
    seen = [name for each in _starts(plan, profile) for name, _ in each.systems]
    seen += [key.system for key in keys_of(plan, profile)]
    supply.check(dict.fromkeys([*(cell.system for cell in plan), *seen]))
    device_named(device)
    if not profile.adapt.steps:
        _refuse_untrained(plan)
    finished = [] if known is None else read_records(known)
    profile = _claimed(directory, plan, profile)
    missing = missing_cells(root, plan, profile, finished)
    take_statistics(supply, missing, profile, finished)
    number = workers if workers is not None else max(1, torch.cuda.device_count())
    preparing = None if progress is None else lambda done, total, _: progress(done, total, "trajectories")
    supply.prepare(missing, profile, workers=number, scheduler=scheduler, progress=preparing)
    starts = missing_pretrainings(root, missing, profile)
    supply.prepare_pretrainings(starts, workers=number, scheduler=scheduler, progress=preparing)
    outcomes: dict[Cell | Pretraining, str] = {}
    kept, total = len(plan) - len(missing), len(plan) + len(starts)

    def report(what: str) -> None:
        if progress:
            progress(kept + len(outcomes), total, what)

    def compute_all(function: Callable[..., str], jobs: Mapping[Cell | Pretraining, str]) -> None:
        named = list(jobs.items())
        arguments, names = [(supply, job, profile, device) for job, _ in named], [name for _, name in named]
        with completed(function, arguments, names, workers=number, scheduler=scheduler) as results:
            for position, result in results:
                job, name = named[position]
                if isinstance(result, StudyError | OutputError):
                    raise result
                if isinstance(result, Exception):  # the worker was killed again and again
                    directory.fail(name, f"{type(result).__name__}: {result}\n")
                    result = f"{type(result).__name__}: {result}"
                outcomes[job] = result
                report(str(job))

    report("cells")
    stopped: dict[Pretraining, list[Cell]] = {}
    for _, members in groupby(missing, key=lambda cell: cell.group):
        wave = list(members)
        wanted = [each for each in _starts(wave, profile) if each in starts and each not in outcomes]
        for _, stage in groupby(sorted(wanted, key=_stage), key=_stage):
            able: dict[Cell | Pretraining, str] = {}
            for each in stage:
                before = outcomes.get(each.start, KEPT) if each.start else KEPT
                if before in (DONE, KEPT):
                    able[each] = each.name
                else:  # it has the outcome of what it goes on from
                    outcomes[each] = before
            compute_all(attempt_pretraining, able)
        ready: dict[Cell | Pretraining, str] = {}
        for cell in wave:
            start = cell.pretraining(profile)
            if start is None or outcomes.get(start, KEPT) in (DONE, KEPT):
                ready[cell] = identifier(identity(cell, profile))
            elif outcomes[start] == BUSY:
                outcomes[cell] = BUSY
            else:
                stopped.setdefault(start, []).append(cell)
        compute_all(attempt, ready)
    return _report(outcomes, kept, stopped)


def _refuse_untrained(plan: Sequence[Cell]) -> None:
    """Refuse cells without updates of what has to learn, before anything is simulated for them."""
    fresh = [cell for cell in plan if cell.trained and not changes.baseline(cell.forecaster).keeps_decoder]
    if fresh:
        raise StudyError(
            f"expected at least one update of a forecaster with fresh weights, got 0 for {fresh[0]}; raise --steps, or "
            "choose others with --only"
        )


def _pretrained(cells: Iterable[Cell]) -> list[str]:
    """Return the forecasters that start from the checkpoint of the profile."""
    names = dict.fromkeys(cell.forecaster for cell in cells)
    return [name for name in names if changes.find(name) is None and forecasters.get(name).pretrained]


def _claimed(directory: Directory, plan: Sequence[Cell], profile: Profile) -> Profile:
    """Enter the settings of a run into its directory; return the profile with a checkpoint that all workers find."""
    pretrained = _pretrained(plan)
    # The checkpoint is recorded by forecaster, not by profile: forecasters without pretraining run with any or none.
    weights = {name: checkpoint_fingerprint(profile, forecasters.get(name).keeps_decoder) for name in pretrained}
    directory.claim(profile.name, profile.settings())
    for name, fingerprint in weights.items():
        directory.claim(f"{profile.name}/{name}", {"checkpoint": fingerprint})
    if pretrained and profile.checkpoint not in shipped():
        # a worker on a cluster may run in another working directory
        return replace(profile, checkpoint=str(Path(profile.checkpoint).resolve()))
    return profile


def _report(
    outcomes: Mapping[Cell | Pretraining, str], kept: int, stopped: Mapping[Pretraining, Sequence[Cell]]
) -> RunReport:
    """Return the outcome of a run; `kept` cells were there before it."""
    done, also_kept, busy = (
        tuple(job for job, outcome in outcomes.items() if outcome == kind and isinstance(job, Cell))
        for kind in (DONE, KEPT, BUSY)
    )
    return RunReport(
        done,
        kept + len(also_kept),
        busy,
        {job: outcome for job, outcome in outcomes.items() if outcome not in (DONE, KEPT, BUSY)},
        {start: tuple(cells) for start, cells in stopped.items()},
        tuple(job for job, outcome in outcomes.items() if outcome == DONE and isinstance(job, Pretraining)),
    )


def _needed(directory: Directory, cells: Sequence[Cell], profile: Profile) -> list[Pretraining]:
    """Return the pretrainings of some cells; of those that one goes on from no more, once it is finished itself."""
    last = dict.fromkeys(each for cell in cells if (each := cell.pretraining(profile)))
    lacking = pretrainings.distinct(each for each in last if not directory.is_pretrained(each.name))
    return list(dict.fromkeys([*lacking, *last]))


def _starts(cells: Sequence[Cell], profile: Profile) -> list[Pretraining]:
    """Return the pretrainings that some cells start from and what these go on from, each once."""
    return pretrainings.distinct(cell.pretraining(profile) for cell in cells)


def _stage(each: Pretraining) -> int:
    return len(each.stages())


def attempt_pretraining(supply: Supply, start: Pretraining, profile: Profile, device: str) -> str:
    """Finish one pretraining, from its newest state if there is one; result and errors are those of `attempt`."""
    directory, name = Directory(supply.root), start.name
    with directory.lock(name) as locked:
        if not locked:
            return BUSY
        if directory.is_pretrained(name):
            return KEPT
        try:
            start.run(directory.pretraining(name), supply.dataset_of(start), _device(device))
        except OutputError:
            raise
        except Exception as error:
            directory.fail(name, traceback.format_exc())
            return f"{type(error).__name__}: {error}"
        directory.traceback(name).unlink(missing_ok=True)
        return DONE


def attempt(supply: Supply, cell: Cell, profile: Profile, device: str) -> str:
    """Compute and store one cell, unless it is finished or another process computes it.

    Returns:
        "done", "kept", "busy", or the last line of the traceback that was written.

    Raises:
        OutputError: the study directory cannot be written.
    """
    directory, name = Directory(supply.root), identifier(identity(cell, profile))
    with directory.lock(name) as locked:
        if not locked:
            return BUSY
        if directory.is_done(name):  # by another process, since the missing cells were listed
            return KEPT
        try:
            statistics = supply.normalizer(cell.system, profile.statistics)
            start = cell.pretraining(profile)
            pretrained = [pretrainings.weights(directory.pretraining(start.name))] if start else []
            files = compute(cell, profile, supply.get, statistics, _device(device), *pretrained)
        except Exception as error:
            directory.fail(name, traceback.format_exc())
            return f"{type(error).__name__}: {error}"
        directory.finish(name, files)
        return DONE


@dataclass(frozen=True)
class Status:
    """Progress of a study.

    Attributes:
        done: finished cells.
        running: cells and pretrainings that a process computes.
        failed: cell or pretraining -> last line of its traceback.
        waiting: the other cells.
        seconds: expected of running, failed and waiting cells, divided among the running processes; None before the
            first cell is finished.
        stopped: failed pretraining -> the cells that wait for it.
        pretrained: finished pretrainings.
        unpretrained: pretrainings that no process computes and that did not fail.
    """

    done: tuple[Cell, ...]
    running: tuple[Cell | Pretraining, ...]
    failed: Mapping[Cell | Pretraining, str]
    waiting: tuple[Cell, ...]
    seconds: float | None
    stopped: Mapping[Pretraining, tuple[Cell, ...]] = field(default_factory=dict)
    pretrained: tuple[Pretraining, ...] = ()
    unpretrained: tuple[Pretraining, ...] = ()


def status(root: Path | str, plan: Sequence[Cell], profile: Profile) -> Status:
    """Return the progress of a study, without writing to its directory.

    Raises:
        StudyError: no study directory, or one of another version.
    """
    directory = Directory(root)
    directory.read()
    directory.check(profile.name, profile.settings())
    starts = _needed(directory, plan, profile)
    names: dict[Cell | Pretraining, str] = {start: start.name for start in starts}
    names |= {cell: identifier(identity(cell, profile)) for cell in plan}
    done = [cell for cell in plan if directory.is_done(names[cell])]
    pretrained = [start for start in starts if directory.is_pretrained(names[start])]
    finished = {*done, *pretrained}
    others = [job for job in names if job not in finished]
    running = {job: None for job in others if directory.is_running(names[job])}
    failed = {job: line for job in others if job not in running and (line := directory.failure(names[job])) is not None}
    waiting = [job for job in others if job not in running and job not in failed]
    records = [read_record(directory.cell(names[cell])) for cell in done] if others else []
    expected = left([job for job in others if isinstance(job, Cell)], records)
    starting = left_to_pretrain(
        [job for job in others if isinstance(job, Pretraining)],
        [pretrainings.read_record(directory.pretraining(names[start])) for start in pretrained],
    )
    stopped = {
        start: tuple(cell for cell in waiting if isinstance(cell, Cell) and start in _starts([cell], profile))
        for start in failed
        if isinstance(start, Pretraining)
    }
    return Status(
        tuple(done),
        tuple(running),
        failed,
        tuple(job for job in waiting if isinstance(job, Cell)),
        None if expected is None or starting is None else (expected + starting) / max(1, len(running)),
        stopped,
        tuple(pretrained),
        tuple(job for job in waiting if isinstance(job, Pretraining)),
    )


def _device(name: str) -> torch.device:
    """Return the device of a cell; of several GPUs the one whose number is at the end of the worker's name."""
    device = device_named(name)
    if device.type != "cuda" or device.index is not None or torch.cuda.device_count() < 2:
        return device
    from distributed import get_worker

    try:
        number = re.search(r"\d+$", str(get_worker().name))
    except ValueError:  # computed in this process
        return device
    return torch.device("cuda", int(number[0]) % torch.cuda.device_count()) if number else device
