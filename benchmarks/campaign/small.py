"""Everything in small: a system, a preset, a profile and a study with which each command takes under a second."""

import os
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

SYSTEM = str(Path(__file__).with_name("turning.py"))
SOURCE = "turning"
PRESET, STUDY = "tiny", "turning-study"
FORMATS = ("xarray", "h5netcdf", "zarr", "scipy.io", "PIL.Image", "pyarrow.parquet")  # of the examples


@cache
def install() -> None:
    """Register them in this process."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from rdjepa import systems
    from rdjepa.adaptation import adapt
    from rdjepa.models.rdjepa import PRESETS, ModelConfig
    from rdjepa.pretraining import config
    from rdjepa.study import profiles, registry

    systems.register(systems.get(SYSTEM))
    PRESETS[PRESET] = ModelConfig(32, 1, (1, 1, 1, 1, 1), 4, 1, 1, 8, grid=64, patch=8)
    short = replace(config.PROFILES["nano"], steps=6, warmup=2, save_every=2, log_every=1, diagnose_every=6)
    config.PROFILES[PRESET] = replace(short, batch=2, precision="float32")
    adapt.PROFILES[PRESET] = replace(adapt.PROFILES["nano"], steps=4, batch=2)
    nano = profiles.profile("nano", precision="float32")  # as fast on every processor
    sizes = replace(nano.adapt, steps=2, batch=2)
    profiles.PROFILES[PRESET] = replace(
        nano, name=PRESET, preset=PRESET, adapt=sizes, test=1, statistics=2, curve=(1,), stride=2
    )
    forecasters = ("fno", "riesz-no", "persistence", "extrapolation")
    registry.register(registry.Study(STUDY, "In small", (SOURCE,), forecasters, budgets=(1,), seeds=(1, 2)))


def warm() -> None:
    """Import what the commands import and compile the kernels, so that forks need not."""
    for name in ("api", "cli.main", "study.collect", "study.dataset", "study.report.write", "study.runner"):
        import_module(f"rdjepa.{name}")
    for name in ("matplotlib.font_manager", "torch._dynamo", *FORMATS):
        import_module(name)
    import pyarrow as pa

    import rdjepa

    pa.allocate_buffer(64)  # the first allocation of arrow's pool in a fork fails under a limit of 1 GiB
    install()
    rdjepa.simulate(SYSTEM)
