"""Every system and wall against py-pde: our kinetics as text, its own operators, boundaries and steps, small ones.

That the kinetics are those of the paper is tested beside each system (test_theory.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from rdjepa.pde.rollout import rollout
from rdjepa.systems import get, names, wall_names

pde = pytest.importorskip("pde", reason="install py-pde")
ScalarExpression = pytest.importorskip("pde.tools.expressions").ScalarExpression

SIZE = 32
STEPS = 40
WALL = {"neumann": {"derivative": 0}, "dirichlet": {"value": 0}, "robin": {"type": "mixed", "value": 0.15, "const": 0}}
SAME_SCHEME = {"gray-scott", "brusselator", "ginzburg-landau", "schnakenberg", "lambda-omega", "oregonator"}


def rates(system, p, grid, condition):
    """(u, v) -> time derivatives, from py-pde's Laplacian and its reading of our kinetics as text."""
    import sympy

    symbols = sympy.symbols("u v")
    texts = [sympy.sstr(rate) for rate in system.kinetics(*symbols, *sympy.symbols(system.kinetic_names))]
    reactions = [ScalarExpression(text, ["u", "v"], consts=dict(p)) for text in texts]

    def derivative(state):
        laplacians = [pde.ScalarField(grid, each).laplace(condition, backend="scipy").data for each in state]
        return np.stack(
            [d * lap + f(*state) for d, lap, f in zip(system.diffusivities(p), laplacians, reactions, strict=True)]
        )

    return derivative


@pytest.mark.parametrize("name", [*names(), *wall_names()])
def test_a_short_run_agrees(name):
    system = get(name)
    # Fine steps, so that what remains is the difference of the Laplacians and of the splitting.
    dt = system.numerics.dt * (1.0 if name in SAME_SCHEME else 0.1)
    numerics = replace(
        system.numerics, size=SIZE, stored=SIZE, length=system.numerics.length * SIZE / system.numerics.size,
        dt=dt, first=0.0, last=dt * STEPS, frames=2,
    )  # fmt: skip
    system = replace(system, numerics=numerics)
    p = system.draw(0)
    middle = np.array(system.equilibria(p)[0] if system.equilibria(p) else (0.3, 0.2))
    start = middle[:, None, None] + 0.05 * np.stack([smooth_field(seed) for seed in (1, 2)])
    ours = rollout(system, p, start)[-1].astype(np.float64)

    walls = numerics.boundary.walls
    grid = pde.CartesianGrid([[0, numerics.length]] * 2, SIZE, periodic=not walls)
    condition = WALL[numerics.boundary.kind] if walls else "periodic"
    derivative = rates(system, p, grid, condition)
    theirs = start.swapaxes(1, 2)  # their first axis is x
    for _ in range(STEPS):
        theirs = advance(derivative, theirs, dt, "euler" if name in SAME_SCHEME else "rk4")
    theirs = np.moveaxis(theirs.swapaxes(1, 2), 0, -1)
    change = np.abs(theirs - np.moveaxis(start, 0, -1)).max(axis=(0, 1))  # of each component
    assert change.min() > 1e-4
    # A tenth of either diffusivity of FitzHugh-Nagumo, and of Barkley's, would be 0.02 or more of it.
    tolerance = 1e-4 if name in SAME_SCHEME or walls else 0.015
    assert (np.abs(ours - theirs).max(axis=(0, 1)) < tolerance * change + 5e-7).all()  # ours are stored in float32


def smooth_field(seed):
    """Two long waves that also suit walls: even about both sides; of shorter ones their Laplacian is less exact."""
    rng = np.random.default_rng(seed)
    x = (np.arange(SIZE) + 0.5) / SIZE
    waves = np.cos(2 * np.pi * np.outer(np.arange(1, 3), x))
    return np.einsum("ab,ai,bj->ij", rng.normal(size=(2, 2)) / 2, waves, waves)


def advance(derivative, state, dt, method):
    """One step of Euler, or of the classical Runge-Kutta method."""
    k1 = derivative(state)
    if method == "euler":
        return state + dt * k1
    k2 = derivative(state + 0.5 * dt * k1)
    k3 = derivative(state + 0.5 * dt * k2)
    k4 = derivative(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
