"""How much lower the error of every change is than that of a control, and how far pretraining seeds lie apart."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from rdjepa.pde.sampling import stream
from rdjepa.study import changes
from rdjepa.study.report.comparison import draws, interval, matched, with_interval
from rdjepa.study.report.labels import heading, label, ordered
from rdjepa.study.report.sheet import MISSING, Sheet, Text

COLUMNS = [
    "metric",
    "group",
    "forecaster",
    "system",
    "k",
    "supports",
    "trajectories",
    "reduction",
    "low",
    "high",
    "runs",
]
SPREAD = ["system", "k", "pretrainings", "error", "between_pretrainings", "between_supports", "runs"]


def against_control(
    rows: pd.DataFrame, control: str, metrics: Sequence[str], resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Return the mean over support selections of 1 - E / E_control, for every change, system and K that has both.

    E is the mean error of the matched forecasts of one selection (S3.4: a mean of matched reductions, not a ratio that
    is formed after pooling). The interval holds the middle 95 % of this mean when support selections and test
    trajectories are drawn again with replacement, independently and alike for both forecasters, as in
    `comparison.paired`.

    Args:
        rows: trajectory errors, as `summary.prepare` returns them.
        control: the forecaster that reductions are taken against.
        metrics: which rows to take.
        resamples: number of bootstrap draws.
        seed: of the draws.

    Returns:
        `COLUMNS`; reduction, low and high as shares of one, low and high NaN for a single matched forecast.
    """
    others = [name for name in ordered("forecaster", rows["forecaster"]) if name != control]
    found = []
    for metric, name in product(metrics, others):
        for system, k, pair, runs in matched(rows, name, control, metric):
            first, second = pair
            reduction = (1 - first.mean(axis=0) / second.mean(axis=0)).mean()
            of_rows, of_columns = draws(first.shape, resamples, stream("bootstrap", seed, system, k))
            drawn = ((1 - (of_rows @ first) / (of_rows @ second)) * of_columns).sum(axis=1)
            low, high = interval(drawn, first.size)
            size = pair[0].shape[::-1]
            found.append((metric, changes.group(name), name, system, k, *size, reduction, low, high, runs))
    return pd.DataFrame(found, columns=COLUMNS)


def sheet(found: pd.DataFrame, metric: str, caption: str) -> Sheet:
    """Return a table of `against_control` in percent: a row per change, a column per system and K.

    Args:
        found: what `against_control` returned.
        metric: which rows to show.
        caption: of the table.
    """
    chosen = found[found["metric"] == metric]
    lines = chosen.set_index(["forecaster", "system", "k"])
    columns = list(product(ordered("system", chosen["system"]), sorted(chosen["k"].unique())))
    rows, most = [], int(chosen["supports"].max())
    for group, name in chosen[["group", "forecaster"]].drop_duplicates().itertuples(index=False):
        places = [(name, system, k) for system, k in columns]
        texts = tuple(_text(lines.loc[place], most) if place in lines.index else Text(MISSING) for place in places)
        rows.append(((changes.GROUPS[group], label("forecaster", name)), texts))
    heads = tuple((label("system", system), label("k", k)) for system, k in columns)
    return Sheet(caption, ("", "Change"), heads, tuple(rows))


def spread(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return how far the errors of the reference lie apart under several pretraining seeds and several supports.

    Args:
        rows: trajectory errors, as `summary.prepare` returns them.
        metric: which rows to take.

    Returns:
        `SPREAD`, for every system and K with two pretrainings or more, over the supports that all have: the mean error;
        the sample deviation between pretrainings of means over supports; the root mean square over pretrainings of the
        sample deviation between supports (NaN for one support). Errors in the metric's units.
    """
    seeds = [changes.REFERENCE, *(name for name in changes.names() if changes.group(name) == "seeds")]
    chosen = rows[(rows["metric"] == metric) & rows["forecaster"].isin(seeds)]
    found = []
    for (system, k), part in chosen.groupby(["system", "k"], sort=False):
        table = part.groupby(["support_seed", "forecaster"])["value"].mean().unstack("forecaster").dropna()
        if table.shape[1] > 1 and len(table):
            within = float(np.sqrt((table.std(axis=0) ** 2).mean())) if len(table) > 1 else np.nan
            numbers = (table.shape[1], table.to_numpy().mean(), table.mean(axis=0).std(), within)
            used = part[part["support_seed"].isin(table.index)]
            found.append((system, k, *numbers, " ".join(used["run"].unique())))
    return pd.DataFrame(found, columns=SPREAD)


def spread_sheet(found: pd.DataFrame, caption: str) -> Sheet:
    """Return the table of `spread`, times 100."""
    rows = []
    for line in found.itertuples(index=False):
        values = (line.error, line.between_pretrainings, line.between_supports)
        texts = [MISSING if np.isnan(value) else f"{100 * value:.2f}" for value in values]
        rows.append(((label("system", line.system), str(line.k)), tuple(map(Text, [str(line.pretrainings), *texts]))))
    columns = (("pretrainings",), ("error",), ("between pretrainings",), ("between supports",))
    return Sheet(caption, (heading("system"), heading("k")), columns, tuple(rows))


def _text(line: pd.Series, supports: int) -> Text:
    """Return a reduction with its interval in percent, bold where the whole interval is above zero."""
    return Text(with_interval(line, "reduction", 1, supports), bool(line["low"] > 0))
