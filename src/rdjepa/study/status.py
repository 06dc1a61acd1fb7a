"""How far a study has come, as its directory tells."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rdjepa.study import pretrainings
from rdjepa.study.cell import Cell, identity
from rdjepa.study.collect import known_records
from rdjepa.study.directory import Directory
from rdjepa.study.fingerprints import identifier, shared_identifier
from rdjepa.study.plan import needed, settings, starts_of
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import Profile
from rdjepa.study.record import read_record


@dataclass(frozen=True)
class Status:
    """Progress of a study.

    Attributes:
        done: finished cells, here or elsewhere.
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


def status(
    root: Path | str, plan: Sequence[Cell], profile: Profile, known: Path | str | Sequence[Path | str] | None = None
) -> Status:
    """Return the progress of a study, without writing to its directory.

    Args:
        root: study directory.
        plan: the cells.
        profile: sizes and settings of the runs.
        known: another study directory or an export, or several, whose cells count as finished.

    Raises:
        StudyError: no study directory, one of another version or begun with other settings or another checkpoint, or
            nothing in `known`.
    """
    directory = Directory(root)
    directory.read()
    for name, own in settings(plan, profile).items():
        directory.check(name, own)
    elsewhere = {shared_identifier(record["identity"]): record for record in known_records(known)}
    contents = {cell: identity(cell, profile) for cell in plan}
    found = {cell: elsewhere.get(shared_identifier(content)) for cell, content in contents.items()}
    there = {cell: record for cell, record in found.items() if record}
    here = [cell for cell in plan if cell not in there]
    starts = needed(directory, here, profile)
    names: dict[Cell | Pretraining, str] = {start: start.name for start in starts}
    names |= {cell: identifier(contents[cell]) for cell in here}
    done = [cell for cell in here if directory.is_done(names[cell])]
    pretrained = [start for start in starts if directory.is_done(names[start])]
    finished = {*done, *pretrained}
    others = [job for job in names if job not in finished]
    running = {job: None for job in others if directory.is_running(names[job])}
    failed = {job: line for job in others if job not in running and (line := directory.failure(names[job])) is not None}
    waiting = [job for job in others if job not in running and job not in failed]
    records = [*there.values(), *(read_record(directory.cell(names[cell])) for cell in done)] if others else []
    begun = [pretrainings.read_record(directory.pretraining(names[start])) for start in pretrained]
    expected = _left(
        [job.forecaster for job in others if isinstance(job, Cell)],
        [(record["forecaster"], sum(record["seconds"].values())) for record in records],
    )
    starting = _left(
        [job.config.objective for job in others if isinstance(job, Pretraining)],
        [(record.identity["config"]["objective"], record.seconds) for record in begun],
    )
    stopped = {
        start: tuple(cell for cell in waiting if isinstance(cell, Cell) and start in starts_of([cell], profile))
        for start in failed
        if isinstance(start, Pretraining)
    }
    return Status(
        tuple(cell for cell in plan if cell in there or cell in finished),
        tuple(running),
        failed,
        tuple(job for job in waiting if isinstance(job, Cell)),
        None if expected is None or starting is None else (expected + starting) / max(1, len(running)),
        stopped,
        tuple(pretrained),
        tuple(job for job in waiting if isinstance(job, Pretraining)),
    )


def _left(kinds: Sequence[str], taken: Sequence[tuple[str, float]]) -> float | None:
    """Return the seconds that jobs are expected to take; None where some are left and none is finished.

    A job is expected to take as long as the mean of the finished ones of its kind, or of all; one that was stopped, as
    long as a whole one.

    Args:
        kinds: of the jobs.
        taken: kind and seconds of every finished one.
    """
    if not taken:
        return None if kinds else 0.0
    known: dict[str, list[float]] = defaultdict(list)
    for kind, seconds in taken:
        known[kind].append(seconds)
    everything = [seconds for _, seconds in taken]
    return float(sum(np.mean(known.get(kind, everything)) for kind in kinds))
