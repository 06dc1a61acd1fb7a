"""RD-JEPA as one object, its configuration, and the presets paper, small and nano."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from jaxtyping import Float
from torch import Tensor, nn

from rdjepa.checks import Number, Seed, Size, among, check, checked, of_class
from rdjepa.errors import ArgumentError
from rdjepa.models.borders import BORDERS, ZEROS
from rdjepa.models.decoder import GROUPS, Decoder
from rdjepa.models.device import in_float32
from rdjepa.models.embeddings import MAX_OFFSET
from rdjepa.models.encoder import Encoder
from rdjepa.models.predictor import BRANCHES, LAPLACIAN, Predictor
from rdjepa.models.seeds import seeded

# To be raised when the same weights no longer give the same function. 2: spectral layers see both diagonals, and the
# decoder's levels follow from the patch.
REVISION = 2
USUAL = {"without": [], "borders": ZEROS, "decoder_groups": GROUPS}  # not written where they are so


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the three networks; the defaults are the paper's (S2.1 to S2.6).

    Attributes:
        width: latent width d of encoder and predictor, a multiple of four and of the heads.
        heads: attention heads; heads narrower than 32 waste time on CPUs.
        depths: operator blocks in the encoder's five stages.
        modes: Fourier modes kept per direction.
        temporal_blocks: cross-attention blocks of the temporal aggregation.
        predictor_blocks: blocks of the latent predictor.
        decoder_width: decoder features at full resolution, a multiple of its groups.
        decoder_groups: groups of the decoder's group normalizations; 0 leaves these out. Their statistics are those of
            the whole field, so a forecast here depends on how much happens elsewhere, and narrow groups lose level and
            contrast.
        grid: points per side of the fields, a multiple of four patches.
        patch: points per side of a patch, a power of two from 2 on.
        components: field components C.
        without: what the predictor lacks, among its branches "diffusion" and "reaction", and the "laplacian" that the
            first of them sees; nothing in the paper.
        borders: what decoder and predictor see beyond the borders of the fields, one of "zeros", "periodic" and "walls"
            (`rdjepa.models.borders`). The encoder, which is pretrained, pads with zeros in all three.
    """

    width: Size = 512
    heads: Size = 8
    depths: tuple[Size, Size, Size, Size, Size] = (2, 3, 6, 3, 2)
    modes: Size = 8
    temporal_blocks: Size = 3
    predictor_blocks: Size = 8
    decoder_width: Size = 96
    decoder_groups: Number = GROUPS
    grid: Size = 128
    patch: Size = 8
    components: Size = 2
    without: tuple[str, ...] = ()
    borders: str = ZEROS

    def __post_init__(self) -> None:
        """Check the sizes; a grid is a whole number of patches, that of the coarsest stage as well."""
        check(self)
        for part in self.without:
            among(part, (*BRANCHES, LAPLACIAN), "parts of the predictor")
        among(self.borders, BORDERS, "borders")
        if self.decoder_groups and self.decoder_width % self.decoder_groups:
            raise ArgumentError(
                f"expected a decoder width that is a multiple of its groups, got {self.decoder_width} features and "
                f"{self.decoder_groups} groups; change one of them"
            )
        if self.width % self.heads:
            raise ArgumentError(
                f"expected a width that is a multiple of the heads, got {self.width} and {self.heads} heads; "
                "change one of them"
            )
        if self.patch < 2 or self.patch & (self.patch - 1):
            raise ArgumentError(f"expected a patch of 2, 4, 8, ... points per side, got {self.patch}; name one of them")
        if self.grid % self.patch:
            raise ArgumentError(f"expected a grid of whole patches, got {self.grid} points and patches of {self.patch}")
        if self.side % 4:
            raise ArgumentError(
                f"expected a multiple of four patches per side, which the encoder halves twice, got {self.side} of "
                f"{self.patch} points in {self.grid}; change one of the two"
            )
        if self.width % 4:
            raise ArgumentError(
                "expected a width that is a multiple of four, of which sines and cosines of row and column take a "
                f"quarter each, got {self.width}; change it"
            )

    @property
    def side(self) -> int:
        """Tokens per side of the latent grid."""
        return self.grid // self.patch

    def to_dict(self) -> dict:
        """Return the sizes and the revision of the architecture as JSON values.

        What is left out, and other borders and groups than the paper's, are written only where they are, so a usual
        model has the same values as before there was a choice.
        """
        values = asdict(self) | {"depths": list(self.depths), "without": list(self.without), "revision": REVISION}
        return {name: value for name, value in values.items() if name not in USUAL or value != USUAL[name]}

    @classmethod
    def from_dict(cls, values: Mapping) -> "ModelConfig":
        """Restore a configuration from what `to_dict` returned.

        Raises:
            ArgumentError: unknown or missing keys, or sizes of another revision of the architecture.
        """
        values = USUAL | dict(values)
        revision = values.pop("revision", 1)
        if revision != REVISION:
            reader = "use rdjepa 0.1.0 for it" if revision == 1 else "use the version of rdjepa that wrote it"
            raise ArgumentError(
                f"expected a model of revision {REVISION}, got one of revision {revision}, whose weights give another "
                f"function here; {reader}, or pretrain and adapt again"
            )
        expected = set(cls.__dataclass_fields__)
        if set(values) != expected:
            raise ArgumentError(
                f"expected the model configuration keys {sorted(expected)}, got {sorted(values)}; "
                "the checkpoint comes from another version of the package"
            )
        without = checked(values["without"], tuple[str, ...], "without")
        depths = checked(values["depths"], tuple[Size, Size, Size, Size, Size], "depths")
        return cls(**{**values, "depths": depths, "without": without})


def unlike(one: Mapping, other: Mapping) -> list[str]:
    """Return the sorted names of what differs between two configurations, as `ModelConfig.to_dict` returns them."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


PRESETS = {
    "paper": ModelConfig(),
    # A patch of the paper has 128 values, its token 512 numbers and the decoder's coarsest level 384. The smaller
    # presets keep three or four numbers and at least two features for each value of a patch. The paper's groups have 12
    # features at full resolution, those of small 16. nano has none: lower by leaving sources out (results/left-out.md).
    "small": ModelConfig(384, 6, (1, 2, 3, 2, 1), predictor_blocks=6, decoder_width=64, decoder_groups=4),
    "nano": ModelConfig(
        128,
        4,
        (1, 1, 2, 1, 1),
        temporal_blocks=2,
        predictor_blocks=3,
        decoder_width=16,
        decoder_groups=0,
        grid=64,
        patch=4,
    ),
}


class RDJEPA(nn.Module):
    """Encoder, predictor and decoder of one configuration, with fresh weights.

    Attributes:
        encoder: `Encoder`, frames to latent grid.
        predictor: `Predictor`, latent grid and queries to predicted latent vectors.
        decoder: `Decoder`, predicted latent grid and newest frame to fields.
        config: the sizes.
        name: the preset that its sizes are of, whatever its checkpoint is called; "custom" for sizes of one's own.
        fingerprint: SHA-256 of the pretrained weights, or "" for fresh ones.
        pretrained: which of the three networks have pretrained weights.
    """

    def __init__(self, config: ModelConfig, name: str = "custom") -> None:
        super().__init__()
        self.config = config
        self.name = name
        self.fingerprint = ""
        self.pretrained: tuple[str, ...] = ()
        # Modules draw their weights as they are constructed: another order gives a seed other weights.
        self.encoder = Encoder(
            config.width,
            config.heads,
            config.depths,
            config.modes,
            config.temporal_blocks,
            config.side,
            config.patch,
            config.components,
        )
        self.predictor = Predictor(
            config.width, config.heads, config.predictor_blocks, config.side, config.without, config.borders
        )
        self.decoder = decoder_of(config)

    @property
    def preset(self) -> str:
        """Name of its sizes, as forecasters have it."""
        return self.name

    def forward(self, context: Float[Tensor, "B T C H W"], horizons: int = 5) -> Float[Tensor, "B N C H W"]:
        """Forecast fields at the horizons 1 to N from four frames, both standardized: decoder, predictor, encoder.

        A decoder that was not pretrained (`pretrained` names those that were) has random weights, and so has its
        forecast.

        Raises:
            ArgumentError: another number of frames or components, another grid, or lead times beyond those of
                pretraining, 8.
        """
        if not 1 <= horizons <= MAX_OFFSET:
            raise ArgumentError(f"expected 1 to {MAX_OFFSET} horizons, got {horizons}; roll out to forecast further")
        wanted = (4, self.config.components, self.config.grid, self.config.grid)
        if tuple(context.shape[1:]) != wanted:
            raise ArgumentError(
                f"expected a context (B, {', '.join(map(str, wanted))}), channels first, got {tuple(context.shape)}; "
                "bring the fields to it (rdjepa.data.fields.channels_first)"
            )
        return self.decoder(self.predictor.full_grid(self.encoder(context), horizons), context[:, -1])


def decoder_of(config: ModelConfig) -> Decoder:
    """Return a decoder with fresh weights."""
    return Decoder(
        config.width, config.decoder_width, config.components, config.decoder_groups, config.patch, config.borders
    )


def parameter_count(module: nn.Module) -> int:
    """Count the real parameters, trainable or not: complex ones, and those kept as (real, imaginary) pairs, are two."""
    return count_of(module.parameters())


def count_of(parameters: Iterable[Tensor]) -> int:
    """Count the real numbers of some parameters."""
    return sum(p.numel() * (1 + p.is_complex()) for p in parameters)


def sizes_of(preset: str | ModelConfig) -> tuple[ModelConfig, str]:
    """Return the sizes of a preset and its name, which is "custom" of sizes of one's own.

    Raises:
        ArgumentError: unknown preset.
    """
    if isinstance(preset, ModelConfig):
        return preset, "custom"
    return PRESETS[among(preset, PRESETS, "a preset")], preset


@in_float32
def build(preset: str | ModelConfig, seed: int | None = None) -> RDJEPA:
    """Build RD-JEPA with fresh weights.

    Args:
        preset: "paper", "small", "nano", or a `ModelConfig`.
        seed: seeds torch's initialization without touching the global random state; None uses the global state.

    Raises:
        ArgumentError: unknown preset.
    """
    config, name = sizes_of(of_class(preset, str | ModelConfig, "a preset"))
    if seed is None:
        return RDJEPA(config, name)
    with seeded(checked(seed, Seed, "seed")):
        return RDJEPA(config, name)


def with_fresh_decoder(model: RDJEPA, seed: int, borders: str | None = None) -> RDJEPA:
    """Copy a model and give the copy a decoder with the fresh weights of a seed, as adaptation begins (S2.6).

    Args:
        model: not changed.
        seed: of the decoder's weights.
        borders: those of the copy, one of `BORDERS`; those of the model when None. They have no weights.

    Raises:
        ArgumentError: unknown borders.
    """
    fresh = copy.deepcopy(model)
    fresh.config = replace(model.config, borders=model.config.borders if borders is None else borders)
    fresh.predictor.borders = fresh.config.borders
    with seeded(seed):
        fresh.decoder = decoder_of(fresh.config)
    fresh.pretrained = tuple(part for part in fresh.pretrained if part != "decoder")
    return fresh
