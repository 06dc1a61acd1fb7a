"""Sizes that a file declares, compared with what the file and the memory can hold, before anything is read."""

import os
from pathlib import Path

from rdjepa.errors import DataError, InsufficientMemoryError

GROUP = Path("/sys/fs/cgroup")  # of version 2, as a container sees its own
DENSEST = 1032  # deflate, the compression of npz, MATLAB and most HDF5 files, shrinks nothing further


def readable(size: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} EiB"


def require_held(declared: int, held: int, place: str, densest: int = 1) -> None:
    """Refuse an array whose declared size the bytes in the file cannot make up.

    Args:
        declared: bytes of the array.
        held: bytes in the file.
        place: the file, for the message.
        densest: how many bytes one stored byte can stand for; 1 without compression.

    Raises:
        DataError: the file is too small.
    """
    if declared > held * densest:
        raise DataError(
            f"expected a file that holds the array it declares, got {readable(declared)} declared and {readable(held)} "
            f"stored in {place}; fetch or make it again"
        )


def available_memory() -> int:
    """Return the bytes that may still be taken; all of the machine's where the system does not tell."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    table = Path("/proc/meminfo")
    if table.is_file():
        for line in table.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    left = _left_to_the_group()
    return free if left is None else min(free, left)


def _left_to_the_group() -> int | None:
    """Return the bytes that the control group of this process may still take, as of a container; None without a limit.

    Those of files that it read count as taken, but are given back when they are needed.
    """
    try:
        limit, taken = (int((GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        shares = dict(line.split() for line in (GROUP / "memory.stat").read_text().splitlines())
        return max(0, limit - taken + int(shares["inactive_file"]))
    except (OSError, ValueError, KeyError):  # no such group, or the limit "max"
        return None


def require_memory(size: int, place: str, remedy: str = "") -> None:
    """Refuse to read more than fits into memory; `remedy` is what to do instead.

    Raises:
        InsufficientMemoryError: there is less.
    """
    available = available_memory()
    if size > available:
        raise InsufficientMemoryError(
            f"expected fields that fit into the {readable(available)} of free memory, got {readable(size)} in {place}; "
            f"{remedy or 'give fewer trajectories or frames, or --resample (resample=True)'}"
        )
