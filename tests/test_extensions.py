"""A baseline, a study, a metric and an equation of a user's own, from cells to tables, figures, page, save and load."""

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import rdjepa
from rdjepa import extensions, forecasters, systems
from rdjepa.cli import main as cli
from rdjepa.data.parallel import completed
from rdjepa.errors import ArgumentError, CheckpointError, StudyError
from rdjepa.evaluation import metrics
from rdjepa.evaluation.metrics import Metric
from rdjepa.forecasters import Baseline
from rdjepa.forecasters.joint import JointForecaster
from rdjepa.io.tensors import load_tensors, save_tensors
from rdjepa.pde.system import Box, Coefficient, InitialCondition, Numerics, Regime, System
from rdjepa.registry import import_class
from rdjepa.study import collect, registry, runner
from rdjepa.study.cell import Cell, identity
from rdjepa.study.profiles import profile
from rdjepa.study.registry import Study
from rdjepa.study.report import write

MODULE = '''
from dataclasses import dataclass

from torch import Tensor, nn

from rdjepa.forecasters.joint import JointForecaster
from rdjepa.forecasters.persistence import Persistence


class Rest(Persistence):
    """Persistence that is computed in standardized units."""

    def in_physical_units(self) -> None:
        return None


@dataclass(frozen=True)
class Config:
    width: int = 8
    rate: float = 1e-2
    grid: int = 32
    components: int = 2


class Pointwise(JointForecaster):
    """Two maps at every point."""

    presets = {"paper": Config(16), "nano": Config()}

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.maps = nn.Sequential(
            nn.Conv2d(self.channels_in, config.width, 1), nn.GELU(), nn.Conv2d(config.width, self.channels_out, 1)
        )

    def network(self, stacked: Tensor) -> Tensor:
        return self.maps(stacked)
'''


def turning(u, v, omega):
    return omega * v, -omega * u


def waves(grid, p, rng):
    x, y = grid.coordinates()
    phase = 2 * np.pi * (x + y) / grid.length + rng.uniform(0, 2 * np.pi)
    return np.stack([np.sin(phase), np.cos(phase)])


TURNING = System(
    name="turning",
    title="Turning waves",
    reference="none",
    coefficients=(Coefficient("D", "diffusivity"), Coefficient("omega", "rate")),
    kinetics=turning,
    diffusivity_names=("D", "D"),
    regimes={"id": Regime((Box({"D": (0.01, 0.02), "omega": (1.0, 2.0)}),), (InitialCondition("waves", waves),))},
    numerics=Numerics(length=6.0, dt=0.01, first=0.1, last=1.2, size=32, stored=32, frames=12),
    screens=(),
)


def largest(prediction, reference):
    return np.abs(np.asarray(prediction, float) - np.asarray(reference, float)).max(axis=(-3, -2, -1))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A user's module with a forecaster, importable while the test runs."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "users_pointwise.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    yield importlib.import_module("users_pointwise")
    sys.modules.pop("users_pointwise", None)


def test_what_is_registered_appears_everywhere(registrations, module, tmp_path):
    systems.register(TURNING)
    metrics.register(Metric("largest", "Largest", largest, "the largest error"))
    forecasters.register(Baseline("pointwise", "Two pointwise maps & more", "users_pointwise:Pointwise"))
    forecasters.register(Baseline("rest", "At rest", "users_pointwise:Rest", trained=False))
    compared = ("pointwise", "persistence", "rest")
    registry.register(Study("turning-study", "Waves that turn", ("turning",), compared, budgets=(1, 2), seeds=(1,)))
    nano = profile("nano", precision="float32")
    brief = replace(nano, adapt=replace(nano.adapt, steps=2), test=1, statistics=1)

    plan = runner.cells("turning-study")
    assert [str(cell) for cell in plan[:2]] == [
        "turning-study/turning/K=1/1/pointwise",
        "turning-study/turning/K=1/1/persistence",
    ]
    ran = runner.run(tmp_path / "study", plan, brief)
    assert (len(ran.done), ran.failed) == (6, {})
    rows = collect.collect(tmp_path / "study", "turning-study", "nano")
    assert set(rows.metric) == set(metrics.METRICS) and "largest" in metrics.METRICS
    still, rest = (rows[rows.forecaster == name].value.to_numpy() for name in ("persistence", "rest"))
    np.testing.assert_allclose(rest, still, rtol=1e-4)

    material = (rows, collect.records(tmp_path / "study"), collect.spectra(tmp_path / "study"))
    out = tmp_path / "report"
    written = write.write_tables(*material, out, "turning-study")
    assert {path.stem for path in written} == {
        *("tables", "all-forecasters", "other-metrics", "skill-persistence", "skill-rest", "paired", "devices"),
        "spectra",
    }
    assert "| Turning waves | Two pointwise maps & more |" in (out / "all-forecasters.md").read_text()
    assert r"Two pointwise maps \& more" in (out / "all-forecasters.tex").read_text()
    assert "[1]" not in (out / "all-forecasters.md").read_text()  # the study has one selection, so none is missing
    other = (out / "other-metrics.md").read_text()
    assert "Mean squared error, the VRMSE of The Well, and the largest error; " in other and "Largest, K = 2" in other
    table = pd.read_csv(out / "other-metrics.csv")
    mine = table[(table.metric == "largest") & (table.forecaster == "pointwise") & (table.k == 2)]
    errors = rows[(rows.metric == "largest") & (rows.forecaster == "pointwise") & (rows.k == 2)]
    assert mine["mean"].item() == pytest.approx(100 * errors.value.mean(), rel=1e-6)

    examples = collect.examples(tmp_path / "study")
    page = write.write_report(*material, examples, out, "turning-study").read_text()
    shown = re.findall('<figure class="print" id="(.*)">', page)
    assert shown == ["errors-by-horizon", "all-forecasters", "spectra"]
    assert "<h1>Waves that turn</h1>" in page and "Two pointwise maps &amp; more" in page and "Largest" in page


def test_an_edited_file_of_a_users_forecaster_makes_new_cells(registrations, module):
    forecasters.register(Baseline("pointwise", "Pointwise", "users_pointwise:Pointwise"))
    nano = profile("nano")
    mine, known = (Cell("heldout", "barkley", 1, 777, name) for name in ("pointwise", "riesz-no"))
    before = identity(mine, nano)
    assert before["class"] == "users_pointwise:Pointwise" and "source" not in identity(known, nano)
    path = Path(module.__file__)
    path.write_text(path.read_text().replace("GELU", "SiLU"))
    assert identity(mine, nano) == before  # what runs here is still the class that was imported
    importlib.reload(module)
    after = identity(mine, nano)
    assert {key for key in before if before[key] != after[key]} == {"source"}


def test_a_users_forecaster_is_saved_with_its_class_and_read_back(registrations, module, tmp_path):
    fields = np.random.default_rng(0).standard_normal((10, 32, 32, 2)).astype(np.float32)
    forecasters.register(Baseline("pointwise", "Pointwise", module.Pointwise))
    adapted = rdjepa.adapt(forecasters.build("pointwise", "nano", seed=1), fields, steps=1, base="linear", device="cpu")
    path = adapted.save(tmp_path / "f.safetensors")
    forecasters.registry._REGISTERED.entries.pop("pointwise")  # the file alone must do
    loaded = rdjepa.load_forecaster(path)
    assert (loaded.model.name, loaded.base) == ("pointwise", "linear")
    assert np.array_equal(loaded.forecast(fields[:4]), adapted.forecast(fields[:4]))

    monkey = module.Pointwise
    del module.Pointwise
    with pytest.raises(CheckpointError, match="no Pointwise in users_pointwise"):
        rdjepa.load_forecaster(path)
    module.Pointwise = monkey
    tensors, header = load_tensors(path)
    save_tensors(tmp_path / "g.safetensors", tensors, header | {"class": "users_gone.inner:Pointwise"})
    with pytest.raises(CheckpointError, match="no module users_gone"):
        rdjepa.load_forecaster(tmp_path / "g.safetensors")
    save_tensors(tmp_path / "h.safetensors", tensors, header | {"class": "users_pointwise:Config"})
    with pytest.raises(CheckpointError, match=r"subclass of rdjepa\.forecasters\.base\.ForecastModel"):
        rdjepa.load_forecaster(tmp_path / "h.safetensors")


def test_a_class_that_nobody_can_import_is_refused_before_training(module, tmp_path):
    class Hidden(module.Pointwise):  # type: ignore[name-defined]
        pass

    fields = np.random.default_rng(0).standard_normal((10, 32, 32, 2)).astype(np.float32)
    with pytest.warns(UserWarning, match="cannot be saved; move the class into a module"):
        adapted = rdjepa.adapt(Hidden.from_preset("nano"), fields, steps=1, device="cpu")
    with pytest.raises(ArgumentError, match="cannot be saved; move the class into a module"):
        adapted.save(tmp_path / "f.safetensors")
    assert list(tmp_path.glob("*.safetensors")) == []


def test_a_network_of_a_wrong_shape_is_answered_with_the_right_one(module):
    class Narrow(module.Pointwise):  # type: ignore[name-defined]
        def network(self, stacked):
            return stacked

    with pytest.raises(ArgumentError, match=r"\(2, 10, 32, 32\) \(B, 5 C, H, W\).* of Narrow, got \(2, 8, 32, 32\); "):
        Narrow.from_preset("nano")(torch.zeros(2, 4, 2, 32, 32))


def test_files_of_the_time_before_are_read(tmp_path):
    fields = np.random.default_rng(0).standard_normal((10, 32, 32, 2)).astype(np.float32)
    new = rdjepa.adapt(forecasters.build("persistence"), fields, device="cpu").save(tmp_path / "new.safetensors")
    tensors, header = load_tensors(new)
    assert "class" not in header  # the name is enough for one of the package
    header["contender"] = header.pop("forecaster")
    save_tensors(tmp_path / "old.safetensors", tensors, header)
    assert rdjepa.load_forecaster(tmp_path / "old.safetensors").model.name == "persistence"
    save_tensors(tmp_path / "old.safetensors", tensors, header | {"contender": "gone"})
    with pytest.raises(CheckpointError, match=r"forecaster among rd-jepa, .*, got 'gone'"):
        rdjepa.load_forecaster(tmp_path / "old.safetensors")


def test_a_class_that_is_no_forecaster_is_answered_with_what_it_lacks(registrations):
    forecasters.register(Baseline("plain", title="Plain", model=torch.nn.Linear))
    with pytest.raises(ArgumentError, match=r"Linear to be a subclass of rdjepa\.forecasters\.base\.ForecastModel"):
        forecasters.build("plain", "nano")
    with pytest.raises(ArgumentError, match='configuration "paper" among the presets of Small, got nano; add one'):
        type("Small", (JointForecaster,), {"presets": {"nano": None}})
    slim = SimpleNamespace(grid=16, rate=1e-3)
    kind: Any = type("Slim", (JointForecaster,), {"presets": {"paper": slim}, "network": lambda self, x: x})
    with pytest.raises(ArgumentError, match="Slim with grid, components, rate, got one without components; add"):
        kind.from_preset("paper")


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one():
    with pytest.raises(ArgumentError, match="got 'persistance'; name one of them, such as persistence, or register"):
        forecasters.get("persistance")
    with pytest.raises(ArgumentError, match="a preset among paper, nano, got 'nanno'; name one of them, such as nano"):
        forecasters.build("fno", "nanno")


def test_a_name_is_registered_once_and_an_unknown_one_lists_the_known():
    with pytest.raises(ArgumentError, match="'fno', which is taken"):
        forecasters.register(Baseline("fno", "Another", "users:Another"))
    with pytest.raises(StudyError, match="'source', which is taken"):
        registry.register(Study("source", "Another", ("barkley",)))
    with pytest.raises(ArgumentError, match="'mse', which is taken"):
        metrics.register(Metric("mse", "Another", largest))
    with pytest.raises(ArgumentError, match="without slash"):
        forecasters.register(Baseline("a/b", "Another", "users:Another"))
    with pytest.raises(ArgumentError, match=r"among rd-jepa, .*linear, autoregression, equation, got 'unet'"):
        forecasters.build("unet")
    with pytest.raises(
        StudyError,
        match="decoder-source, decoder-boundary, rehearsal, augmented, anchored, ablation, got 'mine'",
    ):
        runner.cells("mine")


@pytest.fixture
def fresh(registrations, tmp_path, monkeypatch):
    """Forget afterwards what was loaded; the folder of the files."""
    monkeypatch.setattr(extensions, "_LOADED", [])
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("users_")]:
        del sys.modules[name]


REGISTERING = """
from rdjepa import forecasters
forecasters.register(forecasters.Baseline("mine", "Mine", "rdjepa.forecasters.persistence:Persistence", trained=False))
"""


def test_a_loaded_file_is_imported_once_and_known_to_every_worker(fresh):
    path = fresh / "users_file.py"
    path.write_text(REGISTERING)
    with pytest.raises(ArgumentError, match="'mine'"):
        forecasters.get("mine")
    for _ in range(2):
        extensions.load(path)
    assert extensions.loaded() == (path,) and sys.modules["users_file"].__file__ == str(path)
    with completed(forecasters.get, [("fno",), ("mine",)], "ab", workers=2) as results:
        assert {position: found.title for position, found in results} == {0: "FNO", 1: "Mine"}


def test_the_command_line_knows_what_loaded_files_register(fresh, capsys):
    (fresh / "users_beside.py").write_text(REGISTERING)
    (fresh / "users_file.py").write_text(
        "import users_beside\nfrom rdjepa.study.registry import Study, register\n"
        'register(Study("own", "Own", ("lambda-omega",), ("mine",), budgets=(1,), seeds=(1,)))\n'
    )
    command = ["study", "tables", "own", "--root", str(fresh / "study")]
    found = "expected a study directory or exported rows"
    both = ["--load", str(fresh / "users_file.py"), "--load", str(fresh / "users_beside.py")]
    for load, sentence in ([], "got 'own'"), (both, found):
        with pytest.raises(SystemExit):
            cli.main([*load, *command])
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("users_gone.py", None, "expected a Python file to load, got no file at .*users_gone.py; correct the path"),
        ("users-file.py", "", "expected a file that can be imported, as mine.py, got .*users-file.py; give it such a"),
        ("json.py", "", "expected a file with a name of its own, got .*json.py, but json is a module already; rename"),
        ("users_bad.py", "\nx = 1 / 0", r"expected .*users_bad.py to run, got ZeroDivisionError .* in line 2; correct"),
        ("users_exit.py", "exit()", r"expected .*users_exit.py to run, got SystemExit .* in line 1; correct the file"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_refused_in_one_sentence(fresh, name, text, sentence):
    if text is not None:
        (fresh / name).write_text(text)
    with pytest.raises(ArgumentError, match=sentence):
        extensions.load(fresh / name)
    assert extensions.loaded() == () and ("users" not in name or Path(name).stem not in sys.modules)


def test_a_file_whose_loading_was_interrupted_is_loaded_again(fresh):
    (fresh / "users_long.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        extensions.load(fresh / "users_long.py")
    (fresh / "users_long.py").write_text("done = True")
    extensions.load(fresh / "sub" / ".." / "users_long.py")
    extensions.load(fresh / "users_long.py")
    assert sys.modules["users_long"].done and len(extensions.loaded()) == 1 and sys.path.count(str(fresh)) == 1


def test_a_file_named_as_an_installed_package_is_refused(fresh, monkeypatch):
    (fresh / "mkdocs.py").write_text("")
    monkeypatch.delitem(sys.modules, "mkdocs", raising=False)  # the test of the site may have imported it
    assert "mkdocs" not in sys.modules
    with pytest.raises(ArgumentError, match="but mkdocs is a module already; rename the file"):
        extensions.load(fresh / "mkdocs.py")


def test_an_error_in_a_file_beside_it_has_the_line_that_imports_that(fresh):
    (fresh / "users_beside.py").write_text("\n\n\n\nx = (")
    (fresh / "users_main.py").write_text("\nimport users_beside\n")
    with pytest.raises(ArgumentError, match=r"users_main.py to run, got SyntaxError .* in line 2; correct"):
        extensions.load(fresh / "users_main.py")


def test_a_class_in_a_module_that_does_not_run_is_refused_in_one_sentence(fresh, monkeypatch):
    (fresh / "users_bad.py").write_text("x = 1 / 0")
    monkeypatch.syspath_prepend(fresh)
    with pytest.raises(ArgumentError, match=r"expected to import users_bad:X, got ZeroDivisionError .* in users_bad; "):
        import_class("users_bad:X", object)


def test_registries_load_neither_pytorch_nor_pyplot():
    code = "import sys, rdjepa.forecasters, rdjepa.study.registry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "rdjepa.study.registry" in loaded and not loaded & {"torch", "matplotlib.pyplot"}
