"""What float32 would cost: the same kernels on float32 states, against float64, over one saved interval."""

import numpy as np
import pytest

from rdjepa.pde.integrators import integrator
from rdjepa.pde.rollout import legs
from rdjepa.systems import get


# One system of every compiled scheme: Euler, Runge-Kutta, and splitting between walls. Spectral diffusion computes in
# float64 whatever it is given.
@pytest.mark.parametrize(
    "name", ["gray-scott", pytest.param("fitzhugh-nagumo", marks=pytest.mark.slow), "barkley-neumann"]
)
def test_float32_states_stay_near_float64_and_are_not_equal(name):
    system = get(name)
    numerics, p = system.numerics, system.draw(1)
    state = system.start(p, 1).state[:, ::2, ::2].copy()
    advance = integrator(numerics.method, numerics.laplacian, system.kinetics, numerics.boundary)
    coefficients = tuple(p[each] for each in system.kinetic_names)
    dt = legs(numerics.times, numerics.dt)[1].dt
    steps = sum(leg.steps for leg in legs(numerics.times, numerics.dt)) // 40
    double, single = (
        advance(state.astype(kind), coefficients, system.diffusivities(p), numerics.length / 2, dt, steps)
        for kind in (np.float64, np.float32)
    )
    assert double.dtype == np.float64 and single.dtype == np.float32
    error = np.linalg.norm(single - double) / np.linalg.norm(double)
    assert 1e-9 < error < 1e-3
