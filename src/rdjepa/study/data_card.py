"""The data card of one system: equation, ranges, numerics, counts, rejected draws, baseline error and support sets."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rdjepa.io.markdown import pipe_table
from rdjepa.pde.system import System


@dataclass(frozen=True)
class Summary:
    """Counts and measurements of the stored trajectories of one system.

    Attributes:
        counts: "split/regime" -> number of trajectories.
        draws: "split/regime" -> number of draws that they took, rejected ones included.
        reasons: rejected draws by reason.
        families: trajectories by family of initial states.
        persistence: "split/regime" -> relative L2 error of the persistence forecast at h = 1..5.
        sampled: "split/regime" -> number of trajectories behind `persistence`.
        seconds: processor seconds of one draw, simulated again on one core.
        bytes: size of the files.
        support: support seed -> indices of the pool, in order.
        coinciding: pairs of support seeds that select the same trajectory at K = 1.
        software: versions that made the data.
        kinds: kind of equation -> (trajectories, draws), for a family.
        closest: held-out equation -> smallest distance to it, for a family.
    """

    counts: Mapping[str, int]
    draws: Mapping[str, int]
    reasons: Mapping[str, int]
    families: Mapping[str, int]
    persistence: Mapping[str, list[float]]
    sampled: Mapping[str, int]
    seconds: float
    bytes: int
    support: Mapping[int, tuple[int, ...]]
    coinciding: tuple[tuple[int, int], ...]
    software: Mapping[str, str]
    kinds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    closest: Mapping[str, float] = field(default_factory=dict)


def data_card(system: System, summary: Summary, sheet: str) -> str:
    """Return the Markdown text of the card.

    Args:
        system: the equation; everything about it is rendered from the object that is integrated.
        summary: counts and measurements of the stored trajectories.
        sheet: file name of the contact sheet, in the folder of the card.
    """
    numerics = system.numerics
    pooled = (
        f", stored as means of {numerics.size // numerics.stored} x {numerics.size // numerics.stored} blocks"
        if numerics.size != numerics.stored
        else ""
    )
    software = ", ".join(f"{name} {version}" for name, version in sorted(summary.software.items()))
    made, drawn = sum(summary.counts.values()), sum(summary.draws.values())
    sections = [
        f"# {system.title}\n\n{system.reference}",
        "\n\n".join(f"$${side}$$" for side in system.latex()),
        "## Coefficients\n\n" + _coefficients(system),
        "## Initial states\n\n"
        + "\n".join(
            f"- {name}: {', '.join(family.name for family in regime.initial_conditions)}"
            for name, regime in system.regimes.items()
        )
        + "\n\n"
        + pipe_table(("family", "trajectories"), [(name, str(n)) for name, n in summary.families.items()]),
        "## Numerics\n\n"
        + pipe_table(
            ("quantity", "value"),
            [
                (
                    "domain",
                    f"[{numerics.origin:g}, {numerics.origin + numerics.length:g})², {numerics.boundary}"
                    + "; coordinates in the files are distances from its corner" * (numerics.origin != 0),
                ),
                ("grid", f"{numerics.size} x {numerics.size}{pooled}"),
                ("method", f"{numerics.method}, Laplacian {numerics.laplacian}, float64"),
                ("largest step", f"{numerics.dt:g}"),
                ("frames", f"{numerics.frames}, t = {numerics.first:g} to {numerics.last:g}, float32"),
                ("screens", "; ".join(f"`{screen!r}`" for screen in system.screens)),
            ],
        ),
        "## Trajectories\n\n"
        + pipe_table(
            ("split/regime", "trajectories", "draws", "rejected"),
            [
                (part, str(n), str(summary.draws[part]), f"{1 - n / summary.draws[part]:.1%}")
                for part, n in summary.counts.items()
            ],
        )
        + f"\n\n{made} trajectories of {drawn} draws, {summary.bytes / 2**30:.2f} GiB"
        + f"{_effort(summary.seconds, drawn)}.",
        *_kinds(system, summary),
        "## Rejected draws\n\n"
        + (
            pipe_table(("reason", "draws"), [(k, str(n)) for k, n in summary.reasons.items()])
            if summary.reasons
            else "None."
        ),
        "## Error of no change\n\nRelative L2 error of repeating the newest frame, every window.\n\n"
        + pipe_table(
            ("split/regime", "trajectories", *(f"h = {h}" for h in range(1, 6))),
            [
                (part, str(summary.sampled[part]), *(f"{error:.3f}" for error in errors))
                for part, errors in summary.persistence.items()
            ],
        ),
        "## Support sets\n\n" + _supports(summary),
        *_choices(system, summary),
        f"## Contact sheet\n\n![trajectories]({sheet})",
        f"Made with {software}. Layout: HDF5 of The Well. `rdjepa data verify` checks every file.",
    ]
    return "\n\n".join(sections) + "\n"


def _coefficients(system: System) -> str:
    boxes = [box for regime in system.regimes.values() for box in regime.boxes]
    if not any(box.derive for box in boxes):
        return pipe_table(("coefficient", "meaning", "unit", *system.regimes), _ranges(system))
    meanings = [(f"`{c.name}`", c.description, c.unit) for c in system.coefficients]
    drawn = [
        (box.name, "; ".join(f"`{name}` {low:.3g} to {high:.3g}" for name, (low, high) in box.ranges.items()))
        for box in boxes
    ]
    return (
        pipe_table(("coefficient", "meaning", "unit"), meanings)
        + "\n\nThey follow from numbers that are drawn uniformly, other ones for each kind of equation:\n\n"
        + pipe_table(("kind", "drawn"), drawn)
    )


def _effort(seconds: float, drawn: int) -> str:
    """Return the end of a sentence on what draws cost; "" where none could be simulated again."""
    if math.isnan(seconds):
        return ""
    return f"; {seconds:.2f} processor seconds per draw, {seconds * drawn / 60:.1f} core-minutes for all draws"


def _kinds(system: System, summary: Summary) -> list[str]:
    """Return the sections of a family: acceptance by kind, and the distance to what is held out."""
    if not summary.kinds or system.apart is None:
        return []
    accepted = [(kind, str(made), str(drawn), f"{made / drawn:.0%}") for kind, (made, drawn) in summary.kinds.items()]
    distances = [(name, f"{value:.3f}") for name, value in summary.closest.items()]
    return [
        "## Kinds of equations\n\n" + pipe_table(("kind", "trajectories", "draws", "accepted"), accepted),
        "## Distance to what is held out\n\n"
        "The smallest distance of the trajectories to which each equation is the nearest one; a draw nearer than "
        f"{system.apart.least:g} is rejected.\n\n" + pipe_table(("held out", "smallest distance"), distances),
    ]


def _choices(system: System, summary: Summary) -> list[str]:
    """Return the section of what the sources of the equation leave open; none where nothing is noted."""
    heading = "## Choices" if summary.kinds else "## Choices that the paper leaves open"
    return [f"{heading}\n\n" + "\n".join(f"- {note}" for note in system.notes)] if system.notes else []


def _ranges(system: System) -> list[tuple[str, ...]]:
    rows = []
    for coefficient in system.coefficients:
        spans = []
        for regime in system.regimes:
            boxes = dict.fromkeys(tuple(box.ranges[coefficient.name]) for box in system.regime(regime).boxes)
            spans.append(" or ".join(f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in boxes))
        rows.append((f"`{coefficient.name}`", coefficient.description, coefficient.unit, *spans))
    return rows


def _supports(summary: Summary) -> str:
    if not summary.support:
        return "None: nothing is adapted to a family, or no pool trajectory is stored."
    rows = [(str(seed), ", ".join(map(str, indices))) for seed, indices in summary.support.items()]
    same = "; ".join(f"{a} and {b}" for a, b in summary.coinciding)
    warning = f"\n\n**Seeds that select the same trajectory at K = 1: {same}.**" if same else ""
    return pipe_table(("seed", "pool indices in order; K takes the first K"), rows) + warning
