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


def attempt(supply: Supply, job: Cell | Pretraining, profile: Profile, device: str) -> str:
    """Compute and store one cell, or finish one pretraining, unless it is finished or another process computes it.

    Returns:
        "done", "kept", "busy", or the last line of the traceback that was written.

    Raises:
        OutputError: the study directory cannot be written.
    """
    if isinstance(job, Pretraining):
        return _pretrain(supply, job, device)
    return _compute(supply, job, profile, device)


def _pretrain(supply: Supply, start: Pretraining, device: str) -> str:
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
            return _failed(directory, name, error)
        directory.traceback(name).unlink(missing_ok=True)
        return DONE


def _compute(supply: Supply, cell: Cell, profile: Profile, device: str) -> str:
    directory, name = Directory(supply.root), identifier(identity(cell, profile))
    with directory.lock(name) as locked:
        if not locked:
            return BUSY
        if directory.is_done(name):  # by another process, since the missing cells were listed
            return KEPT
        if (place := directory.cell(name)).exists():
            reason = f"expected a finished cell in {place}, got a folder without {RECORD}; move it away"
            directory.fail(name, reason)
            return f"{StudyError.__name__}: {reason}"
        try:
            statistics = supply.normalizer(cell.system, profile.statistics)
            start = cell.pretraining(profile)
            pretrained = [pretrainings.weights(directory.pretraining(start.name))] if start else []
            files = compute(cell, profile, supply.get, statistics, _device(device), *pretrained)
        except OutputError:
            raise
        except Exception as error:
            return _failed(directory, name, error)
        directory.finish(name, files)
        return DONE


def _failed(directory: Directory, name: str, error: Exception) -> str:
    """Write the traceback of what failed; return its last line, which says what to lower where memory ran out."""
    if out_of_memory(error):
        told = InsufficientMemoryError(
            f"expected enough memory, got too little ({first_line(error.__cause__ or error)}); lower --workers"
        )
        told.__cause__, error = error, told
    directory.fail(name, "".join(traceback.format_exception(error)))
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
