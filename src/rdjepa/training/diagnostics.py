"""Is a JEPA learning or collapsing? Latent skill, spread and rank on fixed batches that training never uses.

The loss alone cannot tell: it falls when targets collapse, and it may rise while they fill with content.
"""

import torch
from torch import Tensor

from rdjepa.models.jepa import JEPA
from rdjepa.training.losses import jepa_loss
from rdjepa.training.source import Batch


def rankme(features: Tensor) -> float:
    """Effective rank exp(entropy of the normalised singular values) of centred features (n, d)."""
    values = torch.linalg.svdvals(features - features.mean(0, keepdim=True))
    share = values / values.sum().clamp_min(1e-12)
    return float(torch.exp(-(share * share.clamp_min(1e-12).log()).sum()))


@torch.no_grad()
def diagnose(jepa: JEPA, batches: list[Batch]) -> dict[str, float]:
    """Measure the model on held-out batches.

    Returns:
        latent_loss: the pretraining loss of `batches`.
        mean_loss: loss of predicting, at each patch position, the mean target there; the first reference.
        persistence_loss: loss of predicting the newest context frame's own target; the second reference.
        target_std: standard deviation across samples of feature-normalised targets, averaged over positions.
        target_rank: centred RankMe across samples at one position, averaged over sixteen positions.
        target_cosine: mean cosine between the feature-normalised targets of different samples, same position.
    """
    predicted, wanted, current, position, grids = [], [], [], [], []
    for batch in batches:
        prediction = jepa(batch.context, batch.patches, batch.offsets, batch.mask)
        latent = jepa.targets(batch.futures)
        newest = jepa.targets(batch.context[:, -1])
        predicted.append(prediction.float())
        wanted.append(latent[batch.frame_of_query, batch.patches].float())
        current.append(newest.gather(1, batch.patches[..., None].expand(-1, -1, newest.shape[-1])).float())
        position.append(batch.patches)
        grids.append(newest.float())
    target, where = torch.cat(wanted), torch.cat(position)
    normal = torch.nn.functional.layer_norm(torch.cat(grids), (target.shape[-1],))  # (n, S, d)
    mean = normal.mean(0)
    some = torch.linspace(0, normal.shape[1] - 1, 16).long().tolist()
    unit = torch.nn.functional.normalize(normal[:, some], dim=-1)
    count = unit.shape[0]
    pairwise = (unit.sum(0).square().sum(-1) - count) / (count * (count - 1))
    return {
        "latent_loss": float(jepa_loss(torch.cat(predicted), target)),
        "mean_loss": float(jepa_loss(mean[where], target)),
        "persistence_loss": float(jepa_loss(torch.cat(current), target)),
        "target_std": float(normal.std(0).mean()),
        "target_rank": sum(rankme(normal[:, i]) for i in some) / len(some),
        "target_cosine": float(pairwise.mean()),
    }
