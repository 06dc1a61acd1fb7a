"""RD-JEPA: predictive latent pretraining for few-trajectory transfer across reaction-diffusion equations.

Array letters, used throughout: B batch, T frames, H and W grid points, C components, S patches, N forecast horizons.
Arrays are (…, H, W, C) in this interface and on disk, (…, C, H, W) inside the networks.

The public names are imported when they are first used (PEP 562), so that a process that only simulates or reads
trajectories does not import torch.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from rdjepa.version import __version__

if TYPE_CHECKING:
    from rdjepa import forecasters, systems
    from rdjepa.adaptation.forecaster import Forecaster
    from rdjepa.adaptation.saving import load_forecaster
    from rdjepa.api import adapt, compare, evaluate, first_look, inspect, learning_curve, load, pretrain, rehearsal
    from rdjepa.data.readers import Reading
    from rdjepa.data.readers import load as read
    from rdjepa.data.recorded import add_recordings
    from rdjepa.data.simulate import simulate
    from rdjepa.data.statistics import Normalizer
    from rdjepa.data.trajectory import Trajectory
    from rdjepa.data.window_dataset import WindowDataset
    from rdjepa.evaluation import metrics
    from rdjepa.forecasters.loss import forecast_loss
    from rdjepa.io.hub import push as push_to_hub
    from rdjepa.models.rdjepa import build
    from rdjepa.pretraining.loss import jepa_loss

__all__ = [
    "Forecaster",
    "Normalizer",
    "Reading",
    "Trajectory",
    "WindowDataset",
    "__version__",
    "adapt",
    "add_recordings",
    "build",
    "compare",
    "evaluate",
    "first_look",
    "forecast_loss",
    "forecasters",
    "inspect",
    "jepa_loss",
    "learning_curve",
    "load",
    "load_forecaster",
    "metrics",
    "pretrain",
    "push_to_hub",
    "read",
    "rehearsal",
    "simulate",
    "systems",
]

_LOCATIONS = {
    "Forecaster": "rdjepa.adaptation.forecaster:Forecaster",
    "Normalizer": "rdjepa.data.statistics:Normalizer",
    "Reading": "rdjepa.data.readers:Reading",
    "Trajectory": "rdjepa.data.trajectory:Trajectory",
    "WindowDataset": "rdjepa.data.window_dataset:WindowDataset",
    "adapt": "rdjepa.api:adapt",
    "add_recordings": "rdjepa.data.recorded:add_recordings",
    "forecast_loss": "rdjepa.forecasters.loss:forecast_loss",
    "jepa_loss": "rdjepa.pretraining.loss:jepa_loss",
    "build": "rdjepa.models.rdjepa:build",
    "compare": "rdjepa.api:compare",
    "evaluate": "rdjepa.api:evaluate",
    "first_look": "rdjepa.api:first_look",
    "forecasters": "rdjepa.forecasters",
    "inspect": "rdjepa.api:inspect",
    "learning_curve": "rdjepa.api:learning_curve",
    "load": "rdjepa.api:load",
    "load_forecaster": "rdjepa.adaptation.saving:load_forecaster",
    "metrics": "rdjepa.evaluation.metrics",
    "pretrain": "rdjepa.api:pretrain",
    "push_to_hub": "rdjepa.io.hub:push",
    "read": "rdjepa.data.readers:load",
    "rehearsal": "rdjepa.api:rehearsal",
    "simulate": "rdjepa.data.simulate:simulate",
    "systems": "rdjepa.systems",
}


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it, at its first use."""
    if name not in _LOCATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, resolve_name(_LOCATIONS[name]))


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
