"""Integration from an initial state to the saved frames."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rdjepa.pde.integrators import integrator
from rdjepa.pde.stability import check_step
from rdjepa.pde.system import Coefficients, System

Run = Callable[[np.ndarray, float, int], np.ndarray]  # (state (2, H, W), dt, steps) -> state after the steps


class Leg(NamedTuple):
    """Equal steps from one saved time to the next."""

    steps: int
    dt: float


def legs(times: np.ndarray, dt: float) -> tuple[Leg, ...]:
    """Divide each interval, the first from t = 0, into the fewest equal steps that are no longer than `dt`.

    So every saved time is the end of a step. An interval of zero length has no step.
    """
    intervals = np.diff(times, prepend=0.0)
    # The tolerance keeps an interval of n dt at n steps when rounding puts the quotient slightly above n.
    counts = [int(np.ceil(interval / dt * (1 - 1e-9))) for interval in intervals]
    return tuple(
        Leg(count, float(interval) / count if count else dt) for count, interval in zip(counts, intervals, strict=True)
    )


def block_mean(field: np.ndarray, size: int) -> np.ndarray:
    """Average (..., H, W) over blocks down to (..., size, size).

    `rdjepa.data.fields.block_means` adds in another order, so its last bits would change every saved trajectory.
    """
    factor = field.shape[-1] // size
    return field.reshape(*field.shape[:-2], size, factor, size, factor).mean(axis=(-3, -1))


def advancing(system: System, p: Coefficients) -> Run:
    """Return what integrates a system at given coefficients."""
    numerics = system.numerics
    advance = integrator(numerics.method, numerics.laplacian, system.kinetics, numerics.boundary)
    values, diffusivities = tuple(p[name] for name in system.kinetic_names), system.diffusivities(p)
    return lambda state, dt, steps: advance(state, values, diffusivities, numerics.length, dt, steps)


def rollout(system: System, p: Coefficients, state: np.ndarray) -> np.ndarray:
    """Integrate from `state` (2, H, W) at t = 0 and return the saved frames, (T, H, W, 2) float32.

    Raises:
        ArgumentError: the step is above the diffusive limit of the method.
    """
    numerics = system.numerics
    check_step(numerics, system.diffusivities(p))
    advance = advancing(system, p)
    frames = np.empty((numerics.frames, numerics.stored, numerics.stored, 2), dtype=np.float32)
    for frame, leg in zip(frames, legs(numerics.times, numerics.dt), strict=True):
        state = advance(state, leg.dt, leg.steps)
        frame[...] = np.moveaxis(block_mean(state, numerics.stored), 0, -1)
    return frames
