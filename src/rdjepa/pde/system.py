"""The contract that every equation fills in: kinetics, coefficients, initial conditions, numerics and screens."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rdjepa.errors import ArgumentError
from rdjepa.pde.boundary import PERIODIC, Boundary
from rdjepa.pde.grid import Grid
from rdjepa.pde.kinetics import on_symbols
from rdjepa.pde.laplacian import Laplacian
from rdjepa.pde.sampling import Box, stream
from rdjepa.pde.screening import Screen

if TYPE_CHECKING:
    from rdjepa.pde.distance import Apart

Coefficients = Mapping[str, float]
REGIMES = ("id", "coeff-ood", "ic-ood")


@dataclass(frozen=True)
class Numerics:
    """How a system is integrated and saved (S1.4 and Table S1 of the paper).

    Attributes:
        length: side length of the square domain.
        origin: coordinate of the lower left corner, the same along both axes.
        size: grid points per side during integration.
        stored: grid points per side in the saved fields, which are block means when fewer than `size`.
        method: "euler", "rk4" or "strang".
        laplacian: 2 or 4 (order of the finite differences) or "spectral".
        dt: the largest internal step.
        first, last: times of the first and last saved frame; integration begins at 0.
        frames: number of saved frames, equally spaced from `first` to `last` inclusive.
        boundary: periodic, or a kind of wall (Strang splitting with Laplacian 2 only).
    """

    length: float
    dt: float
    first: float
    last: float
    origin: float = 0.0
    size: int = 128
    stored: int = 128
    method: str = "euler"
    laplacian: Laplacian = 2
    frames: int = 40
    boundary: Boundary = PERIODIC

    @property
    def times(self) -> np.ndarray:
        """Saved times, (T,)."""
        return np.linspace(self.first, self.last, self.frames)

    @property
    def grid(self) -> Grid:
        """The grid of the integration."""
        return Grid(self.size, self.length, self.origin, self.boundary.walls)


@dataclass(frozen=True)
class Coefficient:
    """Name, meaning and unit of a coefficient; the unit is in terms of `length`, `time` and 1 (dimensionless)."""

    name: str
    description: str
    unit: str = "1"


@dataclass(frozen=True)
class InitialCondition:
    """A family of initial states; `build(grid, coefficients, rng)` returns one, (2, H, W)."""

    name: str
    build: Callable[[Grid, Coefficients, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Regime:
    """A distribution of trajectories: one of the boxes and one of the families, each drawn with equal probability.

    Boxes with names are kinds of equations, which take turns.
    """

    boxes: tuple[Box, ...]
    initial_conditions: tuple[InitialCondition, ...]


class Start(NamedTuple):
    """An initial state (2, H, W) and the name of the family it was drawn from."""

    state: np.ndarray
    family: str


def require_state(state: Any, grid: Grid, family: str) -> None:
    """Refuse what a family of initial states returned if it is no state of float64 (2, H, W).

    Raises:
        ArgumentError: another shape or dtype; whole numbers would be cut off in every step.
    """
    shape = (2, grid.size, grid.size)
    if np.shape(state) != shape or np.asarray(state).dtype != np.float64:
        raise ArgumentError(
            f"expected initial states of shape {shape} and dtype float64, got {np.shape(state)} and "
            f"{getattr(state, 'dtype', type(state).__name__)} from {family!r}; return np.stack([u, v]) of real fields "
            "on the grid"
        )


def _no_equilibria(p: Coefficients) -> tuple[tuple[float, float], ...]:
    return ()


@dataclass(frozen=True)
class System:
    """A two-component reaction-diffusion equation and the distribution of its trajectories.

    Attributes:
        name, title, reference: short name, full name, and the publication of the equation.
        coefficients: every coefficient that is drawn, the diffusivities among them.
        kinetics: (u, v, <coefficients by name>) -> (du/dt, dv/dt) without diffusion. Scalar arithmetic only: NumPy
            arrays, compiled code and sympy symbols all go through this one function.
        diffusivity_names: the coefficients that multiply the Laplacians of u and v.
        regimes: "id" and, for source systems, "coeff-ood" and "ic-ood".
        numerics: discretization and saved window.
        screens: a trajectory that any of them rejects is drawn again.
        equilibria: coefficients -> homogeneous steady states (u, v) known in closed form.
        notes: choices that the paper leaves open, one sentence each.
        family: variants of one equation share it, and with it their random streams; the name by default. Not a
            family of initial conditions.
        label: short name for tables and legends; the title by default.
        apart: held-out equations to which a drawn one keeps a distance, where every draw is an equation of its own.
        revision: to be raised by one when the numbers of the trajectories change on purpose; data, cells and results
            of different revisions are never mixed.
    """

    name: str
    title: str
    reference: str
    coefficients: tuple[Coefficient, ...]
    kinetics: Callable[..., tuple[Any, Any]]
    diffusivity_names: tuple[str, str]
    regimes: Mapping[str, Regime]
    numerics: Numerics
    screens: tuple[Screen, ...]
    equilibria: Callable[[Coefficients], tuple[tuple[float, float], ...]] = _no_equilibria
    notes: tuple[str, ...] = ()
    family: str = ""
    label: str = ""
    apart: "Apart | None" = None
    revision: int = 1

    def __post_init__(self) -> None:
        """Set the label to the title where none is given."""
        object.__setattr__(self, "label", self.label or self.title)

    @property
    def kinetic_names(self) -> tuple[str, ...]:
        """Names of the coefficients of the kinetics, in the order of its arguments."""
        return tuple(inspect.signature(self.kinetics).parameters)[2:]

    def regime(self, name: str) -> Regime:
        """Return a regime by name.

        Raises:
            ArgumentError: the system has no regime of that name.
        """
        if not isinstance(name, str) or name not in self.regimes:
            raise ArgumentError(f"expected a regime of {self.name}, got {name!r}; known: {', '.join(self.regimes)}")
        return self.regimes[name]

    def range(self, name: str, regime: str = "id") -> tuple[float, float]:
        """Return the smallest and the largest value that a coefficient takes in a regime.

        Raises:
            ArgumentError: no coefficient of that name is drawn from a range, as where it follows from other numbers.
        """
        boxes = self.regime(regime).boxes
        if any(box.derive or name not in box.ranges for box in boxes):
            raise ArgumentError(f"expected a coefficient of {self.name} that is drawn from a range, got {name!r}")
        ranges = [box.ranges[name] for box in boxes]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def draw(self, seed: int, regime: str = "id", split: str = "pool", attempt: int = 0) -> dict[str, float]:
        """Draw the coefficients of trajectory number `seed` of a split; each redraw is a new attempt."""
        boxes = self.regime(regime).boxes
        rng = stream(self.family or self.name, split, regime, seed, attempt, "coefficients")
        # Kinds take turns, so that each has its share however many of its draws are rejected.
        turn = seed % len(boxes) if self.kind(seed, regime) else rng.integers(len(boxes))
        return boxes[turn].draw(rng)

    def kind(self, seed: int, regime: str = "id") -> str:
        """Return the kind of equation of trajectory number `seed`; "" for a system without kinds."""
        boxes = self.regime(regime).boxes
        return boxes[seed % len(boxes)].name

    def start(self, p: Coefficients, seed: int, regime: str = "id", split: str = "pool", attempt: int = 0) -> Start:
        """Draw the initial state of trajectory number `seed` of a split, given its coefficients.

        Raises:
            ArgumentError: the family that was drawn returns something else than float64 fields on the grid.
        """
        families = self.regime(regime).initial_conditions
        rng = stream(self.family or self.name, split, regime, seed, attempt, "initial condition")
        family = families[rng.integers(len(families))]
        state = family.build(self.numerics.grid, p, rng)
        require_state(state, self.numerics.grid, family.name)
        return Start(state, family.name)

    def reaction(self, u: Any, v: Any, p: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the reaction terms (du/dt, dv/dt) at u and v: scalars, arrays or symbols."""
        missing = [name for name in self.kinetic_names if name not in p]
        if missing:
            raise ArgumentError(f"expected coefficients {', '.join(self.kinetic_names)}, got none named {missing[0]!r}")
        return self.kinetics(u, v, *(p[name] for name in self.kinetic_names))

    def diffusivities(self, p: Coefficients) -> tuple[float, float]:
        """Return the diffusivities of u and v, in length^2/time."""
        return p[self.diffusivity_names[0]], p[self.diffusivity_names[1]]

    def latex(self) -> tuple[str, str]:
        """Return the two equations in LaTeX, rendered from the code of the kinetics."""
        import sympy  # only documentation needs it

        reaction = on_symbols(self.kinetics, sympy.symbols(("u", "v", *self.kinetic_names)))
        sides = []
        for field, rate, diffusivity in zip("uv", reaction, self.diffusivity_names, strict=True):
            symbol = sympy.latex(sympy.Symbol(diffusivity))
            terms = sympy.latex(rate)
            joined = f"- {terms[1:].lstrip()}" if terms.startswith("-") else f"+ {terms}"
            sides.append(rf"\partial_t {field} = {symbol} \nabla^2 {field} {joined}")
        return sides[0], sides[1]
