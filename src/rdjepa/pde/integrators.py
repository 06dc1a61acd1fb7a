"""Time integrators: explicit Euler, classical Runge-Kutta of order 4, and Strang splitting.

Each is compiled once per kinetics and process (numba, float64, strict IEEE arithmetic, one thread), which takes one to
four seconds. Numba's disk cache is off: kernels that differ only in their kinetics share a symbol name, and collide
when one process reads two of them back.
"""

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable
from scipy import fft

from rdjepa.errors import ArgumentError
from rdjepa.pde.boundary import PERIODIC, Boundary
from rdjepa.pde.laplacian import STENCILS, Laplacian, Stencil, fill_periodic, fill_walls, squared_wavenumbers

# (state (2, H, W), coefficients, (D_u, D_v), length of the domain, dt, steps) -> state after the steps
Advance = Callable[[np.ndarray, tuple[float, ...], tuple[float, float], float, float, int], np.ndarray]
AT_ONCE = 2**24  # cell updates of one call of a kernel, during which no interrupt is seen


def inlined(function: Callable) -> Callable:
    """Return a copy of a plain function that compiled code can call and inline.

    The original stays a plain function, which NumPy and sympy call as well.
    """
    assert isinstance(function, FunctionType)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__)
    return register_jitable(error_model="numpy")(copy)


def _euler(kinetics: Callable, stencil: Stencil) -> Advance:
    """Compile explicit Euler for reaction and diffusion together."""
    halo = stencil.halo
    laplacian = inlined(stencil.apply)
    fill = inlined(fill_periodic)

    @njit(error_model="numpy")
    def run(u, v, coefficients, diffusion_u, diffusion_v, dt, steps):  # type: ignore[no-untyped-def]
        first = np.uint64(halo)
        rows = np.uint64(u.shape[0] - halo)
        columns = np.uint64(u.shape[1] - halo)
        next_u = np.empty_like(u)  # its ghost cells are filled at the next step, before they are read
        next_v = np.empty_like(v)
        for _ in range(steps):
            fill(u, halo)
            fill(v, halo)
            for i in range(first, rows):
                for j in range(first, columns):
                    du, dv = kinetics(u[i, j], v[i, j], *coefficients)
                    next_u[i, j] = u[i, j] + dt * (diffusion_u * laplacian(u, i, j) + du)
                    next_v[i, j] = v[i, j] + dt * (diffusion_v * laplacian(v, i, j) + dv)
            u, next_u = next_u, u
            v, next_v = next_v, v
        return u, v

    return _on_padded(run, halo)


def _rk4(kinetics: Callable, stencil: Stencil) -> Advance:
    """Compile the classical Runge-Kutta method for reaction and diffusion together."""
    halo = stencil.halo
    laplacian = inlined(stencil.apply)
    fill = inlined(fill_periodic)

    # Each inner loop writes to one array only, so the kinetics is evaluated once per component: more arrays in one loop
    # need more overlap checks than the compiler is willing to make.
    @njit(error_model="numpy")
    def run(u, v, coefficients, diffusion_u, diffusion_v, dt, steps):  # type: ignore[no-untyped-def]
        first = np.uint64(halo)
        rows = np.uint64(u.shape[0] - halo)
        columns = np.uint64(u.shape[1] - halo)
        advance = (0.5 * dt, 0.5 * dt, dt, 0.0)  # the state after the last stage is not used
        weight = (dt / 6.0, dt / 3.0, dt / 3.0, dt / 6.0)
        stage_u, stage_v = np.empty_like(u), np.empty_like(v)
        next_u, next_v = np.empty_like(u), np.empty_like(v)
        sum_u, sum_v = np.empty_like(u), np.empty_like(v)
        slope_u, slope_v = np.empty(u.shape[1]), np.empty(u.shape[1])
        for _ in range(steps):
            stage_u[:], stage_v[:] = u, v
            sum_u[:], sum_v[:] = u, v
            for stage in range(4):
                a = advance[stage]
                b = weight[stage]
                fill(stage_u, halo)
                fill(stage_v, halo)
                for i in range(first, rows):
                    for j in range(first, columns):
                        du, _dv = kinetics(stage_u[i, j], stage_v[i, j], *coefficients)
                        slope_u[j] = diffusion_u * laplacian(stage_u, i, j) + du
                    for j in range(first, columns):
                        _du, dv = kinetics(stage_u[i, j], stage_v[i, j], *coefficients)
                        slope_v[j] = diffusion_v * laplacian(stage_v, i, j) + dv
                    for j in range(first, columns):
                        sum_u[i, j] += b * slope_u[j]
                    for j in range(first, columns):
                        sum_v[i, j] += b * slope_v[j]
                    for j in range(first, columns):
                        next_u[i, j] = u[i, j] + a * slope_u[j]
                    for j in range(first, columns):
                        next_v[i, j] = v[i, j] + a * slope_v[j]
                stage_u, next_u = next_u, stage_u
                stage_v, next_v = next_v, stage_v
            u, sum_u = sum_u, u
            v, sum_v = sum_v, v
        return u, v

    return _on_padded(run, halo)


def _on_padded(run: Callable, halo: int, boundary: Boundary = PERIODIC) -> Advance:
    """Wrap a kernel that works in place on fields with ghost cells as a function of a state without them.

    One between walls is told the factor of the ghost cells.
    """

    def advance(
        state: np.ndarray,
        coefficients: tuple[float, ...],
        diffusivities: tuple[float, float],
        length: float,
        dt: float,
        steps: int,
    ) -> np.ndarray:
        spacing = length / state.shape[-1]
        u, v = np.pad(state, ((0, 0), (halo, halo), (halo, halo)))
        # The stencils return spacing^2 times the Laplacian, so the diffusivities are divided by spacing^2 once.
        scaled = (diffusivities[0] / spacing**2, diffusivities[1] / spacing**2)
        factor = (boundary.ghost_factor(spacing),) if boundary.walls else ()
        most = max(1, AT_ONCE // state[0].size)
        for done in range(0, steps, most):
            u, v = _called(run, u, v, coefficients, *scaled, *factor, dt, min(most, steps - done))
        return np.stack([u, v])[:, halo:-halo, halo:-halo]

    return advance


def _called(run: Callable, *arguments: Any) -> Any:
    """Call compiled code; an interrupt that arrives in it is raised as what it is, not as numba's `SystemError`."""
    try:
        return run(*arguments)
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt | SystemExit):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise cause from None


def _midpoint(kinetics: Callable, halo: int) -> Callable:
    """Compile one step of the explicit midpoint rule for the reaction alone, pointwise and in place."""

    @njit(error_model="numpy")
    def react(u, v, coefficients, dt):  # type: ignore[no-untyped-def]
        first = np.uint64(halo)
        for i in range(first, np.uint64(u.shape[0] - halo)):
            for j in range(first, np.uint64(u.shape[1] - halo)):
                du, dv = kinetics(u[i, j], v[i, j], *coefficients)
                du, dv = kinetics(u[i, j] + 0.5 * dt * du, v[i, j] + 0.5 * dt * dv, *coefficients)
                u[i, j] += dt * du
                v[i, j] += dt * dv

    return react


def _strang(kinetics: Callable) -> Advance:
    """Compile Strang splitting with exact diffusion: half a reaction step, a diffusion step, half a reaction step.

    In Barkley's system this order has half the error of the other one (diffusion outside) at equal cost.
    """
    react = _midpoint(kinetics, halo=0)

    def advance(
        state: np.ndarray,
        coefficients: tuple[float, ...],
        diffusivities: tuple[float, float],
        length: float,
        dt: float,
        steps: int,
    ) -> np.ndarray:
        u, v = state.copy()
        # The diffusion step is the exact solution of the heat equation, so it sets no limit on dt.
        squared = squared_wavenumbers(state.shape[-1], length)
        decay_u, decay_v = (np.exp(-diffusivity * dt * squared) for diffusivity in diffusivities)
        for _ in range(steps):
            react(u, v, coefficients, 0.5 * dt)
            u = _diffuse(u, decay_u, diffusivities[0])
            v = _diffuse(v, decay_v, diffusivities[1])
            react(u, v, coefficients, 0.5 * dt)
        return np.stack([u, v])

    return advance


@cache
def _strang_between_walls(kinetics: Callable) -> Callable:
    """Compile Strang splitting with finite differences of order 2, both parts by the explicit midpoint rule (S1.5).

    The factor of the ghost cells is an argument, so walls of every kind share one kernel.
    """
    laplacian = inlined(STENCILS[2].apply)
    fill = inlined(fill_walls)
    react = _midpoint(inlined(kinetics), halo=1)

    @njit(error_model="numpy")
    def run(u, v, coefficients, diffusion_u, diffusion_v, factor, dt, steps):  # type: ignore[no-untyped-def]
        first = np.uint64(1)
        rows = np.uint64(u.shape[0] - 1)
        columns = np.uint64(u.shape[1] - 1)
        middle = np.empty_like(u)
        for _ in range(steps):
            react(u, v, coefficients, 0.5 * dt)
            for field, diffusion in ((u, diffusion_u), (v, diffusion_v)):
                if diffusion == 0.0:
                    continue
                fill(field, factor)
                for i in range(first, rows):
                    for j in range(first, columns):
                        middle[i, j] = field[i, j] + 0.5 * dt * diffusion * laplacian(field, i, j)
                # The intermediate state has to satisfy the boundary condition as well.
                fill(middle, factor)
                for i in range(first, rows):
                    for j in range(first, columns):
                        field[i, j] += dt * diffusion * laplacian(middle, i, j)
            react(u, v, coefficients, 0.5 * dt)
        return u, v

    return run


def _diffuse(field: np.ndarray, decay: np.ndarray, diffusivity: float) -> np.ndarray:
    """Multiply the spectrum by `decay`; a field that does not diffuse is returned unchanged, bit for bit."""
    if diffusivity == 0:
        return field
    return fft.irfft2(fft.rfft2(field, workers=1) * decay, s=field.shape, workers=1)


@cache
def integrator(method: str, laplacian: Laplacian, kinetics: Callable, boundary: Boundary = PERIODIC) -> Advance:
    """Return the function that advances a state (2, H, W) by a number of equal steps.

    Args:
        method: "euler", "rk4" or "strang".
        laplacian: 2 or 4 (finite differences) with "euler" and "rk4", "spectral" with "strang".
        kinetics: (u, v, *coefficients) -> (du, dv), scalar arithmetic only.
        boundary: periodic, or walls with "strang" and Laplacian 2.

    Raises:
        ArgumentError: another combination of the four.
    """
    if boundary.walls:
        if (method, laplacian) == ("strang", 2):
            return _on_padded(_strang_between_walls(kinetics), 1, boundary)
        raise ArgumentError(
            f"expected strang with Laplacian 2 between walls, got {method!r} with {laplacian!r}; change the numerics"
        )
    if method == "euler" and laplacian in STENCILS:
        return _euler(inlined(kinetics), STENCILS[laplacian])
    if method == "rk4" and laplacian in STENCILS:
        return _rk4(inlined(kinetics), STENCILS[laplacian])
    if method == "strang" and laplacian == "spectral":
        return _strang(inlined(kinetics))
    raise ArgumentError(
        f"expected euler or rk4 with Laplacian 2 or 4, or strang with spectral, got {method!r} with {laplacian!r}; "
        "change the system's numerics"
    )
