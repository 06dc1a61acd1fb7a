"""RD-JEPA: predictive latent pretraining for few-trajectory transfer across reaction-diffusion equations.

Array letters, used throughout: B batch, T frames, H and W grid points, C components, S patches, N forecast horizons.
Arrays are (…, H, W, C) in this interface and on disk, (…, C, H, W) inside the networks.

The public names are imported when they are first used (PEP 562), so that a process which only simulates or reads
trajectories does not wait for torch.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from rdjepa.version import __version__

if TYPE_CHECKING:
    from rdjepa import forecasters, systems
    from rdjepa.api import adapt, evaluate, load, pretrain
    from rdjepa.data.normalization import Normalizer
    from rdjepa.data.simulate import simulate
    from rdjepa.data.trajectory import Trajectory
    from rdjepa.evaluation import metrics
    from rdjepa.models.rdjepa import build
    from rdjepa.training import losses
    from rdjepa.training.forecaster import Forecaster, load_forecaster
    from rdjepa.training.hub import push as push_to_hub

__all__ = [
    "Forecaster",
    "Normalizer",
    "Trajectory",
    "__version__",
    "adapt",
    "build",
    "evaluate",
    "forecasters",
    "load",
    "load_forecaster",
    "losses",
    "metrics",
    "pretrain",
    "push_to_hub",
    "simulate",
    "systems",
]

_HOME = {
    "Forecaster": "rdjepa.training.forecaster:Forecaster",
    "Normalizer": "rdjepa.data.normalization:Normalizer",
    "Trajectory": "rdjepa.data.trajectory:Trajectory",
    "adapt": "rdjepa.api:adapt",
    "build": "rdjepa.models.rdjepa:build",
    "evaluate": "rdjepa.api:evaluate",
    "forecasters": "rdjepa.forecasters",
    "load": "rdjepa.api:load",
    "load_forecaster": "rdjepa.training.forecaster:load_forecaster",
    "losses": "rdjepa.training.losses",
    "metrics": "rdjepa.evaluation.metrics",
    "pretrain": "rdjepa.api:pretrain",
    "push_to_hub": "rdjepa.training.hub:push",
    "simulate": "rdjepa.data.simulate:simulate",
    "systems": "rdjepa.systems",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its home, at its first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, resolve_name(_HOME[name]))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
