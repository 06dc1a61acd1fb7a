"""Two contenders on the same supports and trajectories: differences with intervals, shares won, skill.

All functions take the rows of a study as a data frame with columns study, profile, system, k, support_seed, contender,
regime, metric, horizon, trajectory and value, and average over horizons first, with equal weight (S3.4).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

SETTING = ["study", "profile", "system", "k"]
PLACE = ["support_seed", "regime", "trajectory"]


def pairs(rows: pd.DataFrame, model: str, baseline: str, metric: str = "relative_l2") -> pd.DataFrame:
    """The horizon-averaged errors of two contenders, one line per setting, support seed and test trajectory.

    Support seeds that only one of the two was run on are left out.

    Returns:
        Columns of setting and place, and the errors under "model" and "baseline".

    Raises:
        ValueError: there is nothing to compare, a row occurs twice, or the two have different trajectories.
    """
    sides = {}
    for side, name in (("model", model), ("baseline", baseline)):
        part = rows[(rows["contender"] == name) & (rows["metric"] == metric)]
        if part.duplicated([*SETTING, *PLACE, "horizon"]).any():
            raise ValueError(f"expected one row of {name} per place and horizon, got two; compare one study at a time")
        sides[side] = part.groupby([*SETTING, *PLACE], observed=True)["value"].mean()
    run = [*SETTING, "support_seed"]
    counts = pd.concat({side: v.groupby(run, observed=True).size() for side, v in sides.items()}, axis=1).dropna()
    found = pd.concat(sides, axis=1, join="inner")
    matched = found.groupby(run, observed=True).size().reindex(counts.index, fill_value=0)
    if counts.empty:
        raise ValueError(f"expected rows of {model} and {baseline} on the same runs, got none of {metric}; run both")
    if not (counts["model"].eq(matched) & counts["baseline"].eq(matched)).all():
        raise ValueError(
            f"expected {model} and {baseline} on the same trajectories, got different; evaluate them again"
        )
    return found.reset_index()


def compare(
    rows: pd.DataFrame,
    model: str,
    baseline: str,
    metric: str = "relative_l2",
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Paired comparison in every setting (study, profile, system, K).

    Supports and test trajectories are crossed, every trajectory being forecast under every support, so the bootstrap
    draws supports and, independently, trajectories, with replacement, and takes the mean over the drawn table (the
    pigeonhole bootstrap of Owen, 2007). With a single support the interval is over trajectories alone.

    Args:
        rows: of a study.
        model: contender of interest.
        baseline: contender to hold against it.
        metric: which error.
        level: of the intervals.
        draws: of the bootstrap.
        seed: of the bootstrap.

    Returns:
        One line per setting: `model` and `baseline`, mean errors; `difference`, model minus baseline, with `low` and
        `high`; `reduction` in per cent, the mean of the reductions of each support, with `reduction_sd`,
        `reduction_low` and `reduction_high`; `won`, the share of supports and trajectories on which the model's error
        is the lower one; `supports` and `trajectories`, their numbers.
    """
    lines = []
    for setting, part in pairs(rows, model, baseline, metric).groupby(SETTING, observed=True, sort=False):
        ours, theirs = (
            part.pivot(index="support_seed", columns=["regime", "trajectory"], values=side).to_numpy()
            for side in ("model", "baseline")
        )
        if not (np.isfinite(ours) & np.isfinite(theirs)).all():
            raise ValueError(f"expected the same trajectories under every support of {setting}, got different ones")
        drawn = _drawn(ours, theirs, draws, seed)
        tails = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(drawn[0], tails)
        reduction_low, reduction_high = np.quantile(drawn[1], tails)
        reductions = 100 * (1 - ours.mean(axis=1) / theirs.mean(axis=1))
        lines.append(
            {
                **dict(zip(SETTING, setting, strict=True)),
                "model": ours.mean(),
                "baseline": theirs.mean(),
                "difference": (ours - theirs).mean(),
                "low": low,
                "high": high,
                "reduction": reductions.mean(),
                "reduction_sd": reductions.std(ddof=1) if len(reductions) > 1 else np.nan,
                "reduction_low": reduction_low,
                "reduction_high": reduction_high,
                "won": (ours < theirs).mean(),
                "supports": ours.shape[0],
                "trajectories": ours.shape[1],
            }
        )
    return pd.DataFrame(lines)


def skill(
    rows: pd.DataFrame, metric: str = "relative_l2", baselines: Sequence[str] = ("persistence", "extrapolation")
) -> pd.DataFrame:
    """Skill of every contender against forecasts that cost nothing: 1 - error / error of the baseline.

    It is 1 for a perfect forecast, 0 for one as good as the baseline, negative for a worse one; computed for each
    support from errors averaged over trajectories and horizons, then averaged over supports.

    Returns:
        One line per setting, contender and baseline: `skill`, its sample deviation `sd` over supports, and `supports`.

    Raises:
        ValueError: a baseline was not run.
    """
    missing = set(baselines) - set(rows["contender"].unique())
    if missing:
        raise ValueError(f"expected rows of {', '.join(baselines)}, got none of {', '.join(sorted(missing))}; run them")
    part = rows[rows["metric"] == metric]
    runs = part.groupby([*SETTING, "support_seed", "contender"], observed=True)["value"].mean().unstack("contender")
    tables = []
    for baseline in baselines:
        against = 1 - runs.drop(columns=list(baselines)).div(runs[baseline], axis=0)
        tidy = against.stack().dropna().rename("value").reset_index()
        groups = tidy.groupby([*SETTING, "contender"], observed=True, sort=False)["value"]
        table = groups.agg(skill="mean", sd="std", supports="size").reset_index()
        tables.append(table.assign(baseline=baseline))
    return pd.concat(tables, ignore_index=True)


def _drawn(ours: np.ndarray, theirs: np.ndarray, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bootstrap draws of the difference and of the mean reduction in per cent, from errors (supports, trajectories)."""
    rng = np.random.default_rng(seed)
    supports, trajectories = ours.shape
    by_support = rng.multinomial(supports, np.full(supports, 1 / supports), size=draws) / supports
    by_trajectory = rng.multinomial(trajectories, np.full(trajectories, 1 / trajectories), size=draws) / trajectories
    means = [by_trajectory @ errors.T for errors in (ours, theirs)]  # (draws, supports)
    difference = (by_support * (means[0] - means[1])).sum(axis=1)
    reduction = 100 * (by_support * (1 - means[0] / means[1])).sum(axis=1)
    return difference, reduction
