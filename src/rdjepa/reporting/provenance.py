"""What the rows of a report come from, in words and as a table."""

import json

import pandas as pd

_SHOWN = 6  # distinct values that are written out


def sentence(rows: pd.DataFrame, records: pd.DataFrame) -> str:
    """Profile, updates, test trajectories and support seeds behind the rows, for a caption.

    Args:
        rows: trajectory errors, as `summary.prepare` returns them.
        records: one line per cell, with id and updates.
    """
    mine = records[records["id"].isin(rows["run"].unique())]
    tests = rows.drop_duplicates(["system", "regime", "trajectory"]).groupby("system").size()
    seeds = ", ".join(map(str, sorted(rows["support_seed"].unique())))
    return (
        f"Profile {rows['profile'].iloc[0]}, {_span(mine.loc[mine['updates'] > 0, 'updates'])} updates, {_span(tests)} "
        f"test trajectories a system, support seeds {seeds}"
    )


def check(rows: pd.DataFrame, records: pd.DataFrame) -> None:
    """Refuse rows without a record.

    Raises:
        ValueError: a run of the rows is not among the records.
    """
    missing = sorted(set(rows["run"].astype(str)) - set(records["id"].astype(str)))
    if missing:
        raise ValueError(
            f"expected a record of every run, got none of {missing[0]}"
            + (f" and {len(missing) - 1} others" if missing[1:] else "")
            + "; export rows and records of the study together"
        )


def facts(records: pd.DataFrame) -> list[tuple[str, str, list[str]]]:
    """What is the same, or not, over all cells.

    Returns:
        For every entry of the records but those that name a cell: its name, a short text, and all its values where they
        are too many for that.
    """
    found: list[tuple[str, str, list[str]]] = []
    for name in records.columns:
        if name in ("id", "k", "support_seed", "system", "contender", "study", "profile"):
            continue
        for part, column in _columns(name, records[name]):
            values = list(dict.fromkeys(json.dumps(v, default=str, sort_keys=True).strip('"') for v in column.dropna()))
            if not values:
                continue
            if len(values) <= _SHOWN:
                found.append((part, "; ".join(values), []))
            elif pd.api.types.is_numeric_dtype(column):
                found.append((part, f"{column.min():g} to {column.max():g}, {column.sum():g} together", []))
            else:
                found.append((part, f"{len(values)} different", values))
    return found


def _columns(name: str, column: pd.Series) -> list[tuple[str, pd.Series]]:
    """A column of mappings as one column per key, any other as it is."""
    if not column.map(lambda value: isinstance(value, dict)).all():
        return [(name, column)]
    parts = pd.DataFrame(column.tolist(), index=column.index)
    return [(f"{name}: {key}", parts[key].infer_objects()) for key in parts]


def _span(values: pd.Series) -> str:
    if values.empty:
        return "0"
    low, high = values.min(), values.max()
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
