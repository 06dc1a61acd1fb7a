"""Every Python block of the documents runs, every command and path in them exists, and the site builds strictly."""

import re
import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer.main

import rdjepa
from rdjepa.cli.main import app
from rdjepa.data.simulate import simulate
from rdjepa.data.trajectory import Trajectory
from rdjepa.io import checkpoint
from rdjepa.study import collect
from rdjepa.study.report import write

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = {page: page.relative_to(ROOT).as_posix() for page in PAGES}
PROGRAMS = {page: re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL) for page in PAGES}
FILE = re.compile(r"# (\w+)\.py\n")  # the first line of a block that a reader is to keep as a file
EVERY: Any = typer.main.get_command(app)
PARTS = ("src/", "tests/", "benchmarks/", "docs/", "examples/")  # what a path in the repository begins with


FIRST = "docs/tutorial/first-forecaster.md"  # runs with the shipped model itself


@pytest.mark.parametrize("page", [pytest.param(page, id=NAMES[page]) for page in PAGES if PROGRAMS[page]])
def test_blocks_of_a_page_run_one_after_the_other(page, narrow, request, tmp_path, monkeypatch, registrations):
    """Run them with one update and few frames instead of those shown, beside the files that the page tells to keep."""
    if NAMES[page] != FIRST:
        monkeypatch.setattr(checkpoint, "shipped", lambda: dict.fromkeys(("nano", checkpoint.DEFAULT), narrow))
    monkeypatch.setattr(rdjepa, "simulate", lambda *words, **named: _brief(simulate(*words, **named)))
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")  # pages read its results
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    namespace: dict = {"__name__": "__main__"}  # as in a script
    for block in PROGRAMS[page]:
        if named := FILE.match(block):
            (tmp_path / f"{named[1]}.py").write_text(block)
            request.addfinalizer(partial(sys.modules.pop, named[1], None))
        else:
            exec(re.sub(r"steps=\d+", "steps=1", block), namespace)


def _brief(trajectory: Trajectory) -> Trajectory:
    frames = 25 if trajectory.key and trajectory.key.split == "test" else 12
    return replace(trajectory, fields=trajectory.fields[:frames], times=trajectory.times[:frames])


@pytest.mark.parametrize("page", [pytest.param(page, id=NAMES[page]) for page in PAGES])
def test_links_lead_to_files_and_paths_exist(page):
    text = page.read_text()
    generated = {"command-line.md", "../reference/command-line.md", "reference/command-line.md"}
    for target in re.findall(r"\]\((?!http)([^)#\s]+)", text):
        assert target in generated or (page.parent / target).exists(), target
    for path in re.findall(r"`([\w./-]+)`", text):
        if path.startswith(PARTS):
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", [pytest.param(page, id=NAMES[page]) for page in PAGES])
def test_rows_of_a_table_have_as_many_cells_as_its_header(page):
    for table in re.findall(r"(?m)(?:^\|.*\n)+", page.read_text()):
        cells = {row: len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in table.splitlines()}
        assert len(set(cells.values())) == 1, cells


@pytest.mark.parametrize("page", [pytest.param(page, id=NAMES[page]) for page in PAGES])
def test_commands_have_verbs_and_options_that_exist(page):
    for line in _commands(page.read_text()):
        command = EVERY
        rest = shlex.split(line, comments=True)
        while rest[:1] == ["--load"]:  # stands before the verb
            rest = rest[2:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command = command.commands[rest.pop(0)]
        assert not hasattr(command, "commands") or rest in ([], ["--help"], ["VERB", "--help"]), line
        options = (name for each in command.params for name in (*each.opts, *each.secondary_opts))
        known = {*options, "--help"}
        assert {word for word in rest if word.startswith("--")} <= known, line


def _commands(text: str) -> list[str]:
    """What follows `rdjepa` in the indented lines of a page, and between backticks."""
    joined = text.replace("\\\n", " ")
    lines = re.findall(r"(?m)^ {4,}.*?(?<![\w/.`-])rdjepa ((?:[a-z]|--)[^;\n]*)", joined)
    return lines + re.findall(r"`rdjepa ([^`\n]+)`", joined)


@pytest.mark.parametrize(
    ("page", "study", "rows"),
    [
        ("heldout-nano/tables.md", "heldout", "study"),
        ("heldout-nano-decoder/tables.md", "decoder", "study"),
        ("heldout-nano-wide/tables.md", "decoder", "study-wide"),
    ],
)
def test_generated_tables_are_those_of_the_committed_rows(page, study, rows, tmp_path):
    root = ROOT / "benchmarks/results" / rows
    found, records = collect.collect(root, study, "nano"), collect.records(root)
    of_found = records[records["id"].isin(found["run"])]
    write.write_tables(found, of_found, collect.spectra(root, study, "nano"), tmp_path, study)
    made = (tmp_path / "tables.md").read_text()
    assert made == (ROOT / "docs" / page).read_text(), f"rdjepa study tables {study} --root {root} makes another {page}"


def test_every_public_name_is_in_the_reference():
    shown = (ROOT / "docs/reference/rdjepa.md").read_text()
    assert [name for name in rdjepa.__all__ if f"rdjepa.{name}" not in shown and not name.startswith("_")] == []


@pytest.mark.parametrize("package", sorted(p.parent.name for p in (ROOT / "src/rdjepa").glob("*/__init__.py")))
def test_every_package_is_in_the_reference(package):
    pages = (ROOT / "docs/reference").glob("*.md")
    # Commands have a page of their own, and the functions of `api` stand in that of `rdjepa`.
    assert package in ("cli", "api") or any(f"::: rdjepa.{package}\n" in page.read_text() for page in pages)


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path, monkeypatch):
    commands = pytest.importorskip("mkdocs.commands.build", reason="the extra `docs` is not installed")
    from mkdocs.config import load_config

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.setitem(sys.modules, "ruff.__main__", None)  # formats each signature in a process of its own
    monkeypatch.chdir(ROOT)
    commands.build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path)))
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]*\bsrc="(?:https?:)?//', text), page
        assert not re.search(r'<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//', text), page
        assert "arithmatex" not in text, page
    assert "Usage: rdjepa study plan [OPTIONS]" in (tmp_path / "reference/command-line.html").read_text()
