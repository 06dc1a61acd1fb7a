"""Signs of learning and of collapse: latent skill, spread and rank on fixed batches that training never uses.

The loss alone cannot tell them apart: it falls when targets collapse, and may rise while targets gain information.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from rdjepa.models.jepa import JEPA
from rdjepa.pretraining.dataset import Batch
from rdjepa.pretraining.loss import jepa_loss

POSITIONS = 16  # patches at which spread and rank are measured; of 16 x 16 those on the diagonal
LEAST_STD, LEAST_RANK, LARGEST_COSINE, LEAST_SKILL = 0.1, 3.0, 0.95, 0.0


def rankme(features: Tensor) -> float:
    """Return the effective rank, exp(entropy of the normalized singular values), of centered features (n, d).

    The singular values are the roots of the eigenvalues of the smaller Gram matrix, in float64. Source: Garrido et
    al., RankMe, ICML 2023, here of centered features.
    """
    centered = (features - features.mean(0, keepdim=True)).double()
    # The smaller of the two Gram matrices has the same nonzero eigenvalues and costs less.
    gram = centered @ centered.T if centered.shape[0] < centered.shape[1] else centered.T @ centered
    values = torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt()
    share = values / values.sum().clamp_min(1e-12)
    return float(torch.exp(-(share * share.clamp_min(1e-12).log()).sum()))


def normalized(latent: Tensor) -> Tensor:
    """Normalize latent vectors (..., d) over their features, in float32, as the loss does (S2.5)."""
    return F.layer_norm(latent.float(), latent.shape[-1:])


def positions(tokens: int, count: int = POSITIONS) -> Tensor:
    """Return the indices (count,) of patches, evenly spaced in the row-major order of `tokens`, from first to last."""
    return torch.linspace(0, tokens - 1, count).long()


def spread(features: Tensor, of: str = "target") -> dict[str, float]:
    """Measure how much normalized latent vectors (n, P, d) differ across n samples, position by position.

    Args:
        features: normalized latent vectors.
        of: what they are, as the names of the results begin.

    Returns:
        target_std: standard deviation across samples, averaged over positions and features.
        target_rank: centered RankMe across samples, averaged over positions; at most n - 1.
        target_cosine: mean cosine between different samples at the same position.
    """
    unit = F.normalize(features, dim=-1)
    count = features.shape[0]
    # |sum of unit vectors|^2 = n + sum of the cosines of all ordered pairs, without an n x n matrix.
    pairwise = (unit.sum(0).square().sum(-1) - count) / (count * (count - 1))
    return {
        f"{of}_std": float(features.std(0).mean()),
        f"{of}_rank": sum(map(rankme, features.unbind(1))) / features.shape[1],
        f"{of}_cosine": float(pairwise.mean()),
    }


@torch.no_grad()
def diagnose(jepa: JEPA, batches: list[Batch]) -> dict[str, float]:
    """Measure the model on held-out batches.

    Returns:
        latent_loss: the pretraining loss of `batches`.
        mean_loss: loss of predicting, at each patch position, the mean target there; the first reference.
        persistence_loss: loss of predicting the newest context frame's own target; the second reference.
        skill_mean, skill_persistence: 1 - latent_loss / reference; 1 is perfect, 0 no better than the reference.
        target_std, target_rank, target_cosine: as in `spread`, of the newest frames' targets.
    """
    predicted, wanted, current, position, grids = [], [], [], [], []
    for batch in batches:
        prediction = jepa.predict(batch.context, batch.patches, batch.offsets, batch.mask)
        latent = jepa.targets(batch.futures)
        newest = jepa.targets(batch.context[:, -1])
        predicted.append(prediction.float())
        wanted.append(latent[batch.frame_of_query, batch.patches].float())
        current.append(newest.gather(1, batch.patches[..., None].expand(-1, -1, newest.shape[-1])).float())
        position.append(batch.patches)
        grids.append(normalized(newest))
    target, grid = torch.cat(wanted), torch.cat(grids)  # (n, M, d), (n, S, d)
    loss = float(jepa_loss(torch.cat(predicted), target))
    mean = float(jepa_loss(grid.mean(0)[torch.cat(position)], target))
    persistence = float(jepa_loss(torch.cat(current), target))
    return {
        "latent_loss": loss,
        "mean_loss": mean,
        "persistence_loss": persistence,
        "skill_mean": 1 - loss / max(mean, 1e-12),
        "skill_persistence": 1 - loss / max(persistence, 1e-12),
        **spread(grid[:, positions(grid.shape[1]).to(grid.device)]),
    }


def signs_of_collapse(metrics: Mapping[str, float]) -> list[str]:
    """List what in the results of `diagnose` or `spread` points to collapse or to no learning; often nothing.

    The signs: standard deviation of the targets across samples below 0.1 (unrelated targets have 1, targets that know
    only their position 0), effective rank below 3, mean cosine between samples above 0.95, and latent skill against
    the mean target of 0 or less. All of them are normal in the first steps of a run. An objective without targets has
    the first three of the encoder's own latents.
    """
    signs = []
    for of in ("target", "latent"):
        deviation, rank, cosine = (metrics.get(f"{of}_{name}") for name in ("std", "rank", "cosine"))
        if deviation is not None and deviation < LEAST_STD:
            signs.append(f"{of}s hardly differ between samples (standard deviation {deviation:.3f})")
        if rank is not None and rank < LEAST_RANK:
            signs.append(f"{of}s span few directions (rank {rank:.1f})")
        if cosine is not None and cosine > LARGEST_COSINE:
            signs.append(f"{of}s of different samples point the same way (cosine {cosine:.3f})")
    if metrics.get("skill_mean", 1.0) <= LEAST_SKILL:
        signs.append(f"predictions are no better than the mean target (skill {metrics['skill_mean']:.2f})")
    return signs
