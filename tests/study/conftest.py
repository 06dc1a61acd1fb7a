import shutil
from dataclasses import replace

import pytest

from rdjepa import systems
from rdjepa.data import acquire
from rdjepa.data.simulate import simulate
from rdjepa.study import runner as study
from rdjepa.study.profiles import profile
from rdjepa.viz import style


@pytest.fixture(scope="session")
def brief():
    """A profile that adapts for one update and evaluates on one trajectory."""
    nano = profile("nano", precision="float32")  # as fast on every processor
    return replace(nano, adapt=replace(nano.adapt, steps=1), test=1, statistics=1, curve=(1, 5), stride=1)


@pytest.fixture(scope="session")
def two_cells():
    """Two small cells of the held-out study."""
    only = ["system=lambda-omega", "k=1", "support_seed=777", "forecaster=riesz-no", "forecaster=persistence"]
    return study.cells("heldout", only)


@pytest.fixture(scope="session")
def finished(tmp_path_factory, brief, two_cells):
    """A study directory in which these cells are done; tests only read it."""
    root = tmp_path_factory.mktemp("finished")
    study.run(root, two_cells, brief)
    return root


@pytest.fixture
def begun(tmp_path, finished):
    """A study directory that has the trajectories and statistics of these cells, and no cell."""
    for name in ("data", "statistics"):
        shutil.copytree(finished / name, tmp_path / "begun" / name)
    return tmp_path / "begun"


@pytest.fixture(scope="session")
def simulate_once():
    """Simulates a trajectory once for all tests; nothing may change it."""
    made = {}

    def once(name, seed=0, regime="id", split="pool"):
        system = systems.get(name)
        place = (id(system), seed, regime, split)
        if place not in made:
            made[place] = (system, simulate(system, seed, regime, split))  # the system lives on, so that its id stays
        return made[place][1]

    return once


@pytest.fixture(autouse=True)
def _simulated_once(simulate_once, monkeypatch):
    monkeypatch.setattr(acquire, "simulate", simulate_once)


@pytest.fixture
def unsaved(monkeypatch):
    """Figures of a report are drawn, but instead of laying them out and writing them, empty files are made."""

    def save(figure, out, name, kinds=("pdf", "png")):
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"{name}.{kind}" for kind in kinds]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr(style, "save", save)
