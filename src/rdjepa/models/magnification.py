"""Motion magnified: what slow fields change by is enlarged about the newest frame, and their forecast reduced again.

    frame'   = newest + m (frame - newest)
    forecast = newest + (network(frames') - newest) / m,    m = max(1, motion / r)

r is the root mean square difference between the newest frame and the oldest, of all components together, in
standardized units. A network paints every field anew, with an error that is a share of the field. Where fields change
by little from frame to frame that error is larger than the change; of magnified frames it is a share of the change. To
first order in the frame interval magnified frames are those of the same system seen m times less often. Nothing is
learned, and m is 1 for whatever moves by `motion` or more.

Differences of video frames are magnified like this to make motion visible (Wu et al., Eulerian video magnification, ACM
Transactions on Graphics 31, 2012). Not part of the paper.
"""

import torch
from jaxtyping import Float
from torch import Tensor

SMALLEST = 1e-4  # change that is told from rounding; a field at rest is magnified no further


def magnification(
    context: Float[Tensor, "B T C H W"], motion: float | Float[Tensor, " B"]
) -> Float[Tensor, "B 1 1 1 1"]:
    """Return the factor m of every context (B, T, C, H, W), at least 1, as (B, 1, 1, 1, 1).

    Args:
        context: standardized frames, the newest last.
        motion: what slower ones are magnified to, for all or for each; with 0 every m is 1.
    """
    moved = (context[:, -1] - context[:, 0]).square().mean(dim=(1, 2, 3)).sqrt()
    return (motion / moved.clamp_min(SMALLEST)).clamp_min(1.0)[:, None, None, None, None]


def about(
    newest: Float[Tensor, "B 1 C H W"], frames: Float[Tensor, "B N C H W"], factor: Float[Tensor, "B 1 1 1 1"]
) -> Float[Tensor, "B N C H W"]:
    """Enlarge the differences of frames (B, N, C, H, W) from the newest by a factor; with 1 frames are not changed."""
    return torch.lerp(newest, frames, factor)
