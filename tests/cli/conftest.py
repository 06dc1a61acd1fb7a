import shutil
from functools import cache

import pytest
import typer.main

BUILT = cache(typer.main.get_command)


@pytest.fixture(autouse=True)
def command_line_built_once(monkeypatch):
    """Build it once and not for every command of a test, as a process that runs one does."""
    monkeypatch.setattr(typer.main, "get_command", BUILT)


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A copy of the folder that a module has `made` once, which is the working directory."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
