"""From trajectory errors to the numbers of a table: means over trajectories, then over support sets (S3.4).

A result has the coordinates of `DIMENSIONS`: horizon "1".."5" or "mean" (every horizon with equal weight), regime or
"all" (every trajectory with equal weight), system or "all" (every system with equal weight). A forecaster "a/b" is the
reduction of a's error against b's.
"""

from collections.abc import Sequence

import pandas as pd

from rdjepa.errors import ArgumentError
from rdjepa.forecasters import registry

DIMENSIONS = ["system", "k", "forecaster", "metric", "horizon", "regime"]
SELECTION = ["system", "k", "support_seed"]
_ERROR = [*SELECTION, "forecaster", "metric", "regime"]


def prepare(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with plain types, or refuse rows that cannot be averaged together.

    Raises:
        ArgumentError: no rows, rows of several profiles, two runs of one cell, an error that is not finite, or
            forecasters of one system with different test trajectories.
    """
    if rows.empty:
        raise ArgumentError("expected rows of finished cells, got none; run the study first")
    profiles = sorted(set(rows["profile"].astype(str)))
    if len(profiles) > 1:
        raise ArgumentError(f"expected rows of one profile, got {', '.join(profiles)}; report them one at a time")
    plain = rows.assign(value=rows["value"].astype("float64"))
    for name in ("system", "forecaster", "regime", "metric", "run"):
        plain[name] = plain[name].astype(str)
    refuse_two_runs(plain)
    if not plain["value"].abs().lt(float("inf")).all():
        run = plain.loc[~plain["value"].abs().lt(float("inf")), "run"].iloc[0]
        raise ArgumentError(f"expected finite errors, got one of run {run} that is not; run that cell again")
    tests = plain.drop_duplicates(["system", "run", "regime", "trajectory", "metric", "horizon"])
    if len(tests) < len(plain):
        raise ArgumentError(
            "expected one row per run, metric, horizon and trajectory, got repeated ones; collect them again"
        )
    # Rows are distinct, so the test sets of a system are equal where each has as many as they have together.
    together = tests.drop_duplicates(["system", "regime", "trajectory"]).groupby("system").size()
    sizes = tests.groupby(["system", "run", "metric", "horizon"]).size()
    mixed = [str(system) for system, found in sizes.groupby(level="system") if (found != together[system]).any()]
    if mixed:
        raise ArgumentError(
            f"expected the same test trajectories for every forecaster, metric and horizon, got different ones for "
            f"{', '.join(mixed)}; take the foreign rows out"
        )
    return plain


def refuse_two_runs(rows: pd.DataFrame) -> None:
    """Refuse rows of two runs of one cell: their mean would mean nothing.

    Raises:
        ArgumentError: there are such rows.
    """
    runs = rows.groupby([*SELECTION, "forecaster"], observed=True)["run"].nunique()
    if (runs > 1).any():
        raise ArgumentError(
            f"expected one run of each cell, got {runs.max()} of {runs.idxmax()}; take the foreign one out"
        )


def uneven(rows: pd.DataFrame) -> list[tuple[str, int]]:
    """Return every system and K at which forecasters that are trained or fitted have different support selections.

    What is neither takes nothing from a support, so its errors are the same whatever its selections are.
    """
    learning = rows[rows["forecaster"].isin([name for name in rows["forecaster"].unique() if learns(name)])]
    having = learning.groupby(["system", "k", "support_seed"], sort=False)["forecaster"].nunique()
    names = learning.groupby(["system", "k"], sort=False)["forecaster"].nunique()
    least = having.groupby(level=["system", "k"]).min()
    return [(str(system), int(k)) for (system, k), number in names.items() if least[system, k] < number]


def learns(forecaster: str) -> bool:
    """Return whether a forecaster is trained or fitted; an unknown one is taken to be."""
    if forecaster not in registry.names():
        return True
    return registry.get(forecaster).trained or registry.get(forecaster).fitted


def run_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return run-level errors: mean over trajectories at each horizon, and the mean of those over horizons.

    Args:
        rows: what `prepare` returned.

    Returns:
        `SELECTION`, forecaster, metric, regime, horizon, run, value; errors in physical units.
    """
    # Over all regimes every trajectory counts once, so "all" is not the mean of the regimes where their sizes differ.
    everywhere = pd.concat([rows, rows.assign(regime="all")])
    values = everywhere.groupby([*_ERROR, "horizon", "run"], as_index=False)["value"].mean()
    values["horizon"] = values["horizon"].astype(str)
    average = values.groupby([*_ERROR, "run"], as_index=False)["value"].mean().assign(horizon="mean")
    return pd.concat([values, average], ignore_index=True)


def over_systems(values: pd.DataFrame, systems: Sequence[str]) -> pd.DataFrame:
    """Return means of run-level values over systems, within a selection, where every system has a value."""
    names = [name for name in values.columns if name not in ("system", "run", "value")]
    groups = values[values["system"].isin(systems)].groupby(names)
    means = groups.agg(value=("value", "mean"), run=("run", " ".join), n=("value", "size")).reset_index()
    # a mean over fewer systems would not compare with the others
    return means[means["n"] == len(systems)].drop(columns="n").assign(system="all")


def reductions(values: pd.DataFrame, forecaster: str, against: str) -> pd.DataFrame:
    """Return the reduction 1 - E / E_against of every run, paired by selection, as forecaster "forecaster/against"."""
    keys = [*SELECTION, "metric", "horizon", "regime"]
    pairs = values[values["forecaster"] == forecaster].merge(values[values["forecaster"] == against], on=keys)
    pairs["value"] = 1.0 - pairs["value_x"] / pairs["value_y"]
    pairs["run"] = pairs["run_x"] + " " + pairs["run_y"]
    return pairs.assign(forecaster=f"{forecaster}/{against}")[[*keys, "forecaster", "run", "value"]]


def over_runs(values: pd.DataFrame) -> pd.DataFrame:
    """Return mean and sample deviation (divisor n - 1) over the support selections of run-level values.

    Returns:
        Indexed by `DIMENSIONS`: mean, sd (NaN for a single run), n, seeds ("777 778 779") and runs (ids).
    """
    ordered = values.sort_values("support_seed")
    ordered["seed"] = ordered["support_seed"].astype(str)
    return ordered.groupby(DIMENSIONS).agg(
        mean=("value", "mean"),
        sd=("value", "std"),
        n=("value", "size"),
        seeds=("seed", " ".join),
        runs=("run", " ".join),
    )
