"""The registry of studies: the systems and forecasters that each compares, and the contents of its report."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as with_default
from typing import Any

from rdjepa.checks import Count, Seed, checked
from rdjepa.errors import ArgumentError, StudyError
from rdjepa.forecasters import registry as forecasters
from rdjepa.registry import Registry
from rdjepa.study import changes, protocol


@dataclass(frozen=True)
class Study:
    """What a study compares.

    Attributes:
        name: as in commands, cells and file names.
        title: heading of its page.
        systems: names of systems, in order.
        forecasters: names of forecasters, or of changes of RD-JEPA (`rdjepa.study.changes`), in the order of cells
            within one group of changes; None for every registered forecaster.
        cells: the study under which its cells are recorded, to read those of another study; its own name by default.
        budgets: numbers K of support trajectories; None for those that the protocol gives each system.
        seeds: support seeds; None for those that the protocol gives each system.
        figures: names in `rdjepa.study.report.figures.FIGURES`; errors by wavenumber follow where there are spectra.
        published: numbers of the paper's tables that it fills; None where nothing was published.
        subject: the forecaster that findings and paired differences are about; by default the first pretrained one in
            the order of tables, or else the first.
        control: the forecaster that reductions of the error are taken against in a table of its own; none by default.
        profile: the profile that is taken where none is named.
        phases: phase -> its systems, in order; a run computes the cells of one phase, the first by default. All systems
            at once without phases.
        changes: whether it compares every registered change beside its forecasters.
    """

    name: str
    title: str
    systems: tuple[str, ...]
    forecasters: tuple[str, ...] | None = None
    cells: str = ""
    budgets: tuple[int, ...] | None = None
    seeds: tuple[int, ...] | None = None
    figures: tuple[str, ...] = ("errors-by-horizon", "all-forecasters")
    published: tuple[str, ...] | None = None
    subject: str = ""
    control: str = ""
    profile: str = "nano"
    phases: Mapping[str, tuple[str, ...]] = with_default(default_factory=dict)
    changes: bool = False

    def __post_init__(self) -> None:
        """Set `cells` to the study's own name where no other is given; refuse values of a wrong type.

        Names of systems and forecasters are looked up in `plan.cells`, since a study may be registered before them.

        Raises:
            StudyError: a string instead of a tuple of names, budgets or seeds that are no whole numbers in their range,
                or a tuple of any that is empty or has something twice.
        """
        for field in ("systems", "forecasters", "figures", "published"):
            value = getattr(self, field)
            if isinstance(value, str):
                raise StudyError(f"expected {field} as a tuple of names, got {value!r}; write ({value!r},)")
        for field, kind, least in (("budgets", Count, "1 on"), ("seeds", Seed, "0 to 4294967295")):
            value = getattr(self, field)
            if value is None:
                continue
            try:
                object.__setattr__(self, field, tuple(checked(each, kind, field) for each in value))
            except (TypeError, ArgumentError) as error:
                raise StudyError(
                    f"expected {field} as a tuple of whole numbers from {least}, got {value!r}; write for example (1,)"
                ) from error
        for field in ("systems", "forecasters", "figures", "published", "budgets", "seeds"):
            value = getattr(self, field)
            if value is not None and (not len(value) or len(set(value)) < len(value)):
                raise StudyError(f"expected {field} that are at least one and all different, got {value!r}; mend them")
        object.__setattr__(self, "cells", self.cells or self.name)

    def compared(self) -> tuple[str, ...]:
        """Return the names of its forecasters and changes; a study that names none leaves out pretrained decoders."""
        named = tuple(forecasters.usual()) if self.forecasters is None else self.forecasters
        return (*named, *(changes.names() if self.changes else ()))

    def systems_in(self, phase: str | None) -> tuple[str, ...]:
        """Return the systems of a phase; of the first when None, and all of them where there are no phases.

        Raises:
            StudyError: there is no such phase; the known ones are listed.
        """
        if phase is None:
            return next(iter(self.phases.values()), self.systems)
        if not self.phases:
            raise StudyError(f"expected no phase of the study {self.name}, which has none, got {phase!r}; leave it out")
        if phase not in self.phases:
            raise StudyError(f"expected a phase among {', '.join(self.phases)}, got {phase!r}; name one of them")
        return self.phases[phase]

    def budgets_of(self, system: str) -> tuple[int, ...]:
        """Return the numbers K of support trajectories of one of its systems."""
        return protocol.budgets(system) if self.budgets is None else self.budgets

    def seeds_of(self, system: str) -> tuple[int, ...]:
        """Return the support seeds of one of its systems."""
        return protocol.support_seeds(system) if self.seeds is None else self.seeds

    def has(self, cell: Mapping[str, Any]) -> bool:
        """Return whether a cell (study, system, k, support_seed, forecaster) belongs to it.

        Budgets, seeds and forecasters are free where the study names none; a forecaster that is not a usual one belongs
        to studies that name it. What is not registered here was, where its cells were computed.
        """
        name, every = cell["forecaster"], self.forecasters is None
        apart = set(forecasters.names()) - set(forecasters.usual())
        unknown = self.changes and name not in {*forecasters.names(), *changes.names()}
        return (
            cell["study"] == self.cells
            and cell["system"] in self.systems
            and (name not in apart if every else name in self.compared() or unknown)
            and (self.budgets is None or cell["k"] in self.budgets)
            and (self.seeds is None or cell["support_seed"] in self.seeds)
        )


_REGISTERED = Registry(Study, "a study", "rdjepa.study.registry.register", StudyError)


def register(study: Study) -> Study:
    """Register a study under its name, in this process.

    Raises:
        StudyError: the name is taken, or none, see `rdjepa.registry`.
    """
    return _REGISTERED.add(study)


def names() -> list[str]:
    """Return the registered names: the paper's four, those of this package, then the user's."""
    return _REGISTERED.names()


def get(name: str) -> Study:
    """Return a registered study.

    Raises:
        StudyError: no study has that name; the registered ones are listed.
    """
    return _REGISTERED.get(name)


# The studies of the paper (S3.1).
PAPER = ("rd-jepa", "no-latent", "fno")
CONTROL = ("rd-jepa", "scratch")
UNTRAINED = tuple(name for name in forecasters.usual() if not forecasters.get(name).trained)
register(
    Study(
        "heldout",
        "Systems held out of pretraining",
        protocol.HELD_OUT,
        figures=("figure-4", "figure-5", "all-forecasters"),
        published=("1", "S13", "S14"),
    )
)
register(
    Study(
        "source",
        "Source systems",
        protocol.SOURCES,
        (*PAPER, *UNTRAINED),
        figures=("figure-2", "figure-3", "all-forecasters"),
        published=tuple(f"S{number}" for number in range(6, 13)),
    )
)
register(
    Study(
        "boundary",
        "Barkley between walls",
        protocol.WALLS,
        (*PAPER, *UNTRAINED),
        figures=("boundary-fields", "boundary-errors", "all-forecasters"),
        published=("S15",),
    )
)
register(
    # The control with the same architecture is compared with RD-JEPA on the held-out systems, so it reads their cells.
    Study(
        "scratch",
        "The same architecture from scratch",
        protocol.HELD_OUT,
        CONTROL,
        cells="heldout",
        figures=("scratch-fields", "scratch-errors"),
        published=("S14",),
    )
)
register(
    # The paper has no pretrained decoder, and not every checkpoint has one; the cells stand beside those of its study.
    Study(
        "decoder",
        "A decoder that was pretrained too",
        protocol.HELD_OUT,
        ("rd-jepa", "rd-jepa-decoder", "rd-jepa-auto", "rd-jepa-alone", "rd-jepa-tuned", "rd-jepa-retained", "scratch",
         "no-latent", "rd-jepa-zero-shot", "linear", "autoregression", "equation"),
        cells="heldout",
        subject="rd-jepa-decoder",
    )
)  # fmt: skip
# The paper's two other studies with the same checkpoints, adapted as the command `adapt` decides.
ADAPTED = (
    "rd-jepa-auto", "rd-jepa-alone", "rd-jepa-zero-shot", "scratch", "no-latent", "linear", "autoregression",
    "equation",
)  # fmt: skip
register(
    Study(
        "decoder-source",
        "A decoder that was pretrained too, on source systems",
        protocol.SOURCES,
        ADAPTED,
        cells="source",
    )
)
register(
    Study(
        "decoder-boundary",
        "A decoder that was pretrained too, between walls",
        protocol.WALLS,
        ADAPTED,
        cells="boundary",
    )
)
register(
    # Nor does the paper rehearse. Both controls see the same trajectories, which tells pretraining from seeing them.
    Study(
        "rehearsal",
        "Sources rehearsed beside the support",
        protocol.HELD_OUT,
        ("rd-jepa-rehearsal", "rd-jepa-decoder", "scratch-rehearsal", "no-latent-rehearsal", "rd-jepa", "scratch",
         "no-latent"),
        cells="heldout",
        subject="rd-jepa-rehearsal",
    )
)  # fmt: skip
register(
    # Nor does it turn or mirror the trajectories, which networks with random weights gain from.
    Study(
        "augmented",
        "Turned and mirrored images of the support",
        protocol.HELD_OUT,
        ("rd-jepa-augmented", "rd-jepa-auto-augmented", "rd-jepa-alone", "rd-jepa-auto", "scratch-augmented", "scratch",
         "revit"),
        cells="heldout",
        subject="rd-jepa-augmented",
    )
)  # fmt: skip
register(
    # Nor does it correct a forecast by what its first frame misses of the continued context.
    Study(
        "anchored",
        "Forecasts anchored in their context",
        protocol.HELD_OUT,
        ("rd-jepa-anchored", "rd-jepa-alone", "scratch-anchored", "scratch", "revit"),
        cells="heldout",
        subject="rd-jepa-anchored",
    )
)
register(
    # Choices are made by leaving one source out of the pretraining, of the two that change most between frames;
    # what the paper holds out is for the end.
    Study(
        "ablation",
        "What transfers: pretrainings side by side",
        (*(LEFT_OUT := ("brusselator", "ginzburg-landau")), *protocol.HELD_OUT),
        ("scratch",),
        budgets=(1, 5),
        figures=("reductions", "equations"),
        subject=changes.REFERENCE,
        control="scratch",
        profile="ablation",
        phases={"choice": LEFT_OUT, "final": protocol.HELD_OUT},
        changes=True,
    )
)
