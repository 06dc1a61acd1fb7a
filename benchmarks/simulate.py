"""Seconds per trajectory of every system, and the ratio to a C kernel of the same arithmetic for two of them.

Run it as `python benchmarks/simulate.py`. The times are processor seconds, because everything runs on one thread and
other work on the machine should not count. Compilation, initial states and screening are left out.
"""

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rdjepa.pde.laplacian import STENCILS
from rdjepa.pde.rollout import legs, rollout
from rdjepa.pde.system import System
from rdjepa.systems import get, names

REPEATS = 3
FLOORS = {"gray-scott": "euler.c", "fitzhugh-nagumo": "rk4.c"}
Rollout = Callable[[System, dict[str, float], np.ndarray], np.ndarray]


def brief(system: System) -> System:
    """The same system with one step before its last frame: enough to compile everything."""
    return replace(system, numerics=replace(system.numerics, first=0.0, last=system.numerics.dt, frames=2))


def c_rollout(source: Path, folder: Path) -> Rollout:
    """Compile a C kernel and return a drop-in for `rollout`."""
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
    """Measure the C kernel of a system, if it has one, and describe the comparison."""
    if name not in FLOORS:
        return ""
    if shutil.which("gcc") is None:
        return "skipped: no gcc on the path"
    c_seconds, c_frames = measure(c_rollout(Path(__file__).with_name(FLOORS[name]), folder), get(name))
    difference = np.abs(frames - c_frames).max()
    return f"{c_seconds:7.3f}  {seconds / c_seconds:5.2f}  {difference:.1e}"


def main() -> None:
    print(f"{'system':<16} {'steps':>6} {'seconds':>8}  {'C':>7}  ratio  largest difference")
    with tempfile.TemporaryDirectory() as folder:
        for name in names():
            numerics = get(name).numerics
            steps = sum(leg.steps for leg in legs(numerics.times, numerics.dt))
            seconds, frames = measure(rollout, get(name))
            row = f"{name:<16} {steps:>6} {seconds:>8.3f}  {floor(name, seconds, frames, Path(folder))}"
            print(row.rstrip(), flush=True)


if __name__ == "__main__":
    main()
