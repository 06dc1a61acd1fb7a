"""Help and the list of systems wait for no large library."""

import subprocess
import sys

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


def loaded(*arguments, status, imported):
    """What a command prints in a fresh process; check its exit status and the large libraries that it imports."""
    code = CODE.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1].split() == [str(status), *imported]
    return done.stdout


def test_help_of_every_command_imports_no_large_library():
    code = HELPS.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, *names = done.stderr.split()
    assert names == [] and done.stdout.count("Usage") == int(count) > 25


def test_systems_are_shown_and_refused_without_large_libraries():
    assert "oregonator" in loaded("systems", status=0, imported=[])
    assert "oregonator" in loaded("systems", "oregonator", status=0, imported=["sympy"])  # so what is imported is seen
    loaded("systems", "heat", status=2, imported=[])
