"""Errors during adaptation: against the number of updates, with the last and with averaged weights."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rdjepa.io.atomic import write_bytes
from rdjepa.study.report import charts
from rdjepa.study.report.labels import label, look, ordered
from rdjepa.study.report.sheet import MISSING, Sheet, Text, markdown
from rdjepa.viz import style

METRIC = "relative_l2"
PLACE = ["system", "k", "forecaster", "weights", "updates"]


def means(curve: pd.DataFrame) -> pd.DataFrame:
    """Return mean and sample deviation over support selections of relative L2, averaged over horizons.

    While a study runs, forecasters have been computed for different selections, and those differ more than forecasters
    do. At each system and K only the selections that all forecasters there share are taken; where they share none,
    nothing is. An adaptation may make fewer updates for one selection than for another: a forecaster has a mean after
    those numbers of updates that all of these selections have.

    Args:
        curve: what `rdjepa.study.collect.curve` returned.

    Returns:
        Columns system, k, forecaster, weights, updates, mean, sd, n; errors as shares of one, systems in the order of
        tables.
    """
    chosen = curve[curve["metric"] == METRIC].astype({"value": "float64"})
    setting = ["system", "k"]
    names = chosen.groupby(setting, observed=True)["forecaster"].transform("nunique")
    having = chosen.groupby([*setting, "support_seed"], observed=True)["forecaster"].transform("nunique")
    shared = chosen[names == having]
    runs = shared.groupby([*PLACE, "support_seed"], observed=True)["value"].mean()
    found = runs.groupby(level=PLACE, observed=True).agg(mean="mean", sd="std", n="size").reset_index()
    number = shared.groupby(setting, observed=True)["support_seed"].nunique().rename("number")
    found = found.join(number, on=setting)
    found = found[found["n"] == found["number"]].drop(columns="number")
    places = {name: place for place, name in enumerate(ordered("system", found["system"]))}
    return found.sort_values("system", key=lambda names: names.map(places), kind="stable", ignore_index=True)


def table(found: pd.DataFrame) -> Sheet:
    """Arrange `means`: a row per system, K and forecaster, a column per kind of weights and number of updates.

    The lowest error of a system and K is marked in the columns that all forecasters have there.
    """
    columns = sorted({(weights, int(n)) for weights, n in zip(found["weights"], found["updates"], strict=True)})
    rows = []
    for (system, k), part in found.groupby(["system", "k"], sort=False, observed=True):
        known = part.set_index(["forecaster", "weights", "updates"]).to_dict("index")
        names = ordered("forecaster", part["forecaster"])
        lowest = {
            column: min(names, key=lambda name: known[(name, *column)]["mean"])
            for column in columns
            if len(names) > 1 and all((name, *column) in known for name in names)
        }
        for name in names:
            texts = tuple(_text(known.get((name, *column)), lowest.get(column) == name) for column in columns)
            rows.append(((label("system", str(system)), str(k), label("forecaster", name)), texts))
    caption = (
        "Relative L² error on the way, times 100, mean over horizons, mean ± sample deviation over the support "
        "selections that all forecasters have; every few windows of every test trajectory."
    )
    heads = tuple((weights, f"{updates:,} updates") for weights, updates in columns)
    return Sheet(caption, ("PDE", "K", "Model"), heads, tuple(rows))


def _text(result: dict[Any, Any] | None, bold: bool) -> Text:
    if result is None:
        return Text(MISSING)
    spread = f" ± {100 * result['sd']:.2f}" if result["n"] > 1 else ""
    return Text(f"{100 * result['mean']:.2f}{spread}", bold)


def write_curve(curve: pd.DataFrame, out: Path, title: str) -> list[Path]:
    """Write `curve.md`, `curve.csv` and a figure of the errors against the number of updates.

    Nothing is written without rows, or where forecasters share no support selection.

    Args:
        curve: what `rdjepa.study.collect.curve` returned for one study and profile.
        out: directory, made if need be.
        title: heading of the table.
    """
    found = means(curve) if len(curve) else curve
    if found.empty:
        return []
    with style.print_style():
        pictures = style.save(_figure(found), out, "curve")
    return [
        write_bytes(out / "curve.md", f"# {title}\n\n{markdown(table(found))}".encode()),
        write_bytes(out / "curve.csv", found.to_csv(index=False, float_format="%.8g").encode()),
        *pictures,
    ]


def _figure(found: pd.DataFrame) -> Figure:
    """Draw error against updates, solid for averaged weights and dotted for the last: a panel per system and K.

    A setting without rows has none.
    """
    systems, budgets = list(dict.fromkeys(found["system"])), sorted(set(found["k"]))
    marks = sorted(set(found["updates"]))
    figure = style.Figure(figsize=(style.WIDTH, 1.9 * len(systems) + 0.6))
    axes: Any = figure.subplots(len(systems), len(budgets), squeeze=False, sharex=True)
    for line, system in zip(axes, systems, strict=True):
        for panel, k in zip(line, budgets, strict=True):
            part = found[(found["system"] == system) & (found["k"] == k)].sort_values("updates")
            if part.empty:
                panel.set_axis_off()
                continue
            for (name, weights), curve in part.groupby(["forecaster", "weights"], sort=False, observed=True):
                solid = {"ls": "-", "label": label("forecaster", str(name))} if weights == "averaged" else {"ls": ":"}
                panel.plot(curve["updates"], 100 * curve["mean"], **(look(str(name)) | solid))
            panel.set(xscale="log", title=f"{label('system', str(system))}, K = {k}")
            style.logarithmic(panel.yaxis)
            panel.set_xticks(marks, list(map(str, marks)))
            panel.set_xticks([], minor=True)
    drawn = [[panel for panel in part if panel.axison] for part in (*axes, *axes.T)]  # in every line and column
    for line in drawn[: len(systems)]:
        line[0].set_ylabel("relative L² error (%)")
    for column in drawn[len(systems) :]:
        column[-1].set_xlabel("updates")
        column[-1].tick_params(labelbottom=True)
    if set(found["weights"]) > {"averaged"}:
        figure.suptitle("solid: averaged weights, dotted: the last ones", fontsize="medium")
    charts.legend(figure, axes, loc="outside lower center", frameon=False)
    return figure
