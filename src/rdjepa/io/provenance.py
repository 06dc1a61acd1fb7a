"""Provenance of a result: versions, device, threads, and a fingerprint of its trajectories."""

import hashlib
import inspect
import json
import platform
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import torch

from rdjepa.version import __version__


def software(device: torch.device | None = None) -> dict[str, str]:
    """Return the versions, the device and the number of threads that a result depends on.

    Two states of the package between releases have one version; "source" tells them apart.

    Args:
        device: that it was computed on; the GPU, if there is one, when None.
    """
    on_gpu = torch.cuda.is_available() if device is None else device.type == "cuda"
    return {
        "rdjepa": __version__,
        "source": source(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "device": torch.cuda.get_device_name(device) if on_gpu else processor(),
        "threads": str(torch.get_num_threads()),
    }


@cache
def source() -> str:
    """Return twelve digits of the SHA-256 over the Python files of the package."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


@cache  # as it was when the class was first asked for: a file that was edited since is not what runs here
def source_of(kind: type) -> str:
    """Return the SHA-256 of the file that a class is in; "" for one that was typed at a prompt or in a notebook."""
    try:
        inspect.getsource(kind)  # what is typed after a script has run belongs to that script's module
        text = inspect.getsource(sys.modules[kind.__module__])
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def processor() -> str:
    """Return the name of the processor where the system reports one (Linux does), else its architecture."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def fingerprint(trajectories: Mapping[str, str]) -> str:
    """Return the SHA-256 over keys and checksums of the trajectories of a run, in the order of the keys."""
    return hashlib.sha256(json.dumps(sorted(trajectories.items())).encode()).hexdigest()
