"""Results arranged by the layouts of tables: formatted tables, CSV rows with run ids, and counts of lowest errors."""

import math
from collections import Counter
from dataclasses import dataclass, replace

import pandas as pd

from rdjepa.study.report import summary
from rdjepa.study.report.labels import heading, label
from rdjepa.study.report.layouts import Layout, Place
from rdjepa.study.report.published import published, published_table
from rdjepa.study.report.sheet import MISSING, Sheet, Text

FORECASTER = summary.DIMENSIONS.index("forecaster")


@dataclass(frozen=True)
class Result:
    """A value of a table.

    Attributes:
        mean: over support selections; errors in physical units, reductions as shares of one.
        sd: sample deviation over them; NaN for one selection.
        seeds: the support seeds, separated by spaces.
        runs: ids of the runs behind it, separated by spaces.
        lowest: whether it is the lowest of its setting, where all forecasters have the same seeds.
    """

    mean: float
    sd: float
    seeds: str
    runs: str
    lowest: bool = False


NOTHING = Result(math.nan, math.nan, "", "")


def results(values: pd.DataFrame, layout: Layout) -> dict[Place, Result]:
    """Return the known results of a table, by coordinates.

    Args:
        values: run-level values, as `summary.run_values` returns them.
        layout: the table.
    """
    values = _relevant(values, layout)
    parts = [values]
    for pair in (name for name in _axis(layout, "forecaster") if "/" in name):
        parts.append(summary.reductions(values, *pair.split("/")))
    if "all" in _axis(layout, "system"):
        assert layout.published is not None
        systems = [name for name in published(layout.published[0])["system"].unique() if name != "all"]
        parts.append(summary.over_systems(values, systems))
    known = summary.over_runs(pd.concat(parts, ignore_index=True)).to_dict("index")
    places = [place for line in layout.places() for place in line if place in known]
    found = {place: Result(*(known[place][name] for name in ("mean", "sd", "seeds", "runs"))) for place in places}
    return _marked(found)


def published_results(layout: Layout) -> dict[Place, Result]:
    """Return the published values of one of the paper's tables, by coordinates; none for another table."""
    if layout.published is None:
        return {}
    study, number = layout.published
    values = published_table(study, number).set_index(summary.DIMENSIONS)
    return _marked({place: Result(line["mean"], line["sd"], "", "") for place, line in values.iterrows()})


def differences(found: dict[Place, Result], paper: dict[Place, Result], selections: int) -> dict[Place, Result]:
    """Return our mean minus the paper's, where both are known and ours is of so many support selections."""
    return {
        place: Result(result.mean - paper[place].mean, math.nan, result.seeds, result.runs)
        for place, result in found.items()
        if place in paper and len(result.seeds.split()) == selections
    }


def sheet(layout: Layout, found: dict[Place, Result], caption: str, *, signed: bool = False) -> Sheet:
    """Return the formatted table, with a dash for a missing result.

    A result of fewer selections than `layout.selections` has their number in brackets.

    Args:
        layout: the table.
        found: its results.
        caption: of the table.
        signed: write a sign before positive values, and no number of selections.
    """
    labels = [_names(layout, dict(layout.rows), short=True), _names(layout, dict(layout.columns), short=False)]
    texts = [tuple(_text(found.get(place), layout, signed) for place in line) for line in layout.places()]
    return Sheet(
        caption,
        tuple(heading(name) for name in layout.rows),
        tuple(labels[1]),
        tuple(zip(labels[0], texts, strict=True)),
    )


def lines(layout: Layout, found: dict[Place, Result], *, comparable: bool) -> pd.DataFrame:
    """Return one row per entry of a table: coordinates, mean and sd (times 100), published values, run ids.

    Args:
        layout: the table.
        found: its results.
        comparable: whether a difference from the published value means anything; it stays empty otherwise, and where
            support selections are missing.
    """
    paper = published_results(layout)
    apart = differences(found, paper, layout.selections) if comparable else {}
    table = []
    for place in (place for line in layout.places() for place in line):
        ours, theirs, difference = (each.get(place, NOTHING) for each in (found, paper, apart))
        table.append(
            dict(zip(summary.DIMENSIONS, place, strict=True))
            | {
                "mean": 100 * ours.mean,
                "sd": 100 * ours.sd,
                "published_mean": round(100 * theirs.mean, 2),
                "published_sd": round(100 * theirs.sd, 2),
                "difference": 100 * difference.mean,
                "seeds": ours.seeds,
                "runs": ours.runs,
            }
        )
    return pd.DataFrame(table).assign(table=layout.title)[["table", *table[0]]]


def lowest(found: dict[Place, Result], forecaster: str) -> tuple[list[Place], list[Place]]:
    """Return the settings in which a forecaster has the lowest error, and those in which another has.

    Only settings with at least two forecasters count, this one among them. A setting is given by the coordinates of
    its lowest result.
    """
    firsts = [place for place, result in found.items() if result.lowest]
    won = [place for place in firsts if place[FORECASTER] == forecaster]
    settings = {_setting(place) for place in found if place[FORECASTER] == forecaster}
    return won, [place for place in firsts if place not in won and _setting(place) in settings]


def finding(title: str, found: dict[Place, Result], paper: dict[Place, Result], forecaster: str) -> str:
    """Say in one sentence how often a forecaster has the lowest error, here and in the paper, and which others have."""
    won, lost = lowest(found, forecaster)
    if not won and not lost:
        return f"{title}: no setting is complete enough for a comparison."
    name = label("forecaster", forecaster)
    text = f"{title}: {name} is lowest in {len(won)} of {len(won) + len(lost)} settings"
    if paper:
        theirs = lowest(paper, forecaster)
        text += f" (paper: {len(theirs[0])} of {len(theirs[0]) + len(theirs[1])}{_beyond(found, paper)})"
    first = Counter(label("forecaster", place[FORECASTER]) for place in lost)
    elsewhere = ", ".join(f"{other} in {count}" for other, count in first.most_common())
    return f"{text}; elsewhere {elsewhere}." if lost else f"{text}."


def _beyond(found: dict[Place, Result], paper: dict[Place, Result]) -> str:
    """Return the end of a phrase that names forecasters which the paper's table has and ours lacks."""
    ours = {place[FORECASTER] for place in found}
    lacking = dict.fromkeys(str(place[FORECASTER]) for place in paper if place[FORECASTER] not in ours)
    names = [label("forecaster", name) for name in lacking if "/" not in name]  # a reduction is none
    return f", also against {', '.join(names)}" if names else ""


def _marked(found: dict[Place, Result]) -> dict[Place, Result]:
    """Mark the lowest error of every setting in which all forecasters that learn have the same support seeds.

    What is neither trained nor fitted takes nothing from a support, so its errors are the same whatever its seeds are.
    """
    settings: dict[Place, list[Place]] = {}
    for place in found:
        # a reduction is no error; lower would be worse
        if "/" not in str(place[FORECASTER]):
            settings.setdefault(_setting(place), []).append(place)
    best = set()
    for places in settings.values():
        learned = [place for place in places if summary.learns(str(place[FORECASTER]))]
        if len(places) > 1 and len({found[place].seeds for place in learned}) <= 1:
            best.add(min(places, key=lambda place: found[place].mean))
    return {place: replace(each, lowest=place in best) for place, each in found.items()}


def _relevant(values: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return the run-level values that a table needs."""
    needed = pd.Series(True, index=values.index)
    for name in ("k", "metric", "horizon", "regime"):
        needed &= values[name].isin(_axis(layout, name))
    return values[needed & values["forecaster"].isin("/".join(_axis(layout, "forecaster")).split("/"))]


def _setting(place: Place) -> Place:
    return place[:FORECASTER] + place[FORECASTER + 1 :]


def _axis(layout: Layout, dimension: str) -> tuple:
    known = {name: (value,) for name, value in layout.fixed.items()} | dict(layout.rows) | dict(layout.columns)
    return known[dimension]


def _names(layout: Layout, axes: dict[str, tuple], *, short: bool) -> list[tuple[str, ...]]:
    """Return the labels of all rows or columns; a short label of K is the number alone."""
    paths: list[tuple[str, ...]] = [()]
    for name, values in axes.items():
        shown = [layout.names.get(v) or (str(v) if short and name == "k" else label(name, v)) for v in values]
        paths = [(*path, text) for path in paths for text in shown]
    return paths


def _text(result: Result | None, layout: Layout, signed: bool) -> Text:
    if result is None:
        return Text(MISSING)
    if signed:
        return Text(format(100 * result.mean, f"+{layout.digits}").replace("-", "−"))
    mean, seeds = format(100 * result.mean, layout.digits).replace("-", "−"), len(result.seeds.split())
    spread = "" if math.isnan(result.sd) else f" ± {format(100 * result.sd, layout.digits)}"
    few = f" [{seeds}]" if 0 < seeds < layout.selections else ""
    return Text(mean + spread + few, result.lowest)
