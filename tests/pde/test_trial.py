"""The trial measures orders of convergence, finds blow-up and rejections, and ends within its budget."""

import time
from dataclasses import replace

import numpy as np
import pytest
from decaying import decay

from rdjepa.pde import screening
from rdjepa.pde.boundary import Boundary
from rdjepa.pde.sampling import Box
from rdjepa.pde.system import Coefficient, InitialCondition, Numerics, Regime, System
from rdjepa.pde.trial import _doubled, _on_points, trial


def explosion(u, v, rate):
    return rate * u * u, v - v


def wave(grid, p, rng):
    x, y = grid.coordinates()
    field = np.cos(2 * np.pi * 3 * x / grid.length) * np.cos(2 * np.pi * y / grid.length)
    return np.stack([1 + field, 1 - field])


def system(kinetics=decay, screens=(), **numerics):
    settings = {"length": 1.0, "dt": 0.01, "first": 0.5, "last": 1.0, "size": 32, "stored": 32, "frames": 5}
    return System(
        name="made-up",
        title="Made up",
        reference="none",
        coefficients=(Coefficient("D", "diffusivity"), Coefficient("rate", "rate")),
        kinetics=kinetics,
        diffusivity_names=("D", "D"),
        regimes={"id": Regime((Box({"D": (1e-3, 1e-3), "rate": (2.0, 2.0)}),), (InitialCondition("wave", wave),))},
        numerics=Numerics(**settings | numerics),
        screens=screens,
    )


def test_changes_fall_with_the_order_of_method_and_stencil():
    coarse, fine = trial(system(), draws=1), trial(system(dt=0.005), draws=1)
    assert coarse.half_step / fine.half_step == pytest.approx(2, rel=0.1)  # Euler
    coarse, fine = (trial(system(method="rk4", dt=dt), draws=1) for dt in (0.05, 0.025))
    assert coarse.half_step / fine.half_step == pytest.approx(16, rel=0.15)
    coarse, fine = (trial(system(method="rk4", size=size, stored=16), draws=1) for size in (32, 64))
    assert coarse.double_grid / fine.double_grid == pytest.approx(4, rel=0.1)
    assert trial(system(method="strang", laplacian="spectral"), draws=1).limit == np.inf


def test_euler_decays_by_the_known_factor():
    found = trial(system(), draws=1)
    assert found.until == pytest.approx(1.0) and found.drawn == 1 and not found.failures and not found.advice
    # nearly all of the energy is in the mean, which decays by (1 - rate dt) in every step
    assert found.half_step == pytest.approx(1 - (0.98 / 0.99**2) ** 100, rel=0.2)


def test_the_limit_of_derived_diffusivities_is_that_of_draws():
    ranges = system()
    box = Box({"D": (1e-3, 1e-3), "half": (1.0, 1.0)}, derive=lambda d: {"D": 4 * d["D"], "rate": 2 * d["half"]})
    found = trial(replace(ranges, regimes={"id": replace(ranges.regime("id"), boxes=(box,))}), draws=1)
    assert found.limit == pytest.approx(trial(ranges, draws=1).limit / 4)
    assert found.drawn == 1 and not found.failures


def test_blow_up_is_found_with_its_time_and_coefficients():
    found = trial(system(explosion), draws=2)
    assert len(found.failures) == 2
    assert "a blow-up by t = 0.5 with D = 0.001, rate = 2 (id, seed 0)" in found.failures[0]
    assert np.isnan(found.half_step) and not found.advice  # what blows up needs no advice on its grid


@pytest.mark.parametrize(("levels", "number"), [((0.0, 0.0), 0), ((1.0, 0.0), 1)])
def test_fields_that_never_change_are_a_failure(levels, number):
    def flat(grid, p, rng):
        return np.stack([np.full((grid.size, grid.size), level) for level in levels])

    made = system()
    starts = (InitialCondition("flat", flat),)
    found = trial(replace(made, regimes={"id": replace(made.regime("id"), initial_conditions=starts)}), draws=2)
    assert len(found.failures) == 1 and not found.rejections
    assert f"expected fields that change, got component {number} at 0 everywhere (id, seed 0)" in found.failures[0]
    assert found.half_step < 0.05 and not found.advice  # zeros are none on half the step either
    screened = replace(made, screens=(screening.MinContrast(1e-3),))
    found = trial(replace(screened, regimes={"id": replace(made.regime("id"), initial_conditions=starts)}), draws=2)
    assert len(found.rejections) == 2 and "2 of 2 rejected" in found.failures[0]  # which the screens are for


def test_screens_that_reject_everything_are_a_failure_and_coarse_steps_a_piece_of_advice():
    found = trial(system(screens=(screening.MinContrast(100.0),), dt=0.2), draws=2)
    assert len(found.rejections) == 2 and "below 100" in found.rejections[0]
    assert "2 of 2 rejected" in found.failures[0]
    assert "10% on half the step" in found.advice[0]


def test_a_long_system_is_tried_for_a_short_time_only():
    long = system(last=20_000.0, dt=1e-3, size=128, stored=32)
    started = time.perf_counter()
    found = trial(long, budget=1.0)
    assert time.perf_counter() - started < 15
    assert found.drawn == 0 and found.until < 20_000 and found.seconds > 1 and np.isfinite(found.half_step)


@pytest.mark.parametrize("boundary", [Boundary(), Boundary("neumann")], ids=str)
def test_doubling_and_going_back_keeps_smooth_fields(boundary):
    numerics = replace(system().numerics, boundary=boundary)
    x, y = numerics.grid.coordinates()
    smooth = np.stack([np.cos(2 * np.pi * x), np.cos(2 * np.pi * y)])
    double = _doubled(smooth, boundary.walls)
    assert double.shape == (2, 64, 64)
    exact = np.cos(2 * np.pi * replace(numerics, size=64).grid.coordinates()[0])
    assert abs(double[0] - exact).max() < 1e-2
    assert abs(_on_points(double, numerics) - smooth).max() < 1e-2


@pytest.mark.parametrize("budget", [float("nan"), float("inf"), 0.0])
def test_a_budget_that_is_no_time_is_refused(budget):
    with pytest.raises(ValueError, match="the seconds to be"):
        trial(system(), draws=1, budget=budget)
