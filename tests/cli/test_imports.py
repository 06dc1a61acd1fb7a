"""Help and the list of systems wait for no large library."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "pandas", "matplotlib", "numba", "scipy", "h5py", "distributed", "sympy", "bokeh", "xarray", "onnx")
CODE = """
import sys
from rdjepa.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as stopped:
    print(stopped.code, *(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""
HELPS = """
import sys
import typer.main
from rdjepa.cli.main import app

def helped(command, *words):
    app([*words, "--help"], standalone_mode=False)
    return 1 + sum(helped(each, *words, name) for name, each in getattr(command, "commands", {{}}).items())

count = helped(typer.main.get_command(app))
print(count, *(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""


def loaded(*arguments):
    """Exit status of a command in a fresh process, and the large libraries that it imported."""
    code = CODE.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    status, *names = done.stderr.splitlines()[-1].split()
    return int(status), names, done.stdout


def test_help_of_every_command_imports_no_large_library():
    code = HELPS.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, *names = done.stderr.split()
    assert names == [] and done.stdout.count("Usage") == int(count) > 25


@pytest.mark.parametrize(("arguments", "allowed"), [(("systems",), []), (("systems", "oregonator"), ["sympy"])])
def test_systems_are_shown_without_large_libraries(arguments, allowed):
    status, names, text = loaded(*arguments)
    assert status == 0 and names == allowed and "oregonator" in text


def test_a_command_that_computes_does_import_them():
    status, names, _ = loaded("systems", "heat")
    assert (status, names) == (2, [])
    assert "torch" in loaded("adapt", "missing.npz")[1]
