"""What a result was computed with: versions, device, threads."""

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from rdjepa.version import __version__


def software() -> dict[str, str]:
    """Versions and device that a result depends on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    return {
        "rdjepa": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "device": device,
        "threads": str(torch.get_num_threads()),
    }


def processor() -> str:
    """The processor's name where the system tells it (Linux does), its architecture otherwise."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def fingerprint(trajectories: Mapping[str, str]) -> str:
    """SHA-256 over the keys and checksums of the trajectories that a run was given, in the order of the keys."""
    return hashlib.sha256(json.dumps(sorted(trajectories.items())).encode()).hexdigest()
