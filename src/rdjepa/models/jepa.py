"""The architecture of pretraining: online encoder, predictor and EMA target encoder (S2.1, S2.3)."""

import copy

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from rdjepa.models.encoder import Encoder
from rdjepa.models.predictor import Predictor


class JEPA(nn.Module):
    """The trainable pair (encoder, predictor), and a target encoder with a moving average of the encoder's weights.

    The target encoder starts as a copy, never requires gradients, and is moved only by `update_target`.
    """

    def __init__(self, encoder: Encoder, predictor: Predictor) -> None:
        super().__init__()
        self.encoder = encoder
        self.predictor = predictor
        self.target_encoder = copy.deepcopy(encoder).requires_grad_(False)

    @torch.no_grad()
    def targets(self, frames: Float[Tensor, "n C H W"]) -> Float[Tensor, "n S d"]:
        """Return latent tokens (n, S, d) of complete single frames (n, C, H, W), each at temporal index 0."""
        return self.target_encoder(frames[:, None])

    def predict(
        self,
        context: Float[Tensor, "B T C H W"],
        patches: Int[Tensor, " B *M"],
        offsets: Int[Tensor, " B *M"],
        mask: Bool[Tensor, "B T S"] | None = None,
    ) -> Float[Tensor, "B *M d"]:
        """Predict the target vectors (B, M, d) of queries (B, M), given context frames (B, T, C, H, W)."""
        return self.predictor(self.encoder(context, mask), patches, offsets)

    @torch.no_grad()
    def update_target(self, momentum: float) -> None:
        """Set xi <- m xi + (1 - m) theta, with the online weights theta after the optimizer's step."""
        # Parameters alone: every buffer of the encoder is a constant.
        target: list[Tensor] = list(self.target_encoder.parameters())
        online: list[Tensor] = list(self.encoder.parameters())
        torch._foreach_lerp_(target, online, 1.0 - momentum)
