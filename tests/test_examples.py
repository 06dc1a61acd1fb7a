"""Every example notebook runs from top to bottom, within a minute, and shows its pictures inline."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.ipynb"))
BEGIN = """
%reset -f
from pathlib import Path
from rdjepa.forecasters import cubic, equation
from rdjepa.io import checkpoint
cubic.STEPS, equation.ITERATIONS, equation.STRETCHES = 2, 0, 4
checkpoint.shipped = lambda: dict.fromkeys(("nano", checkpoint.DEFAULT), Path({!r}))
"""  # rough fits as those of `short_fits`, and few weights

nbformat = pytest.importorskip("nbformat", reason="the extra `examples` is not installed")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in EXAMPLES])
def test_committed_without_outputs(path):
    cells = nbformat.read(path, as_version=4).cells
    assert [cell for cell in cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def kernel(folder):
    """One kernel for all notebooks, in an empty folder."""
    manager = pytest.importorskip("jupyter_client", reason="the extra `examples` is not installed").KernelManager()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RDJEPA_EXAMPLE_UPDATES", "1")
        patch.delenv("MPLBACKEND", raising=False)
        manager.start_kernel(cwd=folder)
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in EXAMPLES])
def test_runs_and_shows_every_figure(path, kernel, narrow, folder):
    """One update and rough fits run every line; a figure that is not shown means that the backend was switched."""
    client = pytest.importorskip("nbclient", reason="the extra `examples` is not installed")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(BEGIN.format(str(narrow))))
    client.NotebookClient(notebook, km=kernel, timeout=120).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code" and "plt.show()" in cell.source:
            assert any("image/png" in output.get("data", {}) for output in cell.outputs), cell.source
    assert list(folder.iterdir()) == []
