"""Rows and columns of tables: those of the paper, in its order, and further ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import pandas as pd

from rdjepa.checks import among
from rdjepa.evaluation.metrics import DEFAULT_METRICS, METRICS
from rdjepa.forecasters import registry
from rdjepa.study.registry import Study
from rdjepa.study.report.labels import label, ordered
from rdjepa.study.report.published import published_table
from rdjepa.study.report.summary import DIMENSIONS

SELECTIONS = 3  # support selections behind every value of the paper

_SPREAD = "mean ± sample deviation over the support selections"
_MEAN = f"times 100, averaged over h = 1..5, {_SPREAD}"
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

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Layout:
    """The rows and columns of a table.

    Attributes:
        name: stem of its files.
        title: heading in the report.
        caption: description of the values, without a full stop.
        rows: dimension -> its values, outermost first; every combination is a row.
        columns: dimension -> its values, outermost first; every combination is a column.
        fixed: the values of the dimensions that do not vary.
        published: study and number of the table in the paper; None for a table beyond it.
        names: labels that replace those of `labels.label`.
        digits: format of a value.
        selections: support selections that a complete value comes from.
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
    selections: int = SELECTIONS

    def places(self) -> list[list[Place]]:
        """Return the coordinates of all results, row by row, each in the order of `summary.DIMENSIONS`."""
        names = [*self.rows, *self.columns]
        rows, columns = (list(product(*axes.values())) for axes in (self.rows, self.columns))
        return [[self._place(dict(zip(names, row + column, strict=True))) for column in columns] for row in rows]

    def _place(self, varied: Mapping[str, str | int]) -> Place:
        return tuple(varied[name] if name in varied else self.fixed[name] for name in DIMENSIONS)


def axis(study: Study, values: pd.DataFrame, dimension: str) -> tuple:
    """Return the values of a dimension in a study's rows and in the published tables, in order.

    Args:
        study: the study.
        values: as `summary.run_values` returns them.
        dimension: "system" (without the mean over systems) or "k".
    """
    found = set(values[dimension].unique().tolist())
    for number in study.published or ():
        found |= set(published_table(_PAPER[number][0], number)[dimension].unique().tolist())
    return tuple(sorted(found)) if dimension == "k" else tuple(ordered(dimension, found - {"all"}))


def paper_tables(study: Study) -> list[Layout]:
    """Return the tables of the paper that a study fills; those of held-out systems include the control from scratch.

    Raises:
        ArgumentError: a number that is none of the paper's; the known ones are listed.
    """
    for number in study.published or ():
        among(number, _PAPER, "a published table")
    return [_from_paper(number) for number in study.published or ()]


def further_tables(study: Study, values: pd.DataFrame) -> list[Layout]:
    """Return the tables beyond the paper: every forecaster under every metric, and skill against the untrained ones.

    Args:
        study: the study.
        values: as `summary.run_values` returns them; the tables have the forecasters, metrics, systems and K in them.
    """
    found, metrics = ordered("forecaster", values["forecaster"]), ordered("metric", values["metric"])
    first = [name for name in metrics if name in DEFAULT_METRICS]
    others = [name for name in metrics if name not in DEFAULT_METRICS]
    axes = {"system": axis(study, values, "system"), "k": axis(study, values, "k")}
    tables = [
        _by_budget(axes, "all-forecasters", "All forecasters", f"Every forecaster; errors {_MEAN}", found, first),
        replace(
            _by_budget(axes, "other-metrics", "Other metrics", f"{_described(others)}; {_MEAN}", found, others),
            digits=".3g",
        ),
    ]
    untrained = [name for name in found if name in registry.names() and not registry.get(name).trained]
    for against in untrained:
        name = label("forecaster", against)
        pairs = {f"{each}/{against}": label("forecaster", each) for each in found if each not in untrained}
        caption = f"Share of the error of {name} that is saved, in percent, paired by selection; h = 1..5, {_SPREAD}"
        skill = _by_budget(axes, f"skill-{against}", f"Skill against {name}", caption, list(pairs), first)
        tables.append(replace(skill, names=pairs))
    selections = SELECTIONS if study.seeds is None else len(study.seeds)
    return [
        replace(each, selections=selections) for each in tables if each.rows["forecaster"] and each.columns["metric"]
    ]


def _described(metrics: list[str]) -> str:
    """Return the descriptions of metrics as the beginning of a sentence."""
    texts = [METRICS[name].description if name in METRICS else name for name in metrics]
    text = ", and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
    return text[:1].upper() + text[1:]


def _by_budget(
    axes: Mapping[str, tuple], name: str, title: str, caption: str, forecasters: list[str], metrics: list[str]
) -> Layout:
    """Return a further table: a row per system and forecaster, a column per metric and K, means over horizons."""
    rows = {"system": axes["system"], "forecaster": tuple(forecasters)}
    columns = {"metric": tuple(metrics), "k": axes["k"]}
    return Layout(name, title, caption, rows, columns, {"horizon": "mean", "regime": "all"})


def _from_paper(number: str) -> Layout:
    """Return a table with the rows and columns of a published one."""
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
