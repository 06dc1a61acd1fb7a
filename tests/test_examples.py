"""Every example notebook runs from top to bottom, within a minute, and shows its pictures inline."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.ipynb"))
ROUGH = """
from rdjepa.forecasters import cubic, equation
cubic.STEPS, equation.ITERATIONS, equation.STRETCHES = 2, 1, 4
"""  # as `short_fits` of the other tests

nbformat = pytest.importorskip("nbformat", reason="the extra `examples` is not installed")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in EXAMPLES])
def test_committed_without_outputs(path):
    cells = nbformat.read(path, as_version=4).cells
    assert [cell for cell in cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)] == []


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in EXAMPLES])
def test_runs_and_shows_every_figure(path, tmp_path, monkeypatch):
    """Two updates and rough fits run every line; a figure that is not shown means that the backend was switched."""
    client = pytest.importorskip("nbclient", reason="the extra `examples` is not installed")
    monkeypatch.setenv("RDJEPA_EXAMPLE_UPDATES", "2")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(ROUGH))
    client.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code" and "plt.show()" in cell.source:
            assert any("image/png" in output.get("data", {}) for output in cell.outputs), cell.source
    assert list(tmp_path.iterdir()) == []
