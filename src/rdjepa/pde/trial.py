"""A few integrations of a system that show what an hour of them would: blow-up, rejections, time, and resolution."""

import math
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.ndimage import map_coordinates

from rdjepa.checks import Few, Rate, checked
from rdjepa.pde.rollout import Run, advancing, legs, rollout
from rdjepa.pde.screening import first_reason
from rdjepa.pde.stability import diffusive_limit, fastest
from rdjepa.pde.system import Numerics, System

RESOLVED = 0.1  # a larger change on half the step or a double grid is worth a word
PROBED = 0.2  # seconds of steps from which the time of a trajectory is extrapolated


@dataclass(frozen=True)
class Trial:
    """What a trial found.

    Attributes:
        dt: the largest internal step.
        limit: largest step of stable explicit diffusion over all ranges; infinite where diffusion is exact.
        steps: internal steps of a trajectory.
        seconds: expected time of a trajectory on this machine.
        until: time up to which fields were compared, the last saved one if the budget sufficed.
        half_step: relative L2 change of the fields at that time on half the step; NaN where either blew up.
        double_grid: the same on twice the points per side.
        drawn: number of whole trajectories that were integrated; 0 where one exceeds the budget.
        largest: largest magnitude in them.
        rejections: reasons for which the screens reject some of them.
        failures: what makes it useless to simulate more, one sentence each.
        advice: what is worth a thought, one sentence each. Several of the paper's systems get one for their grid: what
            is simulated is then that grid's own dynamics, not those of the continuous equation.
    """

    dt: float
    limit: float
    steps: int
    seconds: float
    until: float
    half_step: float
    double_grid: float
    drawn: int
    largest: float
    rejections: tuple[str, ...]
    failures: tuple[str, ...]
    advice: tuple[str, ...]


def trial(system: System, draws: int = 3, budget: float = 10.0) -> Trial:
    """Integrate a few draws of every regime, and the first one with half the step and on a double grid.

    Args:
        system: that `rdjepa.pde.contract.check_system` accepts.
        draws: trajectories of each regime, at most 100,000.
        budget: seconds for the draws, and as many for the comparisons; the latter end earlier in a trajectory where
            more would be needed.
    """
    checked(draws, Few, "draws")
    checked(budget, Rate, "the seconds")
    numerics = system.numerics
    limit = min(diffusive_limit(numerics, fastest(system, regime)) for regime in system.regimes)
    steps = sum(leg.steps for leg in legs(numerics.times, numerics.dt))
    run = advancing(system, system.draw(0))
    with np.errstate(all="ignore"):  # the first draw may blow up
        seconds = steps * _seconds_of_a_step(run, system)
        until, half_step, double_grid = _compare(run, system, seconds, budget)
    # Round robin over the regimes, so that each has its draws where the budget does not suffice for all.
    wanted = [(regime, seed) for seed in range(draws) for regime in system.regimes]
    drawn = [_draw(system, *each) for each in wanted[: int(budget / max(seconds, 1e-9))]]
    failures = [each.blow_up for each in drawn if each.blow_up]
    failures += [each.still for each in drawn if each.still][:1]
    rejections = tuple(each.rejection for each in drawn if each.rejection)
    if drawn and len(rejections) == len(drawn):
        failures.append(
            f"expected screens that pass some draws, got {len(drawn)} of {len(drawn)} rejected ({rejections[0]}); "
            "change ranges, times or screens"
        )
    advice = [
        f"expected fields that change by less than {RESOLVED:.0%} on {what}, got {change:.3g} at t = {until:.4g}; "
        f"{remedy}, or accept the dynamics of this one"
        for change, what, remedy in (
            (half_step, "half the step", "lower dt, or take method rk4"),
            (double_grid, "a double grid", "raise size"),
        )
        if change > RESOLVED or (math.isnan(change) and not failures)
    ]
    return Trial(
        dt=numerics.dt,
        limit=limit,
        steps=steps,
        seconds=seconds,
        until=until,
        half_step=half_step,
        double_grid=double_grid,
        drawn=len(drawn),
        largest=max((each.largest for each in drawn), default=0.0),
        rejections=rejections,
        failures=tuple(failures),
        advice=tuple(advice),
    )


class _Drawn(NamedTuple):
    largest: float = 0.0
    blow_up: str = ""
    still: str = ""
    rejection: str = ""


def _draw(system: System, regime: str, seed: int) -> _Drawn:
    """Integrate one draw to its end, and screen it."""
    p = system.draw(seed, regime)
    with np.errstate(all="ignore"):
        fields = rollout(system, p, system.start(p, seed, regime).state)
    finite = np.isfinite(fields).all(axis=(1, 2, 3))
    if not finite.all():
        values = ", ".join(f"{name} = {value:.4g}" for name, value in p.items())
        return _Drawn(
            blow_up=f"expected finite fields, got a blow-up by t = {system.numerics.times[int(np.argmin(finite))]:.4g} "
            f"with {values} ({regime}, seed {seed}); lower dt, or narrow the ranges"
        )
    largest, rejection = float(np.abs(fields).max()), first_reason(system.screens, fields) or ""
    flat = [number for number in range(fields.shape[-1]) if not np.ptp(fields[..., number])]
    if flat and not rejection:
        return _Drawn(
            largest,
            still=f"expected fields that change, got component {flat[0]} at {fields[0, 0, 0, flat[0]]:.4g} everywhere "
            f"({regime}, seed {seed}); change kinetics or initial states",
        )
    return _Drawn(largest, rejection=rejection)


def _seconds_of_a_step(run: Run, system: System) -> float:
    """Measure one step, after the kernel is compiled."""
    state, dt = system.start(system.draw(0), 0).state, system.numerics.dt
    run(state, dt, 1)
    steps, spent = 1, 0.0
    while spent < PROBED:
        steps *= 2
        before = time.perf_counter()
        run(state, dt, steps)
        spent = time.perf_counter() - before
    return spent / steps


def _compare(run: Run, system: System, seconds: float, budget: float) -> tuple[float, float, float]:
    """Return the time reached, and the changes of the first draw there on half the step and on a double grid.

    The grids are compared at the same step, one that is stable on both.
    """
    numerics, p = system.numerics, system.draw(0)
    coarse = system.start(p, 0).state
    finer = diffusive_limit(replace(numerics, size=2 * numerics.size), system.diffusivities(p))
    divided = max(1, math.ceil(numerics.dt / finer))
    # in units of a trajectory: whole, at half the step, on the grid and on the double one at the divided step
    cost = 1 + 2 + divided * (divided > 1) + 4 * divided
    total = max(1, round(numerics.last / numerics.dt))
    steps = max(1, int(total * min(1.0, budget / (cost * max(seconds, 1e-9)))))
    dt = numerics.last / total
    whole = run(coarse, dt, steps)
    half = run(coarse, dt / 2, 2 * steps)
    same = run(coarse, dt / divided, divided * steps) if divided > 1 else whole
    double = _on_points(run(_doubled(coarse, numerics.boundary.walls), dt / divided, divided * steps), numerics)
    return steps * dt, _change(half, whole), _change(double, same)


def _doubled(state: np.ndarray, walls: bool) -> np.ndarray:
    """Interpolate a state (2, H, W) to twice the points per side, by cubic splines."""
    axis = np.arange(2 * state.shape[-1]) / 2 - 0.25 * walls  # between walls the points are cell centers
    places = np.meshgrid(axis, axis, indexing="ij")
    mode = "reflect" if walls else "grid-wrap"
    return np.stack([map_coordinates(field, places, order=3, mode=mode) for field in state])


def _on_points(state: np.ndarray, numerics: Numerics) -> np.ndarray:
    """Take a state of twice the points per side back: every second point, or means of four cells between walls."""
    if numerics.boundary.walls:
        return (state[:, ::2, ::2] + state[:, 1::2, ::2] + state[:, ::2, 1::2] + state[:, 1::2, 1::2]) / 4
    return state[:, ::2, ::2]


def _change(found: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative L2 difference, 0 of fields that are the same; NaN where a value is not finite."""
    with np.errstate(all="ignore"):
        difference = np.linalg.norm(found - reference)
        change = float(difference / np.linalg.norm(found)) if difference else 0.0
    return change if math.isfinite(change) else math.nan
