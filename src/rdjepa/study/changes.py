"""The changes that the ablation compares: named variations of how RD-JEPA is pretrained and adapted.

Nothing here imports a network, so that reports can ask for names and titles without PyTorch. What a change does to a
pretraining is in `rdjepa.study.pretrainings`, what it does to an adaptation in `rdjepa.study.contenders`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rdjepa.errors import StudyError
from rdjepa.forecasters import registry as forecasters
from rdjepa.pretraining.objectives import registry as objectives
from rdjepa.registry import Registry
from rdjepa.systems import FAMILIES, SOURCES

FORECASTER = "rd-jepa"  # what a change is a variation of
REFERENCE = "reference"
UNCHANGED = "unchanged"  # the group of forecasters that are no change
# In this order a study is run, so that one that is stopped early leaves whole tables.
GROUPS: dict[str, str] = {
    UNCHANGED: "Controls",
    "objectives": "What the encoder learns from",
    "systems": "Which equations it sees",
    "seeds": "Seeds of the pretraining",
    "parts": "Parts left out",
    "equations": "How many equations and trajectories",
    "adaptation": "How it is adapted",
}


@dataclass(frozen=True, eq=False)
class Change:
    """A named variation of the pretraining, of the adaptation, or of both; the defaults are those of the reference.

    Attributes:
        name: its name in cells, rows and commands, in the place of a forecaster's.
        title: its name in tables and legends.
        group: a key of `GROUPS`, the place of its cells in the order of a study and of its rows in a table.
        objective: what the encoder learns from.
        options: the objective's own settings by name; the others have their defaults.
        without: parts of the method left out of the pretraining, as `rdjepa.pretraining.parts` names them.
        seed: added to the pretraining seed of the preset.
        sources: number of source equations, the first ones; all when None.
        families: families of random equations that are seen beside the sources, each in as many windows as all sources.
        share: of the profile's number of trajectories of each source.
        rates: forecaster whose learning rates the adaptation has, "rd-jepa" or its control "scratch".
        encoder: share of the predictor's rate with which the encoder is tuned; 0 freezes it.
        predictor: factor of the predictor's learning rate; 0 freezes it.
        decoder: factor of the decoder's learning rate.
        fresh_predictor: whether the predictor starts from random weights, as where none was pretrained.
        keep_decoder: whether the adaptation goes on with the decoder of the pretraining instead of a fresh one. Where
            the objective trains none, a decoder alone is pretrained after it.
    """

    name: str
    title: str
    group: str
    objective: str = objectives.DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    seed: int = 0
    sources: int | None = None
    families: tuple[str, ...] = ()
    share: float = 1.0
    rates: Literal["rd-jepa", "scratch"] = "rd-jepa"
    encoder: float = 0.0
    predictor: float = 1.0
    decoder: float = 1.0
    fresh_predictor: bool = False
    keep_decoder: bool = False

    def equations(self, system: str) -> tuple[str, ...]:
        """Return the sources that are seen before an adaptation to a system, which is never among them."""
        return tuple(name for name in SOURCES if name != system)[: self.sources]

    def applies(self, system: str) -> bool:
        """Return whether a system leaves enough sources; with all of them the change would be none."""
        return self.sources is None or self.sources < len([name for name in SOURCES if name != system])


_REGISTERED = Registry(Change, "a change", "rdjepa.study.changes.register", StudyError)


def register(change: Change) -> Change:
    """Make a change known by its name, for the time of this process.

    Raises:
        StudyError: the name is taken, by another change or a forecaster, or none, see `rdjepa.registry`; or there is no
            such group.
    """
    _REGISTERED.require(change)
    if change.name in forecasters.names():
        raise StudyError(f"expected a name of its own, got {change.name!r}, which is taken; give another")
    if change.group not in GROUPS:
        raise StudyError(f"expected a group among {', '.join(GROUPS)}, got {change.group!r}; name one of them")
    return _REGISTERED.add(change)


def names() -> list[str]:
    """Return the registered names in the order of groups, within one in that of registration."""
    return [change.name for change in sorted(_REGISTERED, key=lambda change: list(GROUPS).index(change.group))]


def get(name: str) -> Change:
    """Return a registered change.

    Raises:
        StudyError: no change has that name; the registered ones are listed.
    """
    return _REGISTERED.get(name)


def find(name: str) -> Change | None:
    """Return the change of a name, or None for the name of a forecaster."""
    return _REGISTERED.find(name)


def baseline(name: str) -> forecasters.Baseline:
    """Return the forecaster of a name; that of a change is RD-JEPA.

    Raises:
        ArgumentError: neither a change nor a forecaster has that name.
    """
    return forecasters.get(FORECASTER if name in _REGISTERED else name)


def group(name: str) -> str:
    """Return the group of a change, or that of all forecasters."""
    return _REGISTERED.get(name).group if name in _REGISTERED else UNCHANGED


# The encoder alone is taken over; without a pretrained predictor there is nothing that a slow rate would keep.
_ENCODER: dict[str, Any] = {"fresh_predictor": True, "rates": "scratch"}
# One pretraining for both decoders.
_FIELDS: dict[str, Any] = {"objective": "field-forecast", "options": {"keep_decoder": True}}
for _change in (
    Change(REFERENCE, f"{objectives.get(objectives.DEFAULT).title} (reference)", "objectives"),
    Change("field-forecast", objectives.get("field-forecast").title, "objectives", **_FIELDS),
    Change("reference-encoder", "Predictive latent, its encoder alone", "objectives", **_ENCODER),
    Change("field-forecast-encoder", "Direct forecast, its encoder alone", "objectives", **_ENCODER, **_FIELDS),
    *(
        Change(name, objectives.get(name).title, "objectives", objective=name, **_ENCODER)
        for name in objectives.names()
        if name not in (objectives.DEFAULT, "field-forecast") and not objectives.get(name).continues
    ),
    Change("family", "Random equations alone", "systems", sources=0, families=FAMILIES),
    Change("sources-and-family", "Sources and random equations", "systems", families=FAMILIES),
    Change("sources-and-family-decoder", "Sources and random equations, decoder too", "systems", families=FAMILIES,
           keep_decoder=True),
    *(Change(f"seed-{n + 1}", f"Another pretraining seed ({n + 1})", "seeds", seed=n) for n in (1, 2)),
    Change("without-diffusion", "No diffusion branch", "parts", without=("diffusion",)),
    Change("without-reaction", "No reaction branch", "parts", without=("reaction",)),
    Change("without-both", "Neither branch", "parts", without=("diffusion", "reaction")),
    Change("without-laplacian", "Diffusion branch without the Laplacian", "parts", without=("laplacian",)),
    Change("scratch-without-diffusion", "From scratch, no diffusion branch", "parts", objective="random",
           without=("diffusion",), encoder=1.0, **_ENCODER),
    Change("without-masks", "No random masks", "parts", without=("masks",)),
    Change("without-blocks", "No blocks", "parts", without=("blocks",)),
    Change("without-tubes", "No tubes", "parts", without=("tubes",)),
    Change("without-same-time", "No same-time targets", "parts", without=("same-time",)),
    Change("one-equation", "1 source equation", "equations", sources=1),
    *(Change(f"{w}-equations", f"{n} source equations", "equations", sources=n) for n, w in
      enumerate(("two", "three", "four"), start=2)),
    Change("third-of-trajectories", "A third of the trajectories", "equations", share=1 / 3),
    Change("tenth-of-trajectories", "A tenth of the trajectories", "equations", share=1 / 10),
    Change("encoder-tuned", "Encoder tuned like the predictor", "adaptation", encoder=1.0),
    Change("tuned-as-scratch", "All tuned as from scratch", "adaptation", rates="scratch", encoder=1.0),
    Change("predictor-frozen", "Predictor not tuned", "adaptation", predictor=0.0),
    Change("predictor-slow", "Predictor, a tenth of the rate", "adaptation", predictor=0.1),
    Change("predictor-slower", "Predictor, a hundredth of the rate", "adaptation", predictor=0.01),
    Change("decoder-pretrained", "Decoder pretrained after the rest", "adaptation", keep_decoder=True),
    Change("decoder-kept", "Direct forecast, decoder kept", "adaptation", keep_decoder=True, **_FIELDS),
    Change("decoder-kept-slow", "Direct forecast, decoder kept, a tenth of both rates", "adaptation", keep_decoder=True,
           predictor=0.1, decoder=0.1, **_FIELDS),
):  # fmt: skip
    register(_change)
