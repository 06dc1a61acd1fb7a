"""The three variants between walls: aligned before screening, at rest near the walls, and different from each other."""

import numpy as np
import pytest

import rdjepa
from rdjepa.systems import get, wall_names


def test_there_are_three_and_each_has_its_wall():
    assert wall_names() == ("barkley-neumann", "barkley-robin", "barkley-dirichlet")
    kinds = [get(name).numerics.boundary for name in wall_names()]
    assert [boundary.kind for boundary in kinds] == ["neumann", "robin", "dirichlet"]
    assert kinds[1].kappa == 0.15


def test_draws_are_aligned_over_the_walls_and_differ_from_the_periodic_system():
    systems = [get(name) for name in wall_names()]
    draws = [system.draw(3, split="test") for system in systems]
    assert draws[0] == draws[1] == draws[2] != get("barkley").draw(3, split="test")
    starts = [system.start(draws[0], 3, split="test").state for system in systems]
    assert np.array_equal(starts[0], starts[1]) and np.array_equal(starts[1], starts[2])


@pytest.mark.parametrize("seed", range(12))
def test_the_collar_is_at_rest_and_the_wave_is_there(seed):
    system = get("barkley-dirichlet")
    state = system.start(system.draw(seed), seed).state
    for edge in (state[:, :10], state[:, -10:], state[:, :, :10], state[:, :, -10:]):
        assert np.abs(edge).max() == 0
    assert state[0].max() > 0.7


def test_waves_feel_the_walls():
    made = {name: rdjepa.simulate(name, seed=0) for name in wall_names()}
    fields = {name: each.fields for name, each in made.items()}
    neumann = fields["barkley-neumann"]
    difference = {
        name: np.linalg.norm(each[39] - neumann[39]) / np.linalg.norm(neumann[39]) for name, each in fields.items()
    }
    assert 0 < difference["barkley-robin"] < difference["barkley-dirichlet"] < 0.5
    for name, each in fields.items():
        assert each[..., 0].min() > -0.1 and each[..., 0].max() < 1.1, name
    assert made["barkley-robin"].boundary == "robin, kappa = 0.15"


def test_a_users_file_goes_through_the_same_path(tmp_path):
    (tmp_path / "decay.py").write_text(
        """
import numpy as np
from rdjepa.pde.sampling import Box
from rdjepa.pde.screening import Finite
from rdjepa.pde.system import Coefficient, InitialCondition, Numerics, Regime, System

SYSTEM = System(
    name="decay", title="Decay", reference="none",
    coefficients=(Coefficient("D", "diffusivity"), Coefficient("k", "rate")),
    kinetics=lambda u, v, k: (-k * u, k * u - v), diffusivity_names=("D", "D"),
    regimes={"id": Regime((Box({"D": (0.01, 0.02), "k": (0.5, 1.0)}),),
                          (InitialCondition("noise", lambda grid, p, rng: rng.random((2, grid.size, grid.size))),))},
    numerics=Numerics(length=1.0, dt=1e-4, first=0.0, last=0.02, size=32, stored=32, frames=12),
    screens=(Finite(),),
)
"""
    )
    path = str(tmp_path / "decay.py")
    assert get(path) is get(path)  # so that its kernel is compiled once
    trajectory = rdjepa.simulate(path, seed=4)
    assert trajectory.fields.shape == (12, 32, 32, 2) and str(trajectory.key) == "decay/pool/id/00004"
    rate, times = trajectory.coefficients["k"], trajectory.times
    total = trajectory.fields[..., 0].mean(axis=(1, 2))
    np.testing.assert_allclose(total, total[0] * np.exp(-rate * times), rtol=1e-3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "no file at"),
        ("SYSTEM = 3", "to define SYSTEM"),
        (
            "from dataclasses import replace\nfrom rdjepa.systems.barkley import SYSTEM\nSYSTEM = replace(SYSTEM)",
            "taken",
        ),
    ],
)
def test_what_is_no_system_file_is_refused(tmp_path, text, sentence):
    path = tmp_path / "mine.py"
    if text:
        path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        get(str(path))
