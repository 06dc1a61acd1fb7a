"""The symmetries of a square that an isotropic equation has: quarter turns and mirror images.

A reaction–diffusion equation without a preferred direction turns one solution into seven others, which a network may
learn from as well: data augmentation with the symmetries of a differential equation, after Brandstetter, Welling and
Worrall, Lie point symmetry data augmentation for neural PDE solvers, ICML 2022. Both borders that the package knows,
periodic ones and walls, allow all eight.
"""

from jaxtyping import Float
from torch import Tensor

SYMMETRIES = 8


def turned(fields: Float[Tensor, "... N N"], number: int) -> Float[Tensor, "... N N"]:
    """Return scalar fields on a square grid after one of the eight symmetries; 0 leaves them as they are.

    Args:
        fields: the last two axes are those of the grid.
        number: quarter turns in 0..3; 4 more for the mirror image across the diagonal before them.
    """
    mirrored = fields.mT if number >= SYMMETRIES // 2 else fields
    return mirrored.rot90(number % 4, (-2, -1))
