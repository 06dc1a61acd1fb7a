"""Freed memory that the process keeps, for the next update or step to take.

glibc gives large blocks back to the system when they are freed and gets them again page by page, zeroed: in an update
of adaptation at the preset nano that is a tenth of the time (`benchmarks/memory.py`). The peak of memory
stays what it is. See mallopt(3) of the Linux man-pages.
"""

import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of mallopt
MOST_OF_OLD = 2**25  # bytes; an older glibc refuses a larger threshold, and would keep its small one
SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": (MMAP_THRESHOLD, 2**30),
    "MALLOC_TRIM_THRESHOLD_": (TRIM_THRESHOLD, 2**31 - 1),
}


def keep_freed_memory() -> None:
    """Keep freed blocks in this process and in those that it starts, where the C library is glibc.

    Those below 1 GiB, below 32 MiB where glibc is older. What the environment says already is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    for variable, (parameter, size) in SETTINGS.items():
        if mallopt is not None and variable not in os.environ:
            if not mallopt(parameter, size):
                size = MOST_OF_OLD
                mallopt(parameter, size)
            os.environ[variable] = str(size)
