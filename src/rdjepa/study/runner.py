"""Plan the cells of a study, compute the missing ones, and report the progress (S3.1)."""

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from rdjepa import systems
from rdjepa.data.parallel import check_workers, completed
from rdjepa.data.splits import coinciding_seeds
from rdjepa.errors import OutputError, StudyError
from rdjepa.forecasters import registry as forecasters
from rdjepa.io.checkpoint import shipped
from rdjepa.models.device import device_named
from rdjepa.progress import Progress
from rdjepa.study import protocol, registry
from rdjepa.study.cell import Cell, checkpoint_fingerprint, compute, identifier, identity, read_record
from rdjepa.study.cost import left
from rdjepa.study.directory import Directory
from rdjepa.study.profiles import Profile
from rdjepa.study.supply import Supply

DONE, KEPT, BUSY = "done", "kept", "busy"


def cells(study: str, only: Sequence[str] = (), seeds: Sequence[int] | None = None) -> list[Cell]:
    """Return the cells of a study: the smallest K under the first seed, then its other seeds, then the larger K.

    Within one K and seed all systems and forecasters come first, so a study that is stopped early compares all of them.

    Args:
        study: name of a registered study.
        only: conditions "key=value" on system, k, support_seed and forecaster; values of one key are alternatives.
        seeds: support seeds, instead of the study's.

    Raises:
        StudyError: an unknown study, key or value, a study of an unknown system or forecaster or about one that it does
            not compare, or seeds that select the same trajectory at K = 1.
    """
    plan = registry.get(study)
    _check(plan)
    found = []
    for system in plan.systems:
        chosen = tuple(seeds or plan.seeds_of(system))
        same = coinciding_seeds(protocol.counts(system)["pool", "id"], 1, chosen)
        if same:
            pairs = ", ".join(f"{a} and {b}" for a, b in same)
            raise StudyError(f"expected seeds that select different trajectories of {system} at K = 1, got {pairs}")
        for number, k in enumerate(plan.budgets_of(system)):
            for place, seed in enumerate(chosen):
                found += [((number, place), Cell(plan.cells, system, k, seed, name)) for name in plan.compared()]
    found.sort(key=lambda item: item[0])
    return select([cell for _, cell in found], only)


def _check(plan: registry.Study) -> None:
    """Refuse a study that names an unknown system or forecaster, or whose subject it does not compare."""
    every = (*systems.names(), *systems.wall_names())
    for kind, chosen, known in (
        ("system", plan.systems, every),
        ("forecaster", plan.compared(), forecasters.names()),
        ("subject", (plan.subject,) if plan.subject else (), plan.compared()),
    ):
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise StudyError(
                f"expected every {kind} of the study {plan.name} among {', '.join(known)}, got {unknown[0]!r}; "
                "correct the name, or register it first"
            )


def select(every: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """Return the cells that meet all conditions; see `cells`."""
    wanted: dict[str, set[str]] = {}
    for condition in only:
        key, equals, value = condition.strip().partition("=")
        if not equals or key not in ("system", "k", "support_seed", "forecaster"):
            raise StudyError(
                f"expected system=..., k=..., support_seed=... or forecaster=..., got {condition!r}; name one of them"
            )
        known = dict.fromkeys(str(getattr(cell, key)) for cell in every)
        if value not in known:
            raise StudyError(f"expected {key} among {', '.join(known)}, got {value!r}; name one of them")
        wanted.setdefault(key, set()).add(value)
    return [cell for cell in every if all(str(getattr(cell, key)) in values for key, values in wanted.items())]


def missing_cells(root: Path | str, plan: Sequence[Cell], profile: Profile) -> list[Cell]:
    """Return the cells that are not finished in a study directory, which need not exist."""
    directory = Directory(root)
    directory.check(profile.name, profile.settings())
    return [cell for cell in plan if not directory.is_done(identifier(identity(cell, profile)))]


@dataclass(frozen=True)
class RunReport:
    """The outcome of a run, by cell.

    Attributes:
        done: cells that it computed.
        kept: number that were there already.
        busy: cells that another process computes.
        failed: cell -> last line of its traceback.
    """

    done: tuple[Cell, ...]
    kept: int
    busy: tuple[Cell, ...]
    failed: Mapping[Cell, str]


def run(
    root: Path | str,
    plan: Sequence[Cell],
    profile: Profile,
    *,
    data: Path | str | None = None,
    limit: int = Supply.limit,
    workers: int | None = None,
    scheduler: str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> RunReport:
    """Compute the cells that are not finished, in the order of the plan.

    Args:
        root: study directory; on a cluster a path that all workers share, like `data`.
        plan: the cells.
        profile: sizes and settings of the runs.
        data: dataset that is read before anything is simulated.
        limit: bytes of simulated trajectories to keep in `root`.
        workers: local processes; one for each GPU, or one, when None. A single one computes in this process.
        scheduler: address of a running Dask scheduler, used instead of local processes.
        device: "auto", "cpu", "cuda"; several GPUs are shared out among the workers.
        progress: called with the number done, their total and a text: first for trajectories, then for cells.

    Raises:
        StudyError: a directory of another version or other settings.
        OutputError: the directory cannot be written.
        DataError: no dataset in `data`, or one of another recipe.
        CheckpointError: the checkpoint is missing or of another size.
    """
    check_workers(workers, scheduler)
    directory = Directory(root)
    supply = Supply(directory.root, None if data is None else Path(data).absolute(), limit, profile.grid)
    supply.check(dict.fromkeys(cell.system for cell in plan))
    device_named(device)
    pretrained = [name for name in dict.fromkeys(c.forecaster for c in plan) if forecasters.get(name).pretrained]
    # The checkpoint is recorded by forecaster, not by profile: forecasters without pretraining run with any or none.
    weights = {"checkpoint": checkpoint_fingerprint(profile)} if pretrained else {}
    directory.claim(profile.name, profile.settings())
    for name in pretrained:
        directory.claim(f"{profile.name}/{name}", weights)
    if pretrained and profile.checkpoint not in shipped():
        # a worker on a cluster may run in another working directory
        profile = replace(profile, checkpoint=str(Path(profile.checkpoint).resolve()))
    missing = missing_cells(root, plan, profile)
    kept = len(plan) - len(missing)
    number = workers if workers is not None else max(1, torch.cuda.device_count())
    preparing = None if progress is None else lambda done, total, _: progress(done, total, "trajectories")
    supply.prepare(missing, profile, workers=number, scheduler=scheduler, progress=preparing)
    outcomes: dict[Cell, str] = {}
    jobs = [(supply, cell, profile, device) for cell in missing]
    if progress:
        progress(kept, len(plan), "cells")
    names = [identifier(identity(cell, profile)) for cell in missing]
    with completed(attempt, jobs, names, workers=number, scheduler=scheduler) as results:
        for position, result in results:
            cell = missing[position]
            if isinstance(result, StudyError | OutputError):
                raise result
            if isinstance(result, Exception):  # the worker was killed again and again
                directory.fail(names[position], f"{type(result).__name__}: {result}\n")
                result = f"{type(result).__name__}: {result}"
            outcomes[cell] = result
            if progress:
                progress(kept + len(outcomes), len(plan), str(cell))
    by_outcome = {
        kind: tuple(cell for cell, outcome in outcomes.items() if outcome == kind) for kind in (DONE, KEPT, BUSY)
    }
    failed = {cell: outcome for cell, outcome in outcomes.items() if outcome not in by_outcome}
    return RunReport(by_outcome[DONE], kept + len(by_outcome[KEPT]), by_outcome[BUSY], failed)


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
            files = compute(cell, profile, supply.get, statistics, _device(device))
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
        running: cells that a process computes.
        failed: cell -> last line of its traceback.
        waiting: the others.
        seconds: expected of running, failed and waiting cells, divided among the running processes; None before the
            first cell is finished.
    """

    done: tuple[Cell, ...]
    running: tuple[Cell, ...]
    failed: Mapping[Cell, str]
    waiting: tuple[Cell, ...]
    seconds: float | None


def status(root: Path | str, plan: Sequence[Cell], profile: Profile) -> Status:
    """Return the progress of a study, without writing to its directory.

    Raises:
        StudyError: no study directory, or one of another version.
    """
    directory = Directory(root)
    directory.read()
    directory.check(profile.name, profile.settings())
    done, running, waiting, records = [], [], [], []
    failed: dict[Cell, str] = {}
    for cell in plan:
        name = identifier(identity(cell, profile))
        if directory.is_done(name):
            done.append(cell)
            records.append(read_record(directory.cell(name)))
        elif directory.is_running(name):
            running.append(cell)
        elif directory.traceback(name).is_file():
            failed[cell] = directory.traceback(name).read_text().strip().splitlines()[-1]
        else:
            waiting.append(cell)
    expected = left([*running, *failed, *waiting], records)
    seconds = None if expected is None else expected / max(1, len(running))
    return Status(tuple(done), tuple(running), failed, tuple(waiting), seconds)


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
