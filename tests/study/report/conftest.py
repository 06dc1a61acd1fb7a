"""Rows of a study that was never run: random errors and fields of a fixed seed, by the schema of the real ones."""

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


def run_id(*cell):
    return hashlib.sha256(repr(cell).encode()).hexdigest()[:16]


def study(name, trajectories=4, profile="nano", seed=0):
    """Rows, records and spectra: errors grow with the horizon and fall with K, RD-JEPA's are often lowest."""
    random = np.random.default_rng(seed)
    plan = registry.get(name)
    budgets = plan.budgets_of(plan.systems[0])
    regimes = ("id", "coeff-ood", "ic-ood") if name == "source" else ("id",)
    rows, records, spectra = [], [], []
    for system, k, support, forecaster in product(plan.systems, budgets, SEEDS, FORECASTERS[name]):
        cell = {"study": name, "profile": profile, "system": system, "k": k, "support_seed": support}
        cell |= {"forecaster": forecaster}
        run = run_id(*cell.values())
        records.append(
            cell | {"id": run, "updates": 0 if forecaster == "persistence" else 200, "seconds": {"train": 1.5}}
        )
        level = (0.08 + 0.04 * FORECASTERS[name].index(forecaster)) * k**-0.3 * random.uniform(0.6, 1.4)
        grid = list(product(regimes, METRICS, range(1, 6), range(trajectories)))
        values = [
            level * (0.4 + 0.3 * h) * (0.1 if m == "gradient_l1" else 1) * random.uniform(0.8, 1.2)
            for _, m, h, _ in grid
        ]
        part = pd.DataFrame(grid, columns=["regime", "metric", "horizon", "trajectory"])
        rows.append(part.assign(**cell, value=values, run=run))
        bins = np.arange(1, 65)
        for regime, horizon in product(regimes, (1, 5)):
            reference = 1e3 * bins**-3.0
            spectrum = pd.DataFrame({"wavenumber": bins, "reference": reference, "error": level * horizon * bins**-1.5})
            spectra.append(spectrum.assign(**cell, regime=regime, horizon=horizon, run=run))
    return pd.concat(rows, ignore_index=True), pd.DataFrame(records), pd.concat(spectra, ignore_index=True)


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
    return study


@pytest.fixture(scope="session")
def made_example():
    return example
