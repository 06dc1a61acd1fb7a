"""Images of a trajectory under the symmetries of the square, which are solutions of an isotropic equation too.

Reaction and diffusion of scalar fields know no direction, so a turned or mirrored trajectory is as good as the
recorded one, on a periodic domain and between walls of one kind on all sides. Data augmentation as usual, after Simard,
Steinkraus and Platt, Best practices for convolutional neural networks, ICDAR (2003). The paper has none.

Every image is one more copy of the windows. With few windows a network learns each of them by heart, and copies are
cheap; many are various without, and their copies would fill the memory: `number_of_images`.
"""

import torch
from torch import Tensor

from rdjepa.adaptation.retention import SEVERAL
from rdjepa.forecasters.domain import PLAIN, Domain

ALL = 8  # images of a square
MOST = 1_000  # windows, with those of the images; of nano's grid they take 0.4 GB


def images(fields: Tensor, domain: Domain = PLAIN) -> list[Tensor]:
    """Return the images of fields (..., H, W): eight of squares, the four without quarter turns of others.

    Of a square both the points and the cells are as many and as wide along rows as along columns. The fields themselves
    are the first.
    """
    square = fields.shape[-2] == fields.shape[-1] and domain.spacing == PLAIN.spacing
    turned = [torch.rot90(fields, turns, (-2, -1)) for turns in range(0, 4, 1 if square else 2)]
    return [image for each in turned for image in (each, each.flip(-1))]


def number_of_images(trajectories: int, windows: int) -> int:
    """Return how many images are learned of each trajectory, itself among them, where nothing else is said.

    Args:
        trajectories: how many there are.
        windows: of all of them.
    """
    return max(1, min(ALL, MOST // windows)) if trajectories < SEVERAL else 1
