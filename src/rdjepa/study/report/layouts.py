"""Which result stands where: the tables of the paper, in its order of rows and columns, and those beyond it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from rdjepa.study.report.labels import FORECASTERS
from rdjepa.study.report.published import published, published_table
from rdjepa.study.report.summary import DIMENSIONS

UNTRAINED = ("persistence", "extrapolation")

_SPREAD = "mean ± sample deviation over the support selections"
_MEAN = f"times 100, averaged over h = 1..5, {_SPREAD}"
_METRICS = ("relative_l2", "gradient_l1")
_BY_BUDGET = (("system", "forecaster"), ("metric", "k"))
_BY_HORIZON = (("system", "forecaster"), ("horizon",))
_CONTROL = (("system", "k"), ("metric", "forecaster"))
_REGIMES = (("forecaster", "k"), ("metric", "regime"))

# number in the paper: study, what it shows, dimensions of its rows and columns
_PAPER = {
    "1": ("heldout", f"Forecasts of equations excluded from pretraining; errors {_MEAN}", _BY_BUDGET),
    **{
        f"S{number}": ("source", f"{kind} errors on the source systems, K = {k}; times 100, {_SPREAD}", _BY_HORIZON)
        for number, (kind, k) in enumerate(product(("Relative L²", "Gradient L¹"), (5, 10, 20)), start=6)
    },
    "S12": ("source", f"Test regimes, with equal weight for the five source systems; errors {_MEAN}", _REGIMES),
    "S13": (
        "heldout",
        f"Control without a predictive latent; errors {_MEAN}; reductions paired by selection",
        _CONTROL,
    ),
    "S14": ("scratch", f"The same architecture trained from scratch; errors {_MEAN}", _BY_BUDGET),
    "S15": ("boundary", f"Barkley between walls; errors {_MEAN}", _BY_BUDGET),
}
_OF_STUDY = {"heldout": ("1", "S13", "S14"), "scratch": ("S14",), "boundary": ("S15",)}
_OF_STUDY["source"] = tuple(f"S{number}" for number in range(6, 13))

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Layout:
    """Where the results of a table stand.

    Attributes:
        name: of its files.
        title: as it is referred to.
        caption: what the values are, without a full stop.
        rows: dimension -> its values, outermost first; every combination is a row.
        columns: likewise; every combination is a column.
        fixed: the values of the dimensions that do not vary.
        published: study and number of the table in the paper; None for a table beyond it.
        names: labels in place of the usual ones.
        digits: format of a value.
    """

    name: str
    title: str
    caption: str
    rows: Mapping[str, tuple]
    columns: Mapping[str, tuple]
    fixed: Mapping[str, str | int] = field(default_factory=dict)
    published: tuple[str, str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    digits: str = ".2f"

    def places(self) -> list[list[Place]]:
        """Coordinates of all results, row by row, each in the order of `summary.DIMENSIONS`."""
        names = [*self.rows, *self.columns]
        rows, columns = (list(product(*axes.values())) for axes in (self.rows, self.columns))
        return [[self._place(dict(zip(names, row + column, strict=True))) for column in columns] for row in rows]

    def _place(self, varied: Mapping[str, str | int]) -> Place:
        return tuple(varied[name] if name in varied else self.fixed[name] for name in DIMENSIONS)


def axis(study: str, dimension: str) -> tuple:
    """The values of a dimension in a study of the paper, in its order."""
    return tuple(published(study)[dimension].unique().tolist())


def paper_tables(study: str) -> list[Layout]:
    """The tables of the paper that a study fills; those of held-out systems include the control from scratch."""
    published(study)  # refuses an unknown study
    return [_from_paper(number) for number in _OF_STUDY[study]]


def further_tables(study: str, forecasters: Iterable[str]) -> list[Layout]:
    """Tables beyond the paper: every forecaster under four metrics, and skill against the untrained ones.

    Args:
        study: one of the paper's.
        forecasters: those that have rows.
    """
    present = set(forecasters)
    found = tuple(name for name in FORECASTERS if name in present)
    other = _by_budget(
        study,
        "other-metrics",
        "Other metrics",
        f"Mean squared error, and the VRMSE of The Well; {_MEAN}",
        found,
        ("mse", "vrmse"),
    )
    tables = [
        _by_budget(study, "all-forecasters", "All forecasters", f"Every forecaster; errors {_MEAN}", found, _METRICS),
        replace(other, digits=".3g"),
    ]
    for against in (name for name in UNTRAINED if name in found):
        name = FORECASTERS[against].lower()
        pairs = {f"{each}/{against}": FORECASTERS[each] for each in found if each not in UNTRAINED}
        caption = f"Share of the error of {name} that is saved, in percent, paired by selection; h = 1..5, {_SPREAD}"
        skill = _by_budget(study, f"skill-{against}", f"Skill against {name}", caption, tuple(pairs), _METRICS)
        tables.append(replace(skill, names=pairs))
    return [each for each in tables if each.rows["forecaster"]]


def _by_budget(
    study: str, name: str, title: str, caption: str, forecasters: tuple[str, ...], metrics: tuple[str, ...]
) -> Layout:
    """A table beyond the paper: a row per system and forecaster, a column per metric and K, means over horizons."""
    systems = tuple(name for name in axis(study, "system") if name != "all")
    rows, columns = {"system": systems, "forecaster": forecasters}, {"metric": metrics, "k": axis(study, "k")}
    return Layout(name, title, caption, rows, columns, {"horizon": "mean", "regime": "all"})


def _from_paper(number: str) -> Layout:
    """A table whose rows and columns are those of the published one."""
    study, caption, (rows, columns) = _PAPER[number]
    values = published_table(study, number)
    axes = {name: tuple(values[name].unique().tolist()) for name in DIMENSIONS}
    return Layout(
        f"table-{number.lower()}",
        f"Table {number}",
        caption,
        {name: axes[name] for name in rows},
        {name: axes[name] for name in columns},
        {name: axes[name][0] for name in DIMENSIONS if name not in rows + columns},
        (study, number),
        {"rd-jepa/no-latent": "Reduction (%)"},
    )
