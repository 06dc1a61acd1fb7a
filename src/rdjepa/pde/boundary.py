"""Boundary conditions of the square domain: periodic, or one of three homogeneous walls (S1.5)."""

import math
from dataclasses import dataclass
from typing import Literal

from rdjepa.errors import ArgumentError

Kind = Literal["periodic", "neumann", "robin", "dirichlet"]


@dataclass(frozen=True)
class Boundary:
    """The boundary condition of the diffusing components, the same on all four sides.

    Between walls the grid points are cell centers, so the wall lies half a spacing outside the last row, and a ghost
    cell holds a multiple of the interior cell next to it: second order in the spacing.

    Attributes:
        kind: "periodic"; "neumann", no flux; "robin", du/dn + kappa u = 0; "dirichlet", u = 0.
        kappa: exchange coefficient of a Robin wall, in 1/length; 0 for every other kind.
    """

    kind: Kind = "periodic"
    kappa: float = 0.0

    def __post_init__(self) -> None:
        """Check the kind, and that only a Robin wall has a kappa."""
        if self.kind not in ("periodic", "neumann", "robin", "dirichlet"):
            raise ArgumentError(
                f"expected a boundary periodic, neumann, robin or dirichlet, got {self.kind!r}; name one"
            )
        if not 0 <= self.kappa < math.inf or (self.kappa > 0) != (self.kind == "robin"):
            raise ArgumentError(
                "expected a finite kappa above 0 with a robin wall and 0 otherwise, "
                f"got {self.kappa!r} with {self.kind}"
            )

    @property
    def walls(self) -> bool:
        """Whether the domain is bounded by walls."""
        return self.kind != "periodic"

    def ghost_factor(self, spacing: float) -> float:
        """Return the ratio g of a ghost cell to the interior cell next to it, for a grid of that spacing.

        With u in the interior cell, du/dn = (g - 1) u / spacing and u at the wall = (g + 1) u / 2.

        Raises:
            ArgumentError: the boundary is periodic.
        """
        if self.kind == "neumann":
            return 1.0
        if self.kind == "dirichlet":
            return -1.0
        if self.kind == "robin":
            return (2.0 - self.kappa * spacing) / (2.0 + self.kappa * spacing)
        raise ArgumentError("expected a wall, got a periodic boundary; it has no ghost factor")

    def __str__(self) -> str:
        """Return the kind, with kappa where there is one."""
        return f"{self.kind}, kappa = {self.kappa:g}" if self.kappa else self.kind


PERIODIC = Boundary()
