"""The public functions that combine several subpackages: pretrain, load, adapt, evaluate, learning_curve, inspect."""

from rdjepa.api.adapting import AUTO, BASES, adapt, checked_fields
from rdjepa.api.evaluating import CURVE_DRAWS, CURVE_UPDATES, evaluate, inspect, learning_curve
from rdjepa.api.pretraining import CHECKED, latent_error, load, pretrain

__all__ = [
    "AUTO",
    "BASES",
    "CHECKED",
    "CURVE_DRAWS",
    "CURVE_UPDATES",
    "adapt",
    "checked_fields",
    "evaluate",
    "inspect",
    "latent_error",
    "learning_curve",
    "load",
    "pretrain",
]
