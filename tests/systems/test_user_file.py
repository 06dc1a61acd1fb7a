"""Every mistake in a user's file is answered by one sentence that names the file, before anything is integrated."""

import os

import numpy as np
import pytest
import sympy

from rdjepa import systems
from rdjepa.data.simulate import simulate
from rdjepa.errors import ArgumentError
from rdjepa.pde import kinetics
from rdjepa.pde.contract import check_system
from rdjepa.pde.kinetics import FUNCTIONS, on_symbols
from rdjepa.systems.describe import describe
from rdjepa.systems.template import template

WHOLE = template("mine", "mine.py").replace("stored=128", "").replace("length=200.0", "length=25.0, size=16, stored=16")
EATEN = "    eaten = u * v / (u + saturation)\n"
RATES = "return u * (1 - u) - eaten, conversion * eaten - mortality * v"
STATE = (
    "return np.stack([0.4 * np.exp(0.5 * smooth_noise(grid, rng, 6)), 0.3 * np.exp(0.5 * smooth_noise(grid, rng, 6))])"
)
NUMERICS = 'dt=0.1, first=50.0, last=69.5, method="rk4"'
EULER = (', method="rk4"', "")  # compiled sooner


BOX = 'Box({"D": (0.8, 1.2), "saturation": (0.3, 0.4), "conversion": (1.9, 2.1), "mortality": (0.55, 0.65)})'


def derived(result):
    """A box from whose draw d the coefficients follow."""
    return f"{BOX[:-1]}, derive=lambda d: {result})"


def write(folder, old="", new="", name="mine.py"):
    """A file with one change, or with other content altogether."""
    assert old in WHOLE
    path = folder / name
    path.write_text(WHOLE.replace(old, new) if old else new or WHOLE)
    return path


MISTAKES = {
    "syntax": ("SYSTEM = System(", "SYSTEM = System((", "SyntaxError"),
    "indentation": ("    eaten", "  eaten", "IndentationError"),
    "no system": ("SYSTEM = System(", "system = System(", "define SYSTEM, an rdjepa.pde.system.System, got NoneType"),
    "another thing": ("", "SYSTEM = 3", "got int"),
    "unknown name": ("import numpy as np\n", "import numpy\n", "name 'np' is not defined"),
    "missing package": ("import numpy as np", "import numpy as np, no_such_package", "no_such_package"),
    "no such part": ("import Box", "import Boxes", "ImportError"),
    "sys.exit": ("SYSTEM = System(", "import sys; sys.exit(0)\nSYSTEM = System(", "SystemExit (0)"),
    "raises": ("SYSTEM = System(", "1 / 0\nSYSTEM = System(", "ZeroDivisionError (division by zero) in line"),
    "missing argument": ('    title="Mine",\n', "", "TypeError (System.__init__() missing 1 required"),
    "unknown argument": ('reference="none yet",', 'reference="", colour="red",', "unexpected keyword argument"),
    "name with a slash": ('name="mine"', 'name="a/b"', "letters, digits"),
    "name that is no text": ('name="mine"', "name=3", "letters, digits"),
    "name that is taken": ('name="mine"', 'name="barkley"', "which is taken"),
    "three arguments for four": ("saturation, conversion, mortality):", "saturation, conversion):", "name 'mortality'"),
    "unknown coefficient": ("saturation, conversion, mortality):", "saturation, conversion, m):", "'m'"),
    "no coefficients": ("kinetics(u, v, saturation, conversion, mortality)", "kinetics(u)", "arguments u, v"),
    "star": ("conversion, mortality):", "conversion, *mortality):", "no *"),
    "keyword only": ("conversion, mortality):", "conversion, *, mortality):", "no *"),
    "kinetics no function": ("kinetics=kinetics", "kinetics=3", "kinetics as a function, got 3"),
    "closure": (
        "kinetics=kinetics",
        "kinetics=(lambda k: lambda u, v, conversion: (k * u, v))(2.0)",
        "without variables of another",
    ),
    "one rate": (RATES, "return u * (1 - u)", "in place of two rates"),
    "three rates": (RATES, "return u, v, u", "3 results"),
    "complex rates": (RATES, "return u * 1j, v", "complex"),
    "branch": (RATES, "return (u if u > 0.5 else v), v", "no branch on a value"),
    "matrix": (RATES, "return np.linalg.norm(u) + u, v", "use arithmetic"),
    "math": (EATEN, "    eaten = math.tanh(u)\n", "use arithmetic"),
    "helper": (
        "def kinetics(",
        "def hill(x):\n    return x / (1 + x)\n\n\ndef kinetics(",
        None,
    ),
    "called helper": (
        "def kinetics(u, v, saturation, conversion, mortality):",
        "def hill(x):\n    return x\n\n\ndef kinetics(u, v, saturation, conversion, mortality):\n    u = hill(u)",
        "no other function",
    ),
    "unknown function": (EATEN, "    eaten = np.cbrt(u) + np.convolve(u, v)\n", "use arithmetic"),
    "function without a symbol": (EATEN, "    eaten = np.cbrt(u)\n", "take symbols"),
    "random rates": (EATEN, "    eaten = u * np.random.rand()\n", "expected"),
    "undefined in kinetics": (EATEN, "    eaten = u * saturatoin\n", "saturatoin"),
    "misspelt diffusivity": ('("D", "D"),', '("D", "E"),', "'E'"),
    "one diffusivity": ('diffusivity_names=("D", "D"),', 'diffusivity_names=("D",),', "two names"),
    "no range": ('"mortality": (0.55, 0.65)', "", "one for every coefficient"),
    "range too many": ('"D": (0.8, 1.2)', '"D": (0.8, 1.2), "E": (0, 1)', "one for every coefficient"),
    "reversed range": ('"D": (0.8, 1.2)', '"D": (1.2, 0.8)', "low <= high for D"),
    "range of text": ('"D": (0.8, 1.2)', '"D": ("0.8", 1.2)', "low <= high for D"),
    "range of NaN": ('"D": (0.8, 1.2)', '"D": (float("nan"), 1.2)', "low <= high for D"),
    "negative diffusivity": ('"D": (0.8, 1.2)', '"D": (-0.8, -0.2)', "finite diffusivities of u and v, 0 or more, got"),
    "one coefficient twice": ('Coefficient("mortality",', 'Coefficient("D",', "different names"),
    "no id": ('"id": Regime', '"usual": Regime', 'regimes "id"'),
    "no initial state": ('(InitialCondition("patches", patches),)', "()", "an initial condition"),
    "negative step": (NUMERICS, "dt=-0.1, first=50.0, last=69.5", "dt above 0, got -0.1"),
    "step of text": (NUMERICS, 'dt="0.1", first=50.0, last=69.5', "dt as a finite number"),
    "negative length": ("length=25.0", "length=-25.0", "length above 0"),
    "last before first": (NUMERICS, "dt=0.1, first=50.0, last=40.0", "0 <= first < last, got 50 and 40"),
    "one frame": (NUMERICS, f"{NUMERICS}, frames=1", "frames as a whole number from 2, got 1"),
    "frames of 40.5": (NUMERICS, f"{NUMERICS}, frames=40.5", "frames as a whole number"),
    "stored larger": ("stored=16", "stored=32", "size as a multiple of stored"),
    "unknown method": ('method="rk4"', 'method="heun"', "'heun'"),
    "unknown Laplacian": ('method="rk4"', 'method="rk4", laplacian=6', "6"),
    "above the diffusive limit": (NUMERICS, "dt=1.5, first=50.0, last=69.5", "diffusive limit 0.5086 of euler"),
    "complex state": (STATE, "return np.ones((2, 16, 16)) * (1 + 0j)", "complex128"),
    "whole-number state": (STATE, "return np.ones((2, 16, 16), int)", "dtype float64"),
    "state of one field": (STATE, "return np.ones((16, 16))", "shape (2, 16, 16)"),
    "no state": (STATE, "pass", "NoneType"),
    "state with NaN": (STATE, "return np.full((2, 16, 16), np.nan)", "finite initial states"),
    "state of other random numbers": (STATE, "return np.random.rand(2, 16, 16)", "from rng only"),
    "unknown coefficient in state": (STATE, 'return p["k"] * np.ones((2, 16, 16))', "KeyError ('k')"),
    "screen no function": ("Finite(10.0)", "10.0", "screens that are functions"),
    "screen that raises": ("Finite(10.0)", "lambda fields: fields[:, 99]", "IndexError"),
    "screen that answers yes": ("Finite(10.0)", "lambda fields: True", "reason or None"),
    "derive with a coefficient missing": (BOX, derived('{"D": d["D"]}'), "every coefficient"),
    "derive without a result": (BOX, derived("None"), "got None"),
    "derive that raises": (BOX, derived('d["F"]'), "KeyError ('F')"),
    "derived text": (BOX, derived('{**d, "D": "1"}'), "finite number for D"),
    "derived NaN": (BOX, derived('{**d, "D": float("nan")}'), "finite number for D"),
    "derived above the diffusive limit": (BOX, derived('{**d, "D": 9 * d["D"]}'), "diffusive limit"),
    "wrong equilibria": (
        "    kinetics=kinetics,",
        "    kinetics=kinetics,\n    equilibria=lambda p: ((0.5, 0.5),),",
        "equilibria where the kinetics are zero",
    ),
    "regimes missing": ("    regimes={", "    regimes=None and {", "regimes"),
    "coefficients missing": ("    coefficients=(", "    coefficients=None and (", "complete, got TypeError"),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def compiled_once():
    """Compile kinetics that stand in many of the files alone for the first of them."""
    known: dict = {}
    real = kinetics.compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinetics, "compiled", lambda each: known.setdefault(each.__code__, real(each)))
        yield


@pytest.mark.parametrize(("old", "new", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence_that_names_the_file(tmp_path, old, new, words):
    path = write(tmp_path, old, new)
    if words is None:  # a helper that is not called does no harm
        systems.get(str(path))
        return
    with pytest.raises(ArgumentError) as caught:
        systems.get(str(path))
    sentence = str(caught.value)
    assert sentence.startswith("expected ") and words in sentence and str(path) in sentence and "\n" not in sentence


def test_bytes_that_are_no_source_are_refused(tmp_path):
    for content in (b"\xff\xfe\x00", b"a\x00b", b"\x89HDF\r\n\x1a\n"):
        (tmp_path / "mine.py").write_bytes(content)
        with pytest.raises(ArgumentError, match="to run, got SyntaxError"):
            systems.get(tmp_path / "mine.py")


@pytest.mark.parametrize("name", [None, 3, b"barkley", ""])
def test_what_is_no_name_is_answered_with_the_names(name):
    with pytest.raises(ArgumentError, match="known: gray-scott"):
        simulate(name)


def test_a_file_is_simulated_by_path_and_name(tmp_path, registrations):
    path = write(tmp_path, *EULER)
    made = simulate(path)
    assert np.array_equal(made.fields, simulate(str(path)).fields)
    assert made.fields.shape == (40, 16, 16, 2) and str(made.key) == "mine/pool/id/00000"
    assert systems.named(path) == systems.named(path) == "mine"
    assert np.array_equal(simulate("mine").fields, made.fields)
    check_system(systems.get("mine"))


def test_coefficients_may_follow_from_other_numbers(tmp_path):
    path = write(tmp_path, *EULER)
    path.write_text(path.read_text().replace(BOX, derived('{**d, "D": d["D"] / 2}')))
    system = systems.get(path)
    assert 0.4 <= system.draw(0)["D"] <= 0.6
    assert "drawn: D [0.8, 1.2]" in describe(system)
    assert simulate(path).coefficients["D"] <= 0.6


def test_an_edit_is_seen_even_within_the_same_instant_and_size(tmp_path):
    path = write(tmp_path)
    before = systems.get(path)
    assert systems.get(path) is before
    stamp = path.stat().st_mtime_ns
    path.write_text(path.read_text().replace("(1 - u)", "(2 - u)"))
    os.utime(path, ns=(stamp, stamp))
    assert systems.get(path).kinetics(0.5, 0.0, 1, 1, 1) != before.kinetics(0.5, 0.0, 1, 1, 1)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.py"]  # no cache of bytecode beside it


def test_functions_of_numpy_are_taken_and_rendered(tmp_path):
    path = write(tmp_path, EATEN, "    eaten = np.tanh(u) * np.maximum(v, 0.0) + np.pi * abs(u) * np.exp(-v)\n")
    assert r"\tanh" in systems.get(path).latex()[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_the_same_of_numbers_and_of_symbols(name):
    function = getattr(np, name)
    arguments = (0.3, 0.8)[: function.nin]
    space = {"np": np, "f": function}
    taken = ", ".join("uv"[: function.nin])
    exec(f"def through_module(u, v): return np.{name}({taken}), f({taken})", space)
    rates = on_symbols(space["through_module"], [sympy.Float(0.3, 30), sympy.Float(0.8, 30)])
    assert [float(rate) for rate in rates] == pytest.approx([float(function(*arguments))] * 2)


@pytest.mark.parametrize("name", systems.every_name())
def test_the_systems_of_the_package_keep_the_contract(name, monkeypatch):
    """Kinetics are compiled in the tests of integrators, but for those of the family."""
    if name != "family":
        monkeypatch.setattr(kinetics, "compiled", lambda rates: lambda u, v, values: rates(u, v, *values))
    check_system(systems.get(name))
