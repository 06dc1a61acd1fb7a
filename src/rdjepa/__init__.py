"""RD-JEPA: predictive latent pretraining for few-trajectory transfer across reaction-diffusion equations.

Array letters, used throughout: B batch, T frames, H and W grid points, C components, S patches, N forecast horizons.
Arrays are (…, H, W, C) in this interface and on disk, (…, C, H, W) inside the networks.
"""

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
from rdjepa.version import __version__

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
