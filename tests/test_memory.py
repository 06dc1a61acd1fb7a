"""Freed memory is kept: a block that is freed and taken again costs no page faults."""

import os
import platform
import subprocess
import sys

import pytest

from rdjepa.memory import SETTINGS

BLOCK = 64 * 2**20
PROGRAM = f"""
import resource
import numpy as np
from rdjepa.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty({BLOCK}, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = [faults() for _ in range(3)][-1]
keep_freed_memory()
kept = [faults() for _ in range(3)][-1]
print(given_back, kept)
"""


def faults(**environment: str) -> tuple[int, int]:
    """Return the page faults of filling a block that was freed before, without and with the setting."""
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    # Without huge pages, of which one fault brings 512 pages.
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**inherited, "NUMPY_MADVISE_HUGEPAGE": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    given_back, kept = map(int, program.stdout.split())
    return given_back, kept


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_a_freed_block_is_taken_again_without_page_faults():
    given_back, kept = faults()
    assert given_back > 100 * max(kept, 1)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_what_the_environment_says_is_left_alone():
    given_back, kept = faults(MALLOC_MMAP_THRESHOLD_="131072", MALLOC_TRIM_THRESHOLD_="131072")
    assert kept > 0.9 * given_back > 0
