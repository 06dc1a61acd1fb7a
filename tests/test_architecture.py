"""The direction of imports and the absence of effects at import."""

import ast
import importlib
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
from importlinter.cli import lint_imports
from packaging.specifiers import SpecifierSet

import rdjepa

ROOT = Path(__file__).parents[1]


def test_import_contracts_hold(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0


def test_every_locked_package_takes_the_oldest_python_that_the_project_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=") + ".0"
    locked = [line.split("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line]
    assert len(locked) > 50
    wanted = {name: metadata(name).json.get("requires_python", "") for name in locked}
    assert {name: each for name, each in wanted.items() if oldest not in SpecifierSet(str(each))} == {}


def test_reports_and_simulation_need_no_torch():
    code = "import sys, rdjepa, rdjepa.viz.figures, rdjepa.io.cards, rdjepa.data.build; rdjepa.simulate; "
    done = subprocess.run(
        [sys.executable, "-c", code + "print('torch' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_all_but_studies_works_without_the_packages_of_the_extras():
    code = (
        "import sys\n"
        "for name in ('pandas', 'pyarrow', 'jinja2', 'distributed'): sys.modules[name] = None\n"
        "import rdjepa, rdjepa.demo, rdjepa.cli.main, rdjepa.data.parallel, rdjepa.evaluation.probe\n"
        "import rdjepa.study.dataset, rdjepa.study.leaks\n"  # what `rdjepa data` and `rdjepa info` need
        "for name in rdjepa.__all__: getattr(rdjepa, name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_what_a_type_checker_is_told():
    (told,) = [node for node in ast.parse(Path(rdjepa.__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {"__version__"}
    for node in told.body:
        assert isinstance(node, ast.ImportFrom) and node.module
        for each in node.names:
            seen.add(name := each.asname or each.name)
            assert getattr(rdjepa, name) is getattr(importlib.import_module(node.module), each.name)
    assert seen == set(rdjepa.__all__) == set(rdjepa._LOCATIONS) | {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'forecast'"):
        getattr(rdjepa, "forecast")  # noqa: B009


RUNS_CODE = {"eval", "exec", "compile", "__import__"}
READS_CODE = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def test_no_text_from_outside_is_run_and_no_pickle_is_read():
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            # A user's own equation is run, when the user names its file.
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and path.name != "user_file.py":
                assert node.func.id not in RUNS_CODE, path
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = {node.module or ""} if isinstance(node, ast.ImportFrom) else {n.name for n in node.names}
                assert not {module.split(".")[0] for module in modules} & READS_CODE, path
            if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "weights_only"):
                assert isinstance(node.value, ast.Constant) and node.value.value is (node.arg == "weights_only"), path
