from dataclasses import replace

import pytest

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
def unsaved(monkeypatch):
    """Figures of a report are drawn, but instead of laying them out and writing them, empty files are made."""

    def save(figure, out, name, kinds=("pdf", "png")):
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"{name}.{kind}" for kind in kinds]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr(style, "save", save)
