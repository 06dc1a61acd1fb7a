"""Every Python block of the documents runs, with fewer updates than it shows."""

import re
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = {page: re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL) for page in PAGES}
FILE = re.compile(r"# (\w+)\.py\n")  # the first line of a block that a reader is to keep as a file
BLOCKS = [
    pytest.param(page, block, id=f"{page.name}-{number}")
    for page, blocks in PROGRAMS.items()
    for number, block in enumerate(blocks)
    if not FILE.match(block)
]


@pytest.fixture
def beside(request, tmp_path, monkeypatch):
    """A function that writes the files of a page into the working directory, from where they can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def write(page):
        for block in PROGRAMS[page]:
            if named := FILE.match(block):
                (tmp_path / f"{named[1]}.py").write_text(block)
                request.addfinalizer(partial(sys.modules.pop, named[1], None))

    return write


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_block_runs(page, block, beside, registrations):
    beside(page)
    exec(re.sub(r"steps=\d+", "steps=1", block), {})


def test_documents_link_to_files_that_exist():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
