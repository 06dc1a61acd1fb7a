"""Rows of a study that was never run: random errors and fields of a fixed seed, by the schema of the real ones."""

import functools
import hashlib
from itertools import product

import numpy as np
import pandas as pd
import pytest

from rdjepa.study import registry

METRICS = ("relative_l2", "gradient_l1", "mse", "vrmse")
FORECASTERS = {
    "heldout": ("rd-jepa", "no-latent", "scratch", "fno", "lno", "riesz-no", "revit", "cnext-unet", "persistence"),
    "source": ("rd-jepa", "no-latent", "fno"),
    "boundary": ("rd-jepa", "no-latent", "fno", "extrapolation"),
    "scratch": ("rd-jepa", "scratch"),
    "ablation": ("scratch", "reference", "masked-fields", "sources-and-family", "seed-2", "one-equation"),
}
SEEDS = (777, 778, 779)


BINS = np.arange(1, 9)


def run_id(*cell):
    return hashlib.sha256(repr(cell).encode()).hexdigest()[:16]


@functools.cache
def study(name, trajectories=4, profile="nano", seed=0):
    """Rows, records and spectra: errors grow with the horizon and fall with K, RD-JEPA's are often lowest."""
    random = np.random.default_rng(seed)
    plan = registry.get(name)
    regimes = ("id", "coeff-ood", "ic-ood") if name == "source" else ("id",)
    places = product(plan.systems, plan.budgets_of(plan.systems[0]), SEEDS, FORECASTERS[name])
    cells = pd.DataFrame(places, columns=["system", "k", "support_seed", "forecaster"])
    cells = cells.assign(study=name, profile=profile)
    cells["run"] = [run_id(*cell) for cell in cells.itertuples(index=False)]
    updates = np.where(cells["forecaster"] == "persistence", 0, 200)
    records = cells.rename(columns={"run": "id"}).assign(updates=updates, seconds=[{"train": 1.5}] * len(cells))
    order = cells["forecaster"].map(FORECASTERS[name].index)
    level = (0.08 + 0.04 * order) * cells["k"] ** -0.3 * random.uniform(0.6, 1.4, len(cells))
    names = ["regime", "metric", "horizon", "trajectory"]
    grid = pd.DataFrame(product(regimes, METRICS, range(1, 6), range(trajectories)), columns=names)
    rows = cells.assign(value=level).merge(grid, how="cross")
    rows["value"] *= (0.4 + 0.3 * rows["horizon"]) * np.where(rows["metric"] == "gradient_l1", 0.1, 1.0)
    rows["value"] *= random.uniform(0.8, 1.2, len(rows))
    bins = pd.DataFrame(product(regimes, (1, 5), BINS), columns=["regime", "horizon", "wavenumber"])
    spectra = cells.assign(error=level).merge(bins.assign(reference=1e3 * bins["wavenumber"] ** -3.0), how="cross")
    spectra["error"] *= spectra["horizon"] * spectra["wavenumber"] ** -1.5
    return rows, records, spectra


def example(run):
    """Newest frame, references and forecasts of a made-up wave, wrong in a way that the run decides."""
    x = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    wave = np.stack([np.sin(x[:, None] + 2 * x[None] + 0.3 * t) for t in range(6)])
    fields = np.stack([wave, np.cos(wave)], axis=-1).astype("float32")
    random = np.random.default_rng(int(run, 16))
    wrong = fields[1:] + random.normal(0, 0.1, fields[1:].shape) * np.arange(1, 6)[:, None, None, None]
    return {"newest": fields[0], "reference": fields[1:], "forecast": wrong.astype("float32")}


@pytest.fixture(scope="session")
def heldout():
    """Rows, records and spectra of all held-out cells."""
    return study("heldout")


@pytest.fixture(scope="session")
def source():
    return study("source")


@pytest.fixture(scope="session")
def made_study():
    """Makes a study's rows, records and spectra, once for all tests; none changes them."""
    return study


@pytest.fixture(scope="session")
def made_example():
    return example
