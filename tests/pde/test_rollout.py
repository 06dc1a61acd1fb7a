from dataclasses import replace

import numpy as np
import pytest

from rdjepa.pde.integrators import integrator
from rdjepa.pde.rollout import block_mean, legs, rollout
from rdjepa.systems import get, names


@pytest.mark.parametrize("name", names())
def test_every_saved_time_is_the_end_of_a_step_and_no_step_is_too_long(name):
    numerics = get(name).numerics
    parts = legs(numerics.times, numerics.dt)
    ends = np.cumsum([leg.steps * leg.dt for leg in parts])
    assert np.allclose(ends, numerics.times, rtol=1e-12, atol=0)
    for leg in parts:
        assert numerics.dt * 0.95 < leg.dt <= numerics.dt * (1 + 1e-8)


def test_an_interval_of_whole_steps_gets_exactly_as_many():
    parts = legs(np.array([0.3, 0.6, 1.0]), 0.1)
    assert [leg.steps for leg in parts] == [3, 3, 4]


def test_saving_at_time_zero_takes_no_step():
    assert legs(np.array([0.0, 0.25]), 0.1)[0].steps == 0
    assert legs(np.array([0.0, 0.25]), 0.1)[1].steps == 3


def test_block_mean_averages_blocks_and_keeps_the_total():
    field = np.arange(32.0).reshape(2, 4, 4)
    small = block_mean(field, 2)
    assert small[0].tolist() == [[2.5, 4.5], [10.5, 12.5]]
    assert np.allclose(small.mean(axis=(1, 2)), field.mean(axis=(1, 2)))
    assert np.array_equal(block_mean(field, 4), field)


def test_rollout_saves_the_block_means_of_the_integrated_states():
    system = get("lambda-omega")
    numerics = replace(system.numerics, size=16, stored=8, first=0.0, last=0.1, frames=3, dt=0.02)
    system = replace(system, numerics=numerics)
    p = system.draw(0)
    state = system.start(p, 0).state
    frames = rollout(system, p, state)
    assert frames.shape == (3, 8, 8, 2)
    assert frames.dtype == np.float32
    assert np.array_equal(frames[0], np.moveaxis(block_mean(state, 8), 0, -1).astype(np.float32))
    coefficients = tuple(p[c] for c in system.kinetic_names)
    advance = integrator("euler", 2, system.kinetics, system.numerics.boundary)
    for _ in range(2):
        state = advance(state, coefficients, system.diffusivities(p), numerics.length, 0.05 / 3, 3)
    assert np.allclose(frames[2], np.moveaxis(block_mean(state, 8), 0, -1), atol=1e-6)
