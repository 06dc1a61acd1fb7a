"""The lead-time-conditioned latent predictor with diffusion- and reaction-inspired branches (S2.4)."""

from collections.abc import Collection

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from rdjepa.models.attention import Attention, mlp
from rdjepa.models.borders import WALLS, ZEROS, beyond
from rdjepa.models.embeddings import MAX_OFFSET, LeadTimeEmbedding, spatial_embedding
from rdjepa.models.encoder import to_grid, to_tokens

BRANCHES = ("diffusion", "reaction")
LAPLACIAN = "laplacian"  # what the diffusion branch sees beside the context token itself


def latent_laplacian(latent: Float[Tensor, "B S d"], borders: str = ZEROS) -> Float[Tensor, "B S d"]:
    """Compute the mean difference to the four neighbors on the token grid, (B, S, d) to (B, S, d).

    Neighbors are periodic (S2.4); between walls, a token beyond the border is the one before it.
    """
    side = round(latent.shape[1] ** 0.5)
    if borders == WALLS:
        wide = beyond(to_grid(latent), WALLS)
        around = wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1] + wide[..., 1:-1, :-2] + wide[..., 1:-1, 2:]
        return to_tokens(around) / 4 - latent
    grid = latent.unflatten(1, (side, side))
    neighbors = grid.roll(1, 1) + grid.roll(-1, 1) + grid.roll(1, 2) + grid.roll(-1, 2)
    return (neighbors / 4 - grid).flatten(1, 2)


class PredictorBlock(nn.Module):
    """Query self-attention, context cross-attention, diffusion, reaction and output updates.

    Queries are (B, G, M, d): the M queries of one group attend to each other; all groups share one context. Queries
    that are still the same for all samples, as a full grid's are in the first block, may be (1, G, M, d). The two gates
    are unconstrained scalars that start at 0.25. Either branch may be left out, with its gate.
    """

    def __init__(self, width: int, heads: int, without: Collection[str] = ()) -> None:
        super().__init__()
        self.norm_self = nn.LayerNorm(width)
        self.self_attention = Attention(width, heads)
        self.norm_cross = nn.LayerNorm(width)
        self.norm_context = nn.LayerNorm(width)
        self.cross_attention = Attention(width, heads)
        self.branches = tuple(name for name in BRANCHES if name not in without)
        if "diffusion" in self.branches:
            self.diffusion = nn.Sequential(nn.LayerNorm(3 * width + 1), *mlp(3 * width + 1, 2 * width, width))
            self.gate_diffusion = nn.Parameter(torch.tensor(0.25))
        if "reaction" in self.branches:
            self.norm_reaction = nn.LayerNorm(width)
            self.reaction = nn.Sequential(nn.LayerNorm(2 * width), *mlp(2 * width, 4 * width, width))
            self.gate_reaction = nn.Parameter(torch.tensor(0.25))
        self.output = nn.Sequential(nn.LayerNorm(width), *mlp(width, 4 * width, width))

    def forward(
        self,
        query: Float[Tensor, "#B G M d"],
        context: Float[Tensor, "B S d"],
        local: Float[Tensor, "B G M 3*d+1"],
        lead: Float[Tensor, "#B G #M d"],
    ) -> Float[Tensor, "B G M d"]:
        """Update queries.

        Args:
            query: (B, G, M, d).
            context: (B, S, d) context tokens.
            local: (B, G, M, 3 d + 1) context token, its Laplacian, lead-time embedding and tau at each query.
            lead: (B, G, M, d) lead-time embedding of each query.
        """
        # Self-attention stays within a group, so groups join the batch; the context is shared by all groups, so in
        # cross-attention they join the queries.
        normed = self.norm_self(query).flatten(0, 1)
        query = query + self.self_attention(normed, normed).view(query.shape)
        attended = self.cross_attention(self.norm_cross(query).flatten(1, 2), self.norm_context(context))
        query = query + attended.unflatten(1, query.shape[1:3])
        if "diffusion" in self.branches:
            query = query + self.gate_diffusion * self.diffusion(local)
        if "reaction" in self.branches:
            reacted = self.reaction(torch.cat([self.norm_reaction(query), lead.expand(query.shape)], dim=-1))
            query = query + self.gate_reaction * reacted
        return query + self.output(query)


class Predictor(nn.Module):
    """P: context tokens and requested (patch, offset) pairs to one predicted latent vector per pair.

    Args:
        width: latent width d.
        heads: attention heads.
        blocks: number of predictor blocks.
        side: tokens per side.
        without: what is left out, among `BRANCHES` and `LAPLACIAN`; without the latter its place holds zeros.
        borders: whether tokens at the border have neighbors at the opposite one (`rdjepa.models.borders`).
    """

    space: Tensor

    def __init__(
        self,
        width: int,
        heads: int,
        blocks: int,
        side: int = 16,
        without: Collection[str] = (),
        borders: str = ZEROS,
    ) -> None:
        super().__init__()
        self.borders = borders
        self.branches = tuple(name for name in BRANCHES if name not in without)
        self.differs = LAPLACIAN not in without
        self.lead_time = LeadTimeEmbedding(width)
        self.grid = nn.Parameter(torch.randn(side * side, width) * 0.02)
        self.embedding = nn.Parameter(torch.randn(width) * 0.02)
        self.norm_input = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(PredictorBlock(width, heads, without) for _ in range(blocks))
        self.norm_output = nn.LayerNorm(width)
        self.register_buffer("space", spatial_embedding(side, width), persistent=False)

    def forward(
        self, context: Float[Tensor, "B S d"], patches: Int[Tensor, " B *M"], offsets: Int[Tensor, " B *M"]
    ) -> Float[Tensor, "B *M d"]:
        """Predict one vector per query.

        Args:
            context: (B, S, d) context tokens.
            patches: (B, M) patch indices, 0..S-1; or (B, G, M) for groups that do not see each other.
            offsets: integer offsets of the same shape, 0..8.

        Returns:
            predicted latent vectors, of shape patches.shape + (d,).
        """
        grouped = patches.ndim == 3
        if not grouped:
            patches, offsets = patches[:, None], offsets[:, None]
        around = self._around(context)
        index = patches.flatten(1)[..., None].expand(-1, -1, around.shape[-1])
        here = around.gather(1, index).unflatten(1, patches.shape[1:])
        predicted = self._predict(context, here, F.embedding(patches, self.grid + self.space), offsets)
        return predicted if grouped else predicted[:, 0]

    def full_grid(self, context: Float[Tensor, "B S d"], horizons: int) -> Float[Tensor, "B {horizons} S d"]:
        """Predict every patch at offsets 1..horizons, one group of queries each: (B, S, d) to (B, horizons, S, d)."""
        offsets = torch.arange(1, horizons + 1, device=context.device)[None, :, None]
        here = self._around(context)[:, None].expand(-1, horizons, -1, -1)
        return self._predict(context, here, self.grid + self.space, offsets)

    def _predict(self, context: Tensor, here: Tensor, place: Tensor, offsets: Tensor) -> Tensor:
        """Predict (B, G, M, d) from what belongs to the queries.

        Args:
            context: (B, S, d) context tokens.
            here: (B, G, M, 2 d) context token of each query, and its Laplacian.
            place: (B, G, M, d) embedding of its patch.
            offsets: (B, G, M) offset; an axis of `place` or `offsets` along which nothing changes may have length 1.
        """
        lead, tau = self.lead_time(offsets), (offsets / MAX_OFFSET)[..., None].to(here.dtype)
        shape = here.shape[:-1]
        local = torch.cat([here, lead.to(here.dtype).expand(*shape, -1), tau.expand(*shape, -1)], dim=-1)
        query = self.norm_input(place + lead + self.embedding)
        for block in self.blocks:
            query = block(query, context, local, lead)
        return self.norm_output(query)

    def _around(self, context: Tensor) -> Tensor:
        """Return every context token and its Laplacian, (B, S, 2 d)."""
        laplacian = latent_laplacian(context, self.borders) if self.differs else torch.zeros_like(context)
        return torch.cat([context, laplacian], dim=-1)
