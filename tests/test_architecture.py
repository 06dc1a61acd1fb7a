"""The direction of imports and the absence of effects at import."""

import subprocess
import sys
from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]


def test_import_contracts_hold(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0


def test_reports_need_no_torch():
    code = "import sys, rdjepa.reporting.figures, rdjepa.reporting.card; print('torch' in sys.modules)"
    # the package's own __init__ imports torch, so the rooms are imported beside a stand-in for it
    stand_in = f"import sys, types; p = types.ModuleType('rdjepa'); p.__path__ = [{str(ROOT / 'src/rdjepa')!r}]; "
    stand_in += "sys.modules['rdjepa'] = p; " + code
    done = subprocess.run([sys.executable, "-c", stand_in], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
