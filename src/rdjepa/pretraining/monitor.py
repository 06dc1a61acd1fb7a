"""Diagnostics during pretraining: spread of its own latents, gates, gradient norms, distance of the target encoder.

Nothing here changes the state of the run, so a run ends with the same bits whether it is measured or not.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rdjepa.models.jepa import JEPA
from rdjepa.models.predictor import Predictor
from rdjepa.pretraining.diagnostics import normalized, positions, spread

QUEUE = 256  # samples; the rank across n samples is at most n - 1, too low to judge for one batch of four
QUEUE_POSITIONS = 8


class LatentQueue:
    """Latents of the latest training samples at a few patches, one grid of each sample.

    It is not part of the saved state: after a resume it fills again.

    Args:
        size: samples kept.
        of: what they are, "target" or "latent".
    """

    def __init__(self, size: int = QUEUE, of: str = "target") -> None:
        self.of = of
        self.kept: deque[tuple[str, Tensor]] = deque(maxlen=size)

    @torch.no_grad()
    def push(self, latent: Tensor, systems: Sequence[str]) -> None:
        """Add samples, given a latent grid (B, S, d) and the system of each; drop the oldest samples."""
        where = positions(latent.shape[1], QUEUE_POSITIONS).to(latent.device)
        self.kept.extend(zip(systems, normalized(latent[:, where]), strict=True))  # (P, d) each

    def measure(self) -> dict:
        """Return `spread` over all samples, their number, and under "systems" that of each system with two or more."""
        by_system = defaultdict(list)
        for system, features in self.kept:
            by_system[system].append(features)
        if len(self.kept) < 2:
            return {"samples": len(self.kept), "systems": {}}
        systems = {
            name: spread(torch.stack(each), self.of) for name, each in sorted(by_system.items()) if len(each) > 1
        }
        pooled = spread(torch.stack([features for _, features in self.kept]), self.of)
        return {"samples": len(self.kept), **pooled, "systems": systems}


def gates(predictor: Predictor) -> dict[str, list[float]]:
    """Return the diffusion and reaction gates of every predictor block that has them (S2.4); both start at 0.25."""
    return {
        name: torch.stack([getattr(block, f"gate_{name}").detach() for block in predictor.blocks]).tolist()
        for name in predictor.branches
    }


@torch.no_grad()
def averaging_distance(jepa: JEPA) -> float:
    """Return ||theta - xi|| / ||theta|| over all parameters of the online (theta) and the target encoder (xi)."""
    online: list[Tensor] = list(jepa.encoder.parameters())
    target: list[Tensor] = list(jepa.target_encoder.parameters())
    difference = torch.stack(torch._foreach_norm(torch._foreach_sub(online, target)))
    return float(difference.norm() / torch.stack(torch._foreach_norm(online)).norm())


def gradient_norms(networks: nn.Module, total: float, clip: float) -> dict[str, float]:
    """Return the norm of the gradient of every module, as it was before clipping.

    Args:
        networks: those that are trained, after a backward pass whose gradients were clipped.
        total: global norm before clipping.
        clip: the norm that it was clipped to.
    """
    squares: dict[str, list[Tensor]] = defaultdict(list)
    for name, parameter in networks.named_parameters():
        if parameter.grad is not None:
            squares[".".join(name.split(".")[:2])].append(parameter.grad.detach().float().square().sum())
    factor = max(1.0, total / clip)  # undoes the clipping, which scaled all gradients alike
    norms = torch.stack([torch.stack(each).sum() for each in squares.values()]).sqrt() * factor
    return dict(zip(squares, norms.tolist(), strict=True))


def short_line(metrics: Mapping[str, Any]) -> str:
    """Return the latest diagnostics of a pretraining as one short line: those that have been measured so far."""
    texts = (
        ("loss", "loss {:.4f}"),
        ("latent_loss", "held out {:.4f}"),
        ("held_out_loss", "held out {:.4f}"),
        ("skill_mean", "skill {:.2f}"),
        ("skill_persistence", "{:.2f}"),
        ("target_std", "std {:.2f}"),
        ("target_rank", "rank {:.0f}"),
        ("target_cosine", "cos {:.2f}"),
        ("latent_std", "std {:.2f}"),
        ("latent_rank", "rank {:.0f}"),
        ("latent_cosine", "cos {:.2f}"),
        ("gradient_norm", "grad {:.2f}"),
        ("steps_per_second", "{:.2f}/s"),
    )
    found = [text.format(metrics[name]) for name, text in texts if name in metrics]
    return " ".join([*(f"WARNING {sign};" for sign in metrics.get("warnings", [])), *found])
