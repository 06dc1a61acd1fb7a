"""Images of fields under the symmetries of the square, which an isotropic equation shares, and forecasts that do too.

Reaction and diffusion of scalar fields know no direction, so a turned or mirrored trajectory is as good as the
recorded one, on a periodic domain and between walls of one kind on all sides. A network may learn the images of its
trajectories (`images`): data augmentation as usual, after Simard, Steinkraus and Platt, Best practices for
convolutional neural networks, ICDAR (2003). Or its forecasts of all images of a context are turned back and averaged
(`Symmetric`):

    forecast(x) = mean over g of g^-1 network(g x)

What is forecast then turns with the context, and no error is larger in the mean square, wherever all images of a
context are equally likely (Elesedy and Zaidi, Provably strict generalisation benefit for equivariant models, ICML 2021,
https://proceedings.mlr.press/v139/elesedy21a.html). The paper has neither.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from rdjepa.forecasters.around import Around
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.domain import PLAIN, Domain


def images(fields: Tensor, domain: Domain = PLAIN) -> list[Tensor]:
    """Return the images of fields (..., H, W): eight of squares, the four without quarter turns of others.

    Of a square both the points and the cells are as many and as wide along rows as along columns. The fields themselves
    are the first.
    """
    square = fields.shape[-2] == fields.shape[-1] and domain.spacing == PLAIN.spacing
    turned = [torch.rot90(fields, turns, (-2, -1)) for turns in range(0, 4, 1 if square else 2)]
    return [image for each in turned for image in (each, each.flip(-1))]


def upright(images: Sequence[Tensor]) -> list[Tensor]:
    """Turn back what was made from each image, all of them and in their order: the inverse of `images`."""
    quarter = 8 // len(images)  # turns between an image and the next but one
    back = [image.flip(-1) if place % 2 else image for place, image in enumerate(images)]
    return [torch.rot90(image, -quarter * (place // 2), (-2, -1)) for place, image in enumerate(back)]


class Symmetric(Around):
    """The mean of a network's forecasts of all images of a context, each turned back.

    Args:
        network: any forecaster; it is trained as it would be alone.
        domain: whether cells are squares.
    """

    def __init__(self, network: ForecastModel, domain: Domain = PLAIN) -> None:
        super().__init__(network)
        self.domain = domain

    def features(self, context: Float[Tensor, "B T C H W"]) -> tuple[Tensor, ...]:
        """Return what the network returns for the images, (B, n, ...)."""
        made = (self.network.features(image) for image in images(context, self.domain))
        return tuple(torch.stack(part, dim=1) for part in zip(*made, strict=True))

    def predict(self, *features: Tensor) -> Tensor:
        """Forecast (B, 5, C, H, W)."""
        made = [self.network.predict(*parts) for parts in zip(*(part.unbind(1) for part in features), strict=True)]
        return torch.stack(upright(made)).mean(dim=0)

    def latent_summary(self, *features: Tensor) -> Tensor | None:
        """Return the network's description of the context as it is."""
        return self.network.latent_summary(*(part[:, 0] for part in features))

    def description(self, context: Tensor) -> Tensor | None:
        """Return the network's description of the context as it is."""
        return self.network.description(context)
