"""The public functions that combine several subpackages: pretrain, load, adapt, evaluate, inspect and others."""

from rdjepa.api.adapting import ANCHORED, BASES, NONE, adapt
from rdjepa.api.curve import CURVE_DRAWS, CURVE_UPDATES, learning_curve
from rdjepa.api.evaluating import compare, evaluate
from rdjepa.api.looking import LOOK_LEVEL, LOOK_SHARE, LOOK_UPDATES, first_look, inspect
from rdjepa.api.pretraining import CHECKED, latent_error, load, pretrain
from rdjepa.api.rehearsing import rehearsal
from rdjepa.api.start import DECODERS, ENCODERS
from rdjepa.api.support import AUTO

__all__ = [
    "ANCHORED",
    "AUTO",
    "BASES",
    "CHECKED",
    "CURVE_DRAWS",
    "CURVE_UPDATES",
    "DECODERS",
    "ENCODERS",
    "LOOK_LEVEL",
    "LOOK_SHARE",
    "LOOK_UPDATES",
    "NONE",
    "adapt",
    "compare",
    "evaluate",
    "first_look",
    "inspect",
    "latent_error",
    "learning_curve",
    "load",
    "pretrain",
    "rehearsal",
]
