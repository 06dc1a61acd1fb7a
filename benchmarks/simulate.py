"""Seconds per trajectory of every system, compared with py-pde on the same work and a C kernel of the same arithmetic.

    python benchmarks/simulate.py [--peer | --family]

The times are processor seconds on one thread, so that other work on the machine does not count.
Compilation, initial states and screening are excluded, for py-pde too. py-pde advances the same equation, grid and step
with its compiled second-order stencil, by Euler or, where ours is, by Runge-Kutta; `STEPS` steps are timed and scaled
to the trajectory. Where our scheme does more than that (the fourth-order stencil, Strang splitting), "same" is our time
with py-pde's scheme, which the ratio refers to; with walls there is no such scheme, and the ratio refers to the
splitting. The line below is the cost of one draw of each of the benchmark's 11,625 trajectories on one core.

A second table, alone with --family, has one draw of every kind of the family of random equations beside the equation of
the eight with the simplest kinetics: seconds, nanoseconds per grid point and step, seconds of the draw and its initial
state, and seconds of the distance to what is held out, which only draws that pass the screens take.
"""

import argparse
import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from rdjepa.pde.laplacian import STENCILS
from rdjepa.pde.rollout import legs, rollout
from rdjepa.pde.system import System
from rdjepa.study import protocol
from rdjepa.systems import get

REPEATS = 3
STEPS = 200  # of the peer
KINDS = len(get("family").regime("id").boxes)
FLOORS = {"gray-scott": "euler.c", "fitzhugh-nagumo": "rk4.c"}
Rollout = Callable[[System, dict[str, float], np.ndarray], np.ndarray]


def brief(system: System) -> System:
    """Return the system with a single step, to compile everything."""
    return replace(system, numerics=replace(system.numerics, first=0.0, last=system.numerics.dt, frames=2))


def c_rollout(source: Path, folder: Path) -> Rollout:
    """Compile a C kernel and return a function with the signature of `rollout`."""
    library = folder / f"{source.stem}.so"
    command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    run = ctypes.CDLL(str(library)).run
    run.restype = None
    array = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
    run.argtypes = [array] * 4 + [ctypes.c_int, ctypes.c_long] + [ctypes.c_double] * 3 + [array]

    def advance(system: System, p: dict[str, float], state: np.ndarray) -> np.ndarray:
        numerics = system.numerics
        halo = STENCILS[numerics.laplacian].halo
        u, v = (np.pad(field, halo) for field in state)
        scratch = np.zeros_like(u), np.zeros_like(v)
        scaled = [diffusivity / numerics.grid.spacing**2 for diffusivity in system.diffusivities(p)]
        coefficients = np.array([p[name] for name in system.kinetic_names])
        frames = []
        for leg in legs(numerics.times, numerics.dt):
            run(u, v, *scratch, numerics.size, leg.steps, *scaled, leg.dt, coefficients)
            frames.append(np.stack([u, v], axis=-1)[halo:-halo, halo:-halo].astype(np.float32))
        return np.stack(frames)

    return advance


def measure(run: Rollout, system: System) -> tuple[float, np.ndarray]:
    """Return the median processor seconds of one trajectory after a warm-up, and its frames."""
    p = system.draw(0)
    state = system.start(p, 0).state
    run(brief(system), p, state)
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        frames = run(system, p, state)
        seconds.append(time.process_time() - began)
    return statistics.median(seconds), frames


def floor(name: str, seconds: float, frames: np.ndarray, folder: Path) -> str:
    """Measure the C kernel of a system, if it has one, and return its columns of the table."""
    if name not in FLOORS:
        return " |  | "
    if shutil.which("gcc") is None:
        return "no gcc on the path |  | "
    c_seconds, c_frames = measure(c_rollout(Path(__file__).with_name(FLOORS[name]), folder), get(name))
    difference = np.abs(frames - c_frames).max()
    return f"{c_seconds:.3f} | {seconds / c_seconds:.2f} | {difference:.1e}"


def as_peer(system: System) -> System:
    """Return the system with py-pde's scheme; unchanged where the boundary is not periodic."""
    if system.numerics.boundary.walls:
        return system
    method = "rk4" if system.numerics.method == "rk4" else "euler"
    return replace(system, numerics=replace(system.numerics, method=method, laplacian=2))


def peer(system: System) -> float:
    """Measure the median processor seconds of one trajectory's steps in py-pde, after its compilation."""
    import sympy

    import pde

    p, numerics = system.draw(0), system.numerics
    rates = system.kinetics(*sympy.symbols("u v"), *sympy.symbols(system.kinetic_names))
    texts = {
        field: f"{name} * laplace({field}) + {sympy.sstr(rate)}"
        for field, name, rate in zip("uv", system.diffusivity_names, rates, strict=True)
    }
    walls: dict[str, Any] = {
        "periodic": "periodic",
        "neumann": {"derivative": 0},
        "dirichlet": {"value": 0},
        "robin": {"type": "mixed", "value": numerics.boundary.kappa, "const": 0},
    }
    grid = pde.CartesianGrid([(0, numerics.length)] * 2, numerics.size, periodic=not numerics.boundary.walls)
    equation = pde.PDE(texts, consts=dict(p), bc=walls[numerics.boundary.kind])
    solver = (pde.RungeKuttaSolver if numerics.method == "rk4" else pde.EulerSolver)(equation, backend="numba")
    state = pde.FieldCollection([pde.ScalarField(grid, component.T) for component in system.start(p, 0).state])
    advance = solver.make_stepper(state, dt=numerics.dt)
    advance(state, 0, 2 * numerics.dt)
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        advance(state, 0, STEPS * numerics.dt)
        seconds.append(time.process_time() - began)
    return statistics.median(seconds) / STEPS * sum(leg.steps for leg in legs(numerics.times, numerics.dt))


def family() -> None:
    """Print the table of the family."""
    print("| equation | steps | seconds | ns per point and step | seconds of the draw | of the distance |")
    print("|---|---|---|---|---|---|")
    for system, seed in [(get("gray-scott"), 0), *((get("family"), seed) for seed in range(KINDS))]:
        p = system.draw(seed)
        began = time.process_time()
        state = system.start(system.draw(seed), seed).state
        drawn = time.process_time() - began
        rollout(brief(system), p, state)
        seconds = []
        for _ in range(REPEATS):
            began = time.process_time()
            frames = rollout(system, p, state)
            seconds.append(time.process_time() - began)
        distance = ""
        if system.apart:
            began = time.process_time()
            system.apart.nearest(system, p, frames)
            distance = f"{time.process_time() - began:.3f}"
        steps = sum(leg.steps for leg in legs(system.numerics.times, system.numerics.dt))
        each = statistics.median(seconds) / steps / system.numerics.size**2
        name = system.kind(seed) or system.name
        print(f"| {name} | {steps} | {statistics.median(seconds):.3f} | {1e9 * each:.2f} | {drawn:.3f} | {distance} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--peer", action="store_true", help="time py-pde too; it compiles for up to a minute per system"
    )
    parser.add_argument("--family", action="store_true", help="time the family of random equations only")
    arguments = parser.parse_args()
    numba.set_num_threads(1)  # py-pde would take more on a large grid
    if arguments.family:
        family()
        return
    total = 0.0
    print("| system | steps | seconds | same | py-pde | ratio | C | ratio | largest difference |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in protocol.SYSTEMS:
            numerics = get(name).numerics
            steps = sum(leg.steps for leg in legs(numerics.times, numerics.dt))
            seconds, frames = measure(rollout, get(name))
            total += seconds * sum(protocol.counts(name).values())
            against = " | | "
            if arguments.peer:
                theirs, same = peer(get(name)), measure(rollout, as_peer(get(name)))[0]
                against = f"{same:.3f} | {theirs:.3f} | {theirs / same:.1f}"
            print(f"| {name} | {steps} | {seconds:.3f} | {against} | {floor(name, seconds, frames, Path(folder))} |")
    print(f"\nall trajectories, one draw each: {total / 3600:.2f} core-hours\n")
    family()


if __name__ == "__main__":
    main()
