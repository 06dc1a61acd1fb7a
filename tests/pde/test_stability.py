"""The diffusive limit: stated, and true of the integrators."""

from dataclasses import replace

import numpy as np
import pytest
from decaying import decay

from rdjepa.pde.boundary import Boundary
from rdjepa.pde.integrators import integrator
from rdjepa.pde.rollout import rollout
from rdjepa.pde.stability import check_step, diffusive_limit
from rdjepa.pde.system import Numerics
from rdjepa.systems import get, names, wall_names
from rdjepa.systems.lambda_omega import kinetics as rotation


@pytest.mark.parametrize(
    ("method", "laplacian", "boundary"),
    [("euler", 2, Boundary()), ("rk4", 4, Boundary()), ("rk4", 2, Boundary()), ("strang", 2, Boundary("neumann"))],
)
def test_just_below_the_limit_noise_decays_and_just_above_it_grows(method, laplacian, boundary):
    numerics = Numerics(2.0, 1.0, 1.0, 2.0, size=16, stored=16, method=method, laplacian=laplacian, boundary=boundary)
    limit = diffusive_limit(numerics, (0.3, 0.1))
    rates, coefficients = (rotation, 4 * (0.0,)) if laplacian == 4 else (decay, (0.0,))  # compiled elsewhere too
    advance = integrator(method, laplacian, rates, boundary)
    noise = np.random.default_rng(0).standard_normal((2, 16, 16))
    sizes = [np.abs(advance(noise, coefficients, (0.3, 0.1), 2.0, share * limit, 400)).max() for share in (0.99, 1.03)]
    assert sizes[0] < 4 and sizes[1] > 100


@pytest.mark.parametrize("name", [*names(), *wall_names()])
def test_every_system_is_below_its_limit(name):
    system = get(name)
    for regime in system.regimes:
        first, second = (system.range(each, regime)[1] for each in system.diffusivity_names)
        check_step(system.numerics, (first, second))


def test_a_step_above_the_limit_is_refused_before_integration_and_the_limit_is_named():
    system = get("lambda-omega")
    p = system.draw(0)
    coarse = replace(system, numerics=replace(system.numerics, dt=1.0))
    limit = diffusive_limit(coarse.numerics, system.diffusivities(p))
    with pytest.raises(ValueError, match=f"diffusive limit {limit:.4g}"):
        rollout(coarse, p, system.start(p, 0).state)
    with pytest.raises(ValueError, match="finite diffusivities"):
        check_step(system.numerics, (-1.0, 0.0))
