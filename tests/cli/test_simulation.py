"""A user's equation from the template to data: written, checked, simulated, and never mixed with another's data."""

import pytest

from rdjepa.cli import main as cli
from rdjepa.data import store
from rdjepa.pde import kinetics, rollout


@pytest.fixture(autouse=True, scope="module")
def compiled_once():
    """Compile what has the same code once: every command reads its file anew."""
    compiled, integrator, known = kinetics.compiled, rollout.integrator, {}  # type: ignore[var-annotated]

    def shared(method, laplacian, rates, boundary):
        made = integrator(method, laplacian, rates, boundary)  # compiles nothing yet
        return known.setdefault((method, laplacian, rates.__code__, boundary), made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinetics, "compiled", lambda rates: known.setdefault(rates.__code__, compiled(rates)))
        patch.setattr(rollout, "integrator", shared)
        yield


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(each) for each in arguments])
    return stopped.value.code


def small(path, *changes):
    """Make the template's system small, and change it further."""
    text = path.read_text().replace("length=200.0", "length=50.0, size=16, stored=16")
    text = text.replace(", MinFinalContrast(0.01)", ",")  # so small a square has no pattern
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.fixture
def mine(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert not run("new-system", "my-system")
    path = tmp_path / "my_system.py"
    small(path, (', method="rk4"', ""))  # Euler's method is compiled sooner
    return path


def test_the_template_is_checked_shown_and_simulated_as_it_is(capsys, mine):
    assert not run("new-system", "my-system", "--out", "whole.py")
    mine = mine.with_name("whole.py")
    small(mine)
    assert not run("check-system", mine.name, "--draws", 1, "--seconds", 1)
    shown = capsys.readouterr().out
    for words in (
        "diffusive limit: 4% of 2.833",
        "half the step changes",
        "1 draws: finite values up to",
        "0 rejected",
    ):
        assert words in " ".join(shown.split())
    assert not run("systems", mine.name)
    assert r"\frac{u v}" in capsys.readouterr().out
    assert not run("simulate", mine.name, "--count", 2)
    assert "2 made, 0 kept" in capsys.readouterr().out
    assert not run("data", "build", "--systems", mine.name, "--count", 2, "--splits", "pool")
    assert "0 made, 2 kept" in capsys.readouterr().out


def test_a_system_that_is_not_worth_an_hour_ends_with_status_1(capsys, mine):
    small(mine, ("Finite(10.0)", "Finite(0.1)"))
    assert run("check-system", mine.name, "--draws", 1, "--seconds", 1) == 1
    assert "failed: expected screens that pass some draws, got 1 of 1 rejected" in capsys.readouterr().out
    small(mine, ("dt=0.1", "dt=-0.1"))
    assert run("check-system", mine.name) == 2
    assert f"dt above 0, got -0.1; correct the numerics, in {mine}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("my-system",), "no file at my_system.py, got one"),
        (("barkley",), "which is taken"),
        (("family",), "which is taken"),
        (("a/b",), "letters, digits"),
        (("other", "--out", "other.txt"), "ends in .py"),
    ],
)
def test_a_template_is_refused_where_it_would_do_harm(capsys, mine, arguments, words):
    before = mine.read_text()
    assert run("new-system", *arguments) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in mine.parent.iterdir()] == ["my_system.py"] and mine.read_text() == before


def test_an_edited_equation_is_not_mixed_with_its_former_data(capsys, mine):
    assert not run("simulate", mine.name, "--out", "data")
    small(mine, ("conversion * eaten -", "1.1 * conversion * eaten -"))
    for command in (("simulate", mine.name), ("data", "build", "--systems", mine.name, "--count", 1)):
        assert run(*command, "--out", "data") == 2
        assert "got another for my-system.fingerprint; choose another directory" in capsys.readouterr().err
    (mine.parent / "data" / "recipe.json").unlink()  # made by a version that wrote none
    assert run("simulate", mine.name, "--out", "data") == 2
    assert "got another trajectory my-system/pool/id/00000" in capsys.readouterr().err
    assert len(store.keys("data")) == 1


def test_two_files_of_one_name_are_not_mixed(capsys, mine):
    other = mine.with_name("other.py")
    other.write_text(mine.read_text().replace("conversion * eaten -", "0.9 * conversion * eaten -"))
    both = f"{mine.name},{other.name}"
    assert run("data", "build", "--systems", both, "--count", 1, "--out", "data") == 2
    assert "two named 'my-system'" in capsys.readouterr().err and not (mine.parent / "data").exists()
    assert not run("simulate", mine.name, "--out", "data")
    assert run("simulate", other.name, "--out", "data", "--start", 5) == 2
    assert "my-system.fingerprint" in capsys.readouterr().err
