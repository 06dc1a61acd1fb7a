"""What a result was computed with: versions, device, threads."""

import platform

import numpy as np
import torch

from rdjepa.version import __version__


def software() -> dict[str, str]:
    """Versions and device that a result depends on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    return {
        "rdjepa": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "device": device,
        "threads": str(torch.get_num_threads()),
    }
