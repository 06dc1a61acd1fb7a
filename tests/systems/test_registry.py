"""Names of systems: registered once, listed everywhere, and cheap to ask for."""

import subprocess
import sys
from dataclasses import replace

import pytest

from rdjepa import systems
from rdjepa.data.simulate import simulate
from rdjepa.errors import ArgumentError
from rdjepa.study import protocol


@pytest.fixture
def ninth(monkeypatch):
    """A ninth periodic system, forgotten again after the test."""
    monkeypatch.setattr(systems, "_REGISTERED", dict(systems._REGISTERED))
    system = replace(systems.get("barkley"), name="ninth", title="The ninth", label="")
    systems.register(system)
    return system


def test_a_registered_system_is_found_by_its_name(ninth):
    assert systems.get("ninth") is ninth
    assert systems.names() == (*systems.SOURCES, *systems.HELD_OUT, "ninth")
    assert systems.role("ninth") == protocol.role("ninth") == "held-out"
    assert ninth.label == "The ninth"


@pytest.mark.parametrize(("role", "listed"), [("source", systems.names), ("wall", systems.wall_names)])
def test_a_role_decides_the_list_and_the_counts(ninth, role, listed):
    systems.register(replace(ninth, name="tenth"), role)
    assert listed()[-1] == "tenth"
    assert protocol.role("tenth") == role
    like = {"source": "brusselator", "wall": "barkley-robin"}[role]
    assert protocol.counts("tenth") == protocol.counts(like)


def test_a_name_is_registered_once(ninth):
    with pytest.raises(ArgumentError, match="'ninth', which is taken"):
        systems.register(ninth)
    with pytest.raises(ArgumentError, match="'barkley-robin', which is taken"):
        systems.register(replace(ninth, name="barkley-robin"))
    with pytest.raises(ArgumentError, match="known: source, held-out, wall"):
        systems.register(replace(ninth, name="tenth"), "target")  # type: ignore[arg-type]
    assert "tenth" not in systems.names()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../x"}, "letters, digits, - and _, got '../x'"),
        ({"numerics": {"first": 4.0, "last": 1.0}}, "0 <= first < last, got 4 and 1"),
        ({"numerics": {"dt": -0.01}}, "dt above 0"),
        ({"numerics": {"frames": 1}}, "frames as a whole number from 2"),
        ({"numerics": {"size": 32, "stored": 24}}, "size as a multiple of stored"),
        ({"regimes": {"usual": None}}, 'regimes "id"'),
        ({"coefficients": None}, "complete, got TypeError"),
    ],
    ids=str,
)
def test_what_cannot_be_simulated_is_refused_when_it_is_registered(ninth, changes, words):
    if "numerics" in changes:
        changes = {"numerics": replace(ninth.numerics, **changes["numerics"])}
    with pytest.raises(ArgumentError, match=words):
        systems.register(replace(ninth, **{"name": "tenth"} | changes))
    with pytest.raises(ArgumentError, match=words):
        simulate(replace(ninth, **changes))
    assert systems.names()[-1] == "ninth"


def test_what_is_no_system_is_refused():
    with pytest.raises(ArgumentError, match="expected the system to be a System, got 'barkley'; give one"):
        systems.register("barkley")  # type: ignore[arg-type]


def test_unknown_names_are_answered_with_the_registered_ones(ninth):
    for ask in (systems.get, systems.role):
        with pytest.raises(ArgumentError, match=r"got 'heat'; known: gray-scott, .*, barkley-dirichlet, ninth"):
            ask("heat")


def test_labels_are_short():
    assert [systems.get(name).label for name in systems.names() + systems.wall_names()] == [
        "Gray–Scott",
        "FitzHugh–Nagumo",
        "Brusselator",
        "Ginzburg–Landau",
        "Schnakenberg",
        "Lambda–Omega",
        "Barkley",
        "Oregonator",
        "Neumann",
        "Robin",
        "Dirichlet",
    ]


def test_asking_for_every_system_loads_neither_compiler_nor_torch():
    program = (
        "import sys; from rdjepa import systems; "
        "[systems.get(name) for name in systems.names() + systems.wall_names()]; "
        "print(*{'numba', 'scipy', 'sympy', 'torch', 'h5py', 'pandas'} & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []
