"""How far the stored trajectories are from the equations: half the step, twice the grid, single precision.

    python benchmarks/numerics.py [--count N] [--systems NAMES] [--out FILE]

Every trajectory is integrated again from its own draw: with half the step; on a grid of twice as many points a side,
from the same initial cells, with the step that diffusion then allows, and averaged back; and with the state kept
in float32 between steps. A column is the root mean square of the difference from the stored numerics over the points,
components weighted by their standard deviation in that frame, in percent: the mean over frames, and the last frame.
The last column is what the fields change from one stored frame to the next in the same measure, for scale.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from rdjepa.data.simulate import simulate
from rdjepa.pde.integrators import integrator
from rdjepa.pde.rollout import block_mean, legs, rollout
from rdjepa.pde.stability import diffusive_limit
from rdjepa.pde.system import System
from rdjepa.study import protocol
from rdjepa.systems import get

HEADINGS = ("system", "trajectories", "half step", "last", "double grid", "last", "float32", "last", "a frame")


def deviation(found: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the deviation of every frame, (T,), in percent of the standard deviation of the reference."""
    spread = reference.astype(float).std(axis=(1, 2)).clip(1e-12)
    error = np.square(found.astype(float) - reference).mean(axis=(1, 2))
    return 100 * np.sqrt((error / spread**2).mean(axis=-1))


def in_single_precision(system: System, p: dict[str, float], state: np.ndarray) -> np.ndarray:
    """Integrate as `rollout` does, with the state rounded to float32 after every step."""
    numerics = system.numerics
    advance = integrator(numerics.method, numerics.laplacian, system.kinetics, numerics.boundary)
    coefficients = tuple(p[name] for name in system.kinetic_names)
    frames = []
    for leg in legs(numerics.times, numerics.dt):
        for _ in range(leg.steps):
            state = advance(state, coefficients, system.diffusivities(p), numerics.length, leg.dt, 1)
            state = state.astype(np.float32).astype(np.float64)
        frames.append(np.moveaxis(block_mean(state, numerics.stored), 0, -1))
    return np.array(frames)


def measure(system: System, seed: int, regime: str) -> list[float]:
    """Return the columns of one trajectory."""
    numerics = system.numerics
    stored = simulate(system, seed, regime)
    p = dict(stored.coefficients)
    state = system.start(p, seed, regime, attempt=stored.attempt).state
    half = replace(system, numerics=replace(numerics, dt=numerics.dt / 2))
    size = 2 * numerics.size
    finer = replace(numerics, size=size)
    limit = 0.9 * diffusive_limit(finer, system.diffusivities(p))
    fine = replace(system, numerics=replace(finer, dt=min(numerics.dt, limit)))
    start = state.repeat(2, axis=1).repeat(2, axis=2)
    columns = []
    for found in (rollout(half, p, state), rollout(fine, p, start), in_single_precision(system, p, state)):
        error = deviation(found, stored.fields)
        columns += [float(error.mean()), float(error[-1])]
    return [*columns, float(deviation(stored.fields[1:], stored.fields[:-1]).mean())]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=2, help="trajectories of every regime")
    parser.add_argument("--systems", default=",".join(protocol.SYSTEMS))
    parser.add_argument("--out", type=Path, help="write the table as CSV")
    arguments = parser.parse_args()
    print("| " + " | ".join(HEADINGS) + " |\n|" + "---|" * len(HEADINGS), flush=True)
    lines = [",".join(HEADINGS)]
    for name in arguments.systems.split(","):
        system, started = get(name), time.process_time()
        rows = [measure(system, seed, regime) for regime in system.regimes for seed in range(arguments.count)]
        cells = [name, str(len(rows)), *(f"{value:.2g}" for value in np.mean(rows, axis=0))]
        print(f"| {' | '.join(cells)} |  <!-- {time.process_time() - started:.0f} s -->", flush=True)
        lines.append(",".join(cells))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
