"""Four textbook equations on which nothing of the package was chosen, and a study of them.

    rdjepa --load benchmarks/unseen.py study run unseen --root unseen --model nano-wide --precision bfloat16

They are neither among the sources nor held out by the paper, and no rate, rule or design was chosen on them: a test of
what `rdjepa adapt` decides for a system that is new. One cell for each system and forecaster, one trajectory. That of
predators and prey, with another window and other initial states, is also the template of `rdjepa new-system`.

Sources: C. Morris, H. Lecar, Biophys. J. 35 (1981); I. Lengyel, I. R. Epstein, Science 251 (1991);
M. L. Rosenzweig, R. H. MacArthur, Am. Nat. 97 (1963); E. E. Sel'kov, Eur. J. Biochem. 4 (1968).
"""

from typing import Any

import numpy as np

from rdjepa import systems
from rdjepa.pde.grid import Grid
from rdjepa.pde.random_fields import smooth_noise
from rdjepa.pde.sampling import Box
from rdjepa.pde.screening import Finite, MinFinalContrast, MinMeanChange
from rdjepa.pde.shapes import disk, step
from rdjepa.pde.system import Coefficient, Coefficients, InitialCondition, Numerics, Regime, System
from rdjepa.study import registry


def morris_lecar(u: Any, v: Any, current: Any, calcium: Any, phi: Any) -> tuple[Any, Any]:
    """Return the rates of a membrane's potential u, in mV, and of its open potassium channels v, per ms."""
    opening = 0.5 * (1 + np.tanh((u + 1.2) / 18))
    target = 0.5 * (1 + np.tanh((u - 2) / 30))
    flow = current - 2 * (u + 60) - calcium * opening * (u - 120) - 8 * v * (u + 84)
    return flow / 20, phi * (target - v) * np.cosh((u - 2) / 60)


def lengyel_epstein(u: Any, v: Any, a: Any, b: Any, sigma: Any) -> tuple[Any, Any]:
    """Return the rates of iodide u and of chlorite v."""
    bound = u * v / (1 + u * u)
    return a - u - 4 * bound, sigma * b * (u - bound)


def rosenzweig_macarthur(u: Any, v: Any, saturation: Any, conversion: Any, mortality: Any) -> tuple[Any, Any]:
    """Return the rates of a prey u and of a predator v."""
    eaten = u * v / (u + saturation)
    return u * (1 - u) - eaten, conversion * eaten - mortality * v


def selkov(u: Any, v: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rates of ADP u and of fructose 6-phosphate v in glycolysis."""
    return -u + a * v + u * u * v, b - a * v - u * u * v


def broken_wave(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
    """Return an excited slab that is cut off on one side, ahead of a refractory one, (2, H, W)."""
    center = grid.length * (0.5 + rng.uniform(-0.2, 0.2, size=2))
    x, y = grid.offsets(center)
    angle = rng.uniform(0, 2 * np.pi)
    ahead, aside = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    width, length, edge = rng.uniform(8, 16), rng.uniform(20, 40), rng.uniform(2, 3)
    inside = disk(grid, center, rng.uniform(0.25, 0.4) * grid.length, edge)
    excited = step(ahead, edge) * step(width - ahead, edge) * step(aside, edge)
    refractory = step(ahead + length, edge) * step(-ahead, edge)
    u, v = -40 + 60 * excited * inside, 0.05 + rng.uniform(0.3, 0.45) * refractory * inside
    return np.stack([u, v * np.exp(0.1 * smooth_noise(grid, rng, 4))])


def around(level: Any, amplitude: float, cutoff: float) -> Any:
    """Return a builder of smooth random states (2, H, W) around a level (u, v), by relative noise."""

    def build(grid: Grid, p: Coefficients, rng: np.random.Generator) -> np.ndarray:
        return np.stack([x * np.exp(amplitude * smooth_noise(grid, rng, cutoff)) for x in level(p)])

    return build


def made(name: str, title: str, reference: str, kinetics: Any, state: Any, numerics: Numerics, **ranges: Any) -> System:
    """Return a system with diffusivities D_u and D_v, kinetics with the other coefficients, and one kind of state."""
    return System(
        name=name,
        title=title,
        reference=reference,
        coefficients=tuple(Coefficient(each, each) for each in ranges),
        kinetics=kinetics,
        diffusivity_names=("D_u", "D_v"),
        regimes={"id": Regime((Box(ranges),), (InitialCondition("random", state),))},
        numerics=numerics,
        screens=(Finite(200.0), MinFinalContrast(0.01), MinMeanChange(0.01)),
    )


def rest(p: Coefficients) -> tuple[float, float]:
    """Return the steady state of Lengyel and Epstein."""
    return p["a"] / 5, 1 + (p["a"] / 5) ** 2


SYSTEMS = (
    made(
        "morris-lecar", "Morris–Lecar", "C. Morris, H. Lecar (1981)", morris_lecar, broken_wave,
        Numerics(length=200.0, dt=0.08, first=10.0, last=166.0, laplacian=4),
        D_u=(0.9, 1.1), D_v=(0.0, 0.0), current=(60.0, 75.0), calcium=(4.2, 4.6), phi=(0.035, 0.045),
    ),
    made(
        "lengyel-epstein", "Lengyel–Epstein", "I. Lengyel, I. R. Epstein (1991)", lengyel_epstein,
        around(rest, 0.15, 6), Numerics(length=60.0, dt=0.002, first=0.5, last=20.0),
        D_u=(0.9, 1.1), D_v=(16.0, 20.0), a=(10.0, 12.0), b=(0.3, 0.36), sigma=(12.0, 14.0),
    ),
    made(
        "rosenzweig-macarthur", "Rosenzweig–MacArthur", "M. L. Rosenzweig, R. H. MacArthur (1963)",
        rosenzweig_macarthur, around(lambda p: (0.4, 0.3), 0.5, 6),
        Numerics(length=200.0, dt=0.1, first=60.0, last=99.0, method="rk4"),
        D_u=(0.8, 1.2), D_v=(0.8, 1.2), saturation=(0.3, 0.4), conversion=(1.9, 2.1), mortality=(0.55, 0.65),
    ),
    made(
        "selkov", "Sel'kov", "E. E. Sel'kov (1968)", selkov, around(lambda p: (p["b"], 1.5), 0.4, 5),
        Numerics(length=40.0, dt=0.02, first=10.0, last=29.5),
        D_u=(0.08, 0.12), D_v=(0.08, 0.12), a=(0.06, 0.1), b=(0.5, 0.7),
    ),
)  # fmt: skip

for system in SYSTEMS:
    systems.register(system)
registry.register(
    registry.Study(
        "unseen",
        "Equations on which nothing was chosen",
        systems=tuple(system.name for system in SYSTEMS),
        forecasters=(
            *("rd-jepa-auto", "rd-jepa-alone", "rd-jepa-anchored", "rd-jepa-zero-shot"),
            *("scratch", "scratch-anchored", "no-latent", "revit"),
            *("linear", "autoregression", "equation", "persistence"),
        ),
        subject="rd-jepa-auto",
        budgets=(1,),
        seeds=(777,),
    )
)
