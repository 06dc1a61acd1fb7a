"""Pretraining on noise: small enough for a test, in this process or in one that it starts."""

import numpy as np

from rdjepa.data.statistics import Normalizer
from rdjepa.pretraining.config import PretrainConfig
from rdjepa.pretraining.dataset import Dataset
from rdjepa.pretraining.frames import Frames
from tiny import TINY

CONFIG = PretrainConfig(steps=6, batch=2, warmup=2, save_every=2, log_every=1, diagnose_every=3)


def source(seed=0, systems=("a", "b")):
    rng = np.random.default_rng(seed)
    fields = {name: [rng.standard_normal((14, 2, TINY.grid, TINY.grid)).astype(np.float32)] for name in systems}
    normalizers = {name: Normalizer((0.0, 0.0), (1.0, 1.0)) for name in systems}
    return Dataset(Frames.of(fields), normalizers, {f"{name}/0": "sum" for name in systems})
