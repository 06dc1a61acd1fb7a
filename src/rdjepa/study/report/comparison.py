"""Paired comparison of two forecasters: differences with bootstrap intervals, and the share of lower errors."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

from rdjepa.errors import ArgumentError
from rdjepa.pde.sampling import stream
from rdjepa.study.report.labels import heading, label, ordered
from rdjepa.study.report.sheet import MISSING, Sheet, Text
from rdjepa.study.report.summary import refuse_two_runs

COLUMNS = ["system", "k", "supports", "trajectories", "difference", "low", "high", "won", "by_support", "runs"]


def paired(
    rows: pd.DataFrame, forecaster: str, against: str, metric: str, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Return the mean of E_forecaster - E_against over matched forecasts, for every system and K that both have.

    A matched forecast is a test trajectory under one support selection; its error is the mean over horizons. The
    interval holds the middle 95 % of the means when support selections and test trajectories are drawn again with
    replacement, independently, because all selections are tested on the same trajectories (the pigeonhole bootstrap of
    Owen, Annals of Applied Statistics 1, 2007). With one selection it measures the choice of trajectories alone.

    Args:
        rows: trajectory errors, as `summary.prepare` returns them.
        forecaster: the first of the pair; negative differences mean that its error is lower.
        against: the second of the pair.
        metric: which rows to take.
        resamples: number of bootstrap draws.
        seed: of the draws; those of a system and K are the same whatever others are among the rows.

    Returns:
        system, k, supports, trajectories, difference, low, high in the metric's units (low and high are NaN for a
        single matched forecast, which has no interval), won: the share of matched forecasts, pairs of a trajectory and
        a selection, in which the forecaster's error is lower, by_support: the mean difference of every selection, and
        runs: ids of all runs behind them.

    Raises:
        ArgumentError: see `matched`.
    """
    found = []
    for system, k, (first, second), runs in matched(rows, forecaster, against, metric):
        table = first - second
        of_rows, of_columns = draws(table.shape, resamples, stream("bootstrap", seed, system, k))
        drawn = ((of_rows @ table) * of_columns).sum(axis=1)
        low, high = interval(drawn, table.size)
        won, each = (table < 0).mean(), " ".join(f"{value:.4g}" for value in table.mean(axis=0))
        found.append((system, k, *table.shape[::-1], table.mean(), low, high, won, each, runs))
    return pd.DataFrame(found, columns=COLUMNS)


def matched(
    rows: pd.DataFrame, forecaster: str, against: str, metric: str
) -> Iterator[tuple[str, int, tuple[np.ndarray, np.ndarray], str]]:
    """Yield system, K, the errors (trajectories, supports) of two forecasters where both have them, and their runs.

    Args:
        rows: trajectory errors, as `summary.prepare` returns them.
        forecaster: the first of the pair.
        against: the second of the pair.
        metric: which rows to take.

    Raises:
        ArgumentError: two runs of a cell, whose mean would mean nothing, or support selections that were tested on
            different trajectories.
    """
    chosen = rows[(rows["metric"] == metric) & rows["forecaster"].isin([forecaster, against])]
    refuse_two_runs(chosen)
    keys = ["system", "k", "support_seed", "regime", "trajectory"]
    errors = chosen.groupby([*keys, "forecaster"])["value"].mean().unstack("forecaster")
    if not {forecaster, against} <= set(errors.columns):
        return
    runs = chosen.groupby(["system", "k", "support_seed"])["run"].unique()
    for (system, k), part in errors.dropna().groupby(level=["system", "k"], sort=False):
        wide = part.droplevel(["system", "k"]).unstack("support_seed")
        if wide.isna().to_numpy().any():
            raise ArgumentError(
                f"expected the same test trajectories for every support selection of {system}, got different ones; "
                "take the foreign rows out"
            )
        seeds = part.index.unique("support_seed")
        behind = " ".join(dict.fromkeys(run for seed in seeds for run in runs[system, k, seed]))
        yield str(system), int(k), (wide[forecaster].to_numpy(), wide[against].to_numpy()), behind


def against_all(rows: pd.DataFrame, forecaster: str, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Return `paired` of one forecaster with every other under every metric; first columns are metric and against."""
    others = [name for name in ordered("forecaster", rows["forecaster"]) if name != forecaster]
    parts = [
        paired(rows, forecaster, other, metric).assign(metric=metric, against=other)
        for metric, other in product(metrics, others)
    ]
    return pd.concat(parts, ignore_index=True)[["metric", "against", *COLUMNS]] if parts else pd.DataFrame()


def comparison_sheet(found: pd.DataFrame, metric: str, caption: str) -> Sheet:
    """Return a table of the differences of one metric, times 100, with their intervals, and the share won in percent.

    Args:
        found: what `against_all` returned.
        metric: which rows to show.
        caption: of the table.
    """
    lines = found[found["metric"] == metric].set_index(["system", "against", "k"])
    systems, others = ordered("system", found["system"]), ordered("forecaster", found["against"])
    budgets = sorted(found["k"].unique())
    rows = []
    for system, other in product(systems, others):
        texts = []
        for k in budgets:
            line = lines.loc[(system, other, k)] if (system, other, k) in lines.index else None
            texts += [Text(MISSING)] * 2 if line is None else _texts(line, int(lines["supports"].max()))
        rows.append(((label("system", system), label("forecaster", other)), tuple(texts)))
    columns = tuple((label("k", k), part) for k in budgets for part in ("difference [95 %]", "won"))
    return Sheet(caption, (heading("system"), "Against"), columns, tuple(rows))


def draws(shape: tuple[int, ...], resamples: int, random: np.random.Generator) -> list[np.ndarray]:
    """Return the weights (resamples, size) of rows and of columns that are drawn with replacement.

    Drawing n of n rows is weighting each by a multinomial count, which needs no copy of a table.
    """
    return [random.multinomial(size, np.full(size, 1 / size), size=resamples) / size for size in shape]


def interval(drawn: np.ndarray, forecasts: int) -> tuple[float, float]:
    """Return the quantiles that hold the middle 95 % of draws; NaN for draws of a single forecast.

    Those are all the same, which says nothing about the choice of it.
    """
    if forecasts == 1:
        return np.nan, np.nan
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def with_interval(line: pd.Series, name: str, digits: int, supports: int) -> str:
    """Return a share with its interval, both times 100.

    A dash replaces the interval of a single matched forecast; the number of support selections follows where others in
    the table have more.

    Args:
        line: has the value, low, high and supports.
        name: of the value.
        digits: after the point.
        supports: most selections of a value in the table.
    """
    value, low, high = (f"{100 * line[each]:.{digits}f}".replace("-", "−") for each in (name, "low", "high"))
    shown = MISSING if np.isnan(line["low"]) else f"{low}, {high}"
    # no brackets, which after an interval would be a link in Markdown
    fewer = f" ({line['supports']})" if line["supports"] < supports else ""
    return f"{value} [{shown}]{fewer}"


def _texts(line: pd.Series, supports: int) -> list[Text]:
    """Return the difference with its interval, bold where the whole interval is below zero, and the share won."""
    difference = with_interval(line, "difference", 2, supports)
    return [Text(difference, bool(line["high"] < 0)), Text(f"{line['won']:.0%}")]
