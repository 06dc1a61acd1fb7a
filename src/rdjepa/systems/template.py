"""The file that a user's own equation begins with: it runs as it is, and its comments say what to change."""

from rdjepa.errors import ArgumentError
from rdjepa.pde.contract import NAME

TEMPLATE = '''"""{name}: an equation of two fields u and v. Check it with: rdjepa check-system {file}"""

import numpy as np

from rdjepa.pde.random_fields import smooth_noise
from rdjepa.pde.sampling import Box
from rdjepa.pde.screening import Finite, MinFinalContrast
from rdjepa.pde.system import Coefficient, InitialCondition, Numerics, Regime, System


# The rates of u and v without diffusion. Arithmetic and functions of NumPy, no branch: arrays, compiled code and the
# rendered equation all use it. Every further argument is the name of a coefficient below.
def kinetics(u, v, saturation, conversion, mortality):
    """Return the rates of a prey u and of a predator v."""
    eaten = u * v / (u + saturation)
    return u * (1 - u) - eaten, conversion * eaten - mortality * v


# A random state (2, H, W) at t = 0, from the grid, the drawn coefficients p["..."], and the generator rng alone.
def patches(grid, p, rng):
    """Return smooth random densities, all positive."""
    return np.stack([0.4 * np.exp(0.5 * smooth_noise(grid, rng, 6)), 0.3 * np.exp(0.5 * smooth_noise(grid, rng, 6))])


SYSTEM = System(
    name="{name}",  # the name of its folder in a data set
    title="{title}",
    reference="none yet",
    # Everything that is drawn, with its meaning and unit.
    coefficients=(
        Coefficient("D", "diffusivity of both", "length^2/time"),
        Coefficient("saturation", "prey at which a predator eats half as fast as it can"),
        Coefficient("conversion", "predators made from what is eaten", "1/time"),
        Coefficient("mortality", "loss of predators", "1/time"),
    ),
    kinetics=kinetics,
    diffusivity_names=("D", "D"),  # of u and of v
    # The usual range (low, high) of every coefficient. Others may follow as "coeff-ood" and "ic-ood".
    regimes={{
        "id": Regime(
            (Box({{"D": (0.8, 1.2), "saturation": (0.3, 0.4), "conversion": (1.9, 2.1), "mortality": (0.55, 0.65)}}),),
            (InitialCondition("patches", patches),),
        ),
    }},
    # Side of the square, largest time step, times of the first and the last of 40 saved frames. Further settings, such
    # as size=128, stored=128, laplacian=2 and boundary, are those of rdjepa.pde.system.Numerics.
    numerics=Numerics(length=200.0, dt=0.1, first=50.0, last=69.5, method="rk4"),
    # Draws that are thrown away: too large, or without a pattern at the end.
    screens=(Finite(10.0), MinFinalContrast(0.01)),
)
'''


def template(name: str, file: str) -> str:
    """Return the Python source of a system of that name.

    Args:
        name: of the system: letters, digits, - and _.
        file: the name of the file that it goes into.

    Raises:
        ArgumentError: another name.
    """
    if not NAME.fullmatch(name):
        raise ArgumentError(f"expected a name of letters, digits, - and _, got {name!r}; choose another")
    return TEMPLATE.format(name=name, file=file, title=name.replace("-", " ").replace("_", " ").capitalize())
