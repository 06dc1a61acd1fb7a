"""What a process does for a study: one cell or one pretraining, under its lock, kept if it succeeds (S3.1)."""

import re
import traceback

import torch

from rdjepa.errors import InsufficientMemoryError, OutputError, StudyError, first_line, out_of_memory
from rdjepa.models.device import device_named
from rdjepa.study import pretrainings
from rdjepa.study.cell import Cell, compute, identity
from rdjepa.study.directory import RECORD, Directory
from rdjepa.study.fingerprints import identifier
from rdjepa.study.pretrainings import Pretraining
from rdjepa.study.profiles import Profile
from rdjepa.study.supply import Supply

DONE, KEPT, BUSY = "done", "kept", "busy"


def name_of(job: Cell | Pretraining, profile: Profile) -> str:
    """Return the name of a job's folder, lock and traceback."""
    return job.name if isinstance(job, Pretraining) else identifier(identity(job, profile))


def title_of(job: Cell | Pretraining, profile: Profile) -> str:
    """Return the title of a job's traceback: the same for another version of its forecaster."""
    return f"{profile.name}: {job}"


def attempt(supply: Supply, job: Cell | Pretraining, profile: Profile, device: str) -> str:
    """Compute and store one cell, or finish one pretraining, unless it is finished or another process computes it.

    Returns:
        "done", "kept", "busy", or class and message of the error whose traceback was written.

    Raises:
        OutputError: the study directory cannot be written.
    """
    directory, name = Directory(supply.root), name_of(job, profile)
    with directory.lock(name) as locked:
        if not locked:
            return BUSY
        if directory.is_done(name):  # by another process, since the missing ones were listed
            return KEPT
        try:
            if isinstance(job, Pretraining):
                job.run(directory.pretraining(name), supply.dataset_of(job), _device(device))
            else:
                files = _computed(directory, name, supply, job, profile, _device(device))
        except OutputError:
            raise
        except Exception as error:
            return _failed(directory, name, title_of(job, profile), error)
        if isinstance(job, Cell):
            directory.finish(name, files)
        directory.forget_failures(name, title_of(job, profile))
        return DONE


def _computed(
    directory: Directory, name: str, supply: Supply, cell: Cell, profile: Profile, device: torch.device
) -> dict[str, bytes]:
    """Return the files of a cell."""
    if (place := directory.cell(name)).exists():
        raise StudyError(f"expected a finished cell in {place}, got a folder without {RECORD}; move it away")
    statistics, start = supply.normalizer(cell.system, profile.statistics), cell.pretraining(profile)
    pretrained = pretrainings.weights(directory.pretraining(start.name)) if start else None
    return compute(cell, profile, supply.get, statistics, device, pretrained)


def _failed(directory: Directory, name: str, title: str, error: Exception) -> str:
    """Write the traceback of what failed; return class and message, which say what to lower where memory ran out."""
    if out_of_memory(error):
        told = InsufficientMemoryError(
            f"expected enough memory, got too little ({first_line(error.__cause__ or error)}); lower --workers"
        )
        told.__cause__, error = error, told
    directory.fail(name, title, "".join(traceback.format_exception(error)))
    return f"{type(error).__name__}: {error}"


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
