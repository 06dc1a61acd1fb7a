import itertools
import signal
import time
from collections.abc import Callable

import numpy as np
import pytest

from rdjepa.pde import integrators
from rdjepa.pde.boundary import PERIODIC
from rdjepa.pde.grid import Grid
from rdjepa.pde.integrators import integrator
from rdjepa.pde.laplacian import squared_wavenumbers
from rdjepa.pde.random_fields import smooth_noise
from rdjepa.systems import get, names
from rdjepa.systems.lambda_omega import kinetics as rotation

METHODS = [("euler", 2, 1), ("rk4", 4, 4), ("strang", "spectral", 2)]
WEIGHTS: dict[int | str, tuple[float, ...]] = {2: (0, 1), 4: (0, 4 / 3, -1 / 12)}  # of the neighbors at each distance
ROTATING = (1.1, 0.9, 1.0, 0.4)  # rho, alpha, omega_0, beta
STILL = (0.0, *ROTATING[1:])


def laplacian(field: np.ndarray, order: int | str, spacing: float) -> np.ndarray:
    """Finite differences by rolling the whole array."""
    total = np.zeros_like(field)
    for distance, weight in enumerate(WEIGHTS[order]):
        for axis in (-2, -1):
            total += weight * (np.roll(field, distance, axis) + np.roll(field, -distance, axis) - 2 * field)
    return total / spacing**2


def reference(method: str, laplace: int | str, kinetics: Callable) -> Callable:
    """The same scheme written plainly in NumPy, with the signature of the compiled one."""

    def advance(x, coefficients, diffusivities, length, dt, steps):
        d = np.array(diffusivities)[:, None, None]
        react = lambda y: np.stack(kinetics(y[0], y[1], *coefficients))  # noqa: E731
        midpoint = lambda y, h: y + h * react(y + 0.5 * h * react(y))  # noqa: E731
        slope = lambda y: d * laplacian(y, laplace, length / y.shape[-1]) + react(y)  # noqa: E731
        for _ in range(steps):
            if method == "euler":
                x = x + dt * slope(x)
            elif method == "rk4":
                a = slope(x)
                b = slope(x + 0.5 * dt * a)
                c = slope(x + 0.5 * dt * b)
                x = x + dt / 6 * (a + 2 * b + 2 * c + slope(x + dt * c))
            else:
                factor = np.exp(-d * dt * squared_wavenumbers(x.shape[-1], length))
                x = midpoint(x, 0.5 * dt)
                x = np.fft.irfft2(factor * np.fft.rfft2(x), s=x.shape[-2:])
                x = midpoint(x, 0.5 * dt)
        return x

    return advance


def smooth_state(size: int) -> np.ndarray:
    grid, rng = Grid(size, 2.0), np.random.default_rng(1)
    return np.stack([0.6 * smooth_noise(grid, rng, 2) for _ in range(2)])


@pytest.mark.parametrize("name", names())
def test_compiled_kernels_equal_plain_numpy(name):
    system = get(name)
    p = system.draw(0)
    numerics = system.numerics
    stride = numerics.size // 20
    state = system.start(p, 0).state[:, ::stride, ::stride][:, :20, :20]
    coefficients = tuple(p[c] for c in system.kinetic_names)
    rest = (coefficients, system.diffusivities(p), numerics.length * 20 / numerics.size, numerics.dt, 5)
    before = state.copy()
    compiled = integrator(numerics.method, numerics.laplacian, system.kinetics, numerics.boundary)(state, *rest)
    plain = reference(numerics.method, numerics.laplacian, system.kinetics)(state, *rest)
    assert np.array_equal(state, before)
    assert np.abs(plain - before).max() > 1e-5
    assert np.abs(compiled - plain).max() < 1e-12 * max(1, np.abs(plain).max())


@pytest.mark.parametrize(("method", "laplace", "order"), METHODS)
def test_measured_order_in_time(method, laplace, order):
    """Differences between successive halvings of the step shrink by 2^order on a generic smooth state."""
    advance = integrator(method, laplace, rotation, PERIODIC)
    state, first = smooth_state(16), 32
    ends = [advance(state, ROTATING, (6e-3, 3e-3), 2.0, 1.0 / steps, steps) for steps in (first, 2 * first, 4 * first)]
    coarse, fine = (np.linalg.norm(a - b) for a, b in itertools.pairwise(ends))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize(("method", "laplace", "order"), METHODS)
def test_measured_order_against_an_exact_plane_wave(method, laplace, order):
    """With equal diffusivities a rotating plane wave solves the equation; its wave number enters by the symbol."""
    size, length, diffusivity, periods = 16, 2.0, 0.01, 2
    rho, alpha, omega_0, beta = ROTATING
    angle = 2 * np.pi * periods / size
    spacing = length / size
    squared = {
        2: (2 - 2 * np.cos(angle)) / spacing**2,
        4: (30 - 32 * np.cos(angle) + 2 * np.cos(2 * angle)) / (12 * spacing**2),
        "spectral": (angle / spacing) ** 2,
    }[laplace]
    radius = np.sqrt(1 - diffusivity * squared / (rho * alpha))
    frequency = rho * (omega_0 - beta * radius**2)

    def wave(time: float) -> np.ndarray:
        phase = np.broadcast_to(angle * np.arange(size), (size, size)) + frequency * time
        return radius * np.stack([np.cos(phase), np.sin(phase)])

    advance = integrator(method, laplace, rotation, PERIODIC)
    errors = []
    for steps in (8, 16, 32):
        end = advance(wave(0), ROTATING, (diffusivity, diffusivity), length, 1.0 / steps, steps)
        errors.append(np.abs(end - wave(1.0)).max())
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.2)
    assert errors[2] < {1: 3e-2, 2: 1e-3, 4: 1e-6}[order]


@pytest.mark.parametrize(("method", "laplace", "order"), METHODS)
def test_a_fourier_mode_decays_under_pure_diffusion(method, laplace, order):
    """Each component decays by the polynomial of its method, or by the exact exponential, at its own diffusivity."""
    size, length, steps, dt, diffusivities = 32, 2.0, 40, 5e-3, (0.01, 0.03)
    x, y = Grid(size, length).coordinates()
    mode = np.cos(2 * np.pi * (2 * x + y) / length)
    advance = integrator(method, laplace, rotation, PERIODIC)
    end = advance(np.stack([mode, mode]), STILL, diffusivities, length, dt, steps)
    for field, diffusivity in zip(end, diffusivities, strict=True):
        factor = field[0, 0] / mode[0, 0]
        assert np.allclose(field, factor * mode, atol=1e-12)
        exact = np.exp(-diffusivity * (2 * np.pi / length) ** 2 * 5 * steps * dt)
        assert factor == pytest.approx(exact, rel={1: 0.02, 4: 1e-3, 2: 1e-12}[order])


@pytest.mark.parametrize(("method", "laplace", "order"), METHODS)
def test_a_step_commutes_with_periodic_shifts(method, laplace, order):
    state = smooth_state(16)
    advance = integrator(method, laplace, rotation, PERIODIC)
    rest = (ROTATING, (2e-3, 1e-3), 2.0, 0.05, 3)
    moved = advance(np.roll(state, (3, -5), (1, 2)), *rest)
    assert np.allclose(moved, np.roll(advance(state, *rest), (3, -5), (1, 2)), atol=1e-13)


def test_an_interrupt_ends_the_steps_and_is_one(monkeypatch):
    """The same bits come of steps that are made a few at a time."""
    advance, state = integrator("euler", 2, rotation, PERIODIC), smooth_state(128)
    rest = (ROTATING, (6e-3, 3e-3), 2.0, 1e-4)
    whole = advance(state, *rest, 25)
    monkeypatch.setattr(integrators, "AT_ONCE", 7 * 128**2)
    assert np.array_equal(advance(state, *rest, 25), whole)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    began = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            advance(state, *rest, 10**6)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 20  # of some minutes


@pytest.mark.parametrize(("method", "laplace", "order"), METHODS)
def test_no_step_changes_nothing(method, laplace, order):
    state = smooth_state(8)
    advance = integrator(method, laplace, rotation, PERIODIC)
    assert np.array_equal(advance(state, ROTATING, (1e-3, 1e-3), 2.0, 0.1, 0), state)


def test_a_component_without_diffusion_is_left_to_the_reaction_bit_for_bit():
    state = smooth_state(16)
    end = integrator("strang", "spectral", rotation, PERIODIC)(state, STILL, (0.1, 0.0), 2.0, 0.05, 3)
    assert np.array_equal(end[1], state[1])
    assert not np.allclose(end[0], state[0])


def test_integrators_are_built_once_and_unknown_ones_are_refused():
    assert integrator("euler", 2, rotation) is integrator("euler", 2, rotation)
    with pytest.raises(ValueError, match="expected euler or rk4 with Laplacian 2 or 4, or strang with spectral"):
        integrator("euler", "spectral", rotation)
    with pytest.raises(ValueError, match="'leapfrog'"):
        integrator("leapfrog", 2, rotation)
