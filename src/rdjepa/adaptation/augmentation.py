"""Images of a trajectory under the symmetries of the square, which are solutions of an isotropic equation too.

Reaction and diffusion of scalar fields know no direction, so a turned or mirrored trajectory is as good as the
recorded one, on a periodic domain and between walls of one kind on all sides. Data augmentation as usual, after Simard,
Steinkraus and Platt, Best practices for convolutional neural networks, ICDAR (2003). The paper has none.
"""

import torch
from torch import Tensor

from rdjepa.forecasters.domain import PLAIN, Domain


def images(fields: Tensor, domain: Domain = PLAIN) -> list[Tensor]:
    """Return the images of fields (..., H, W): eight of squares, the four without quarter turns of others.

    Of a square both the points and the cells are as many and as wide along rows as along columns. The fields themselves
    are the first.
    """
    square = fields.shape[-2] == fields.shape[-1] and domain.spacing == PLAIN.spacing
    turned = [torch.rot90(fields, turns, (-2, -1)) for turns in range(0, 4, 1 if square else 2)]
    return [image for each in turned for image in (each, each.flip(-1))]
