"""Provenance of the rows of a report: profile, versions, fingerprints, seconds."""

import json

import pandas as pd

from rdjepa.errors import ArgumentError
from rdjepa.study.report.labels import heading, label, ordered
from rdjepa.study.report.sheet import MISSING, Sheet, Text

PAPER, UPDATES, TESTS = "paper", 5_000, 300  # profile, updates (Table S5), test trajectories of a system (S1.1)
_SHOWN = 6  # distinct values that are written out
_CELL = ("id", "study", "profile", "system", "k", "support_seed", "forecaster")
_ELSEWHERE = ("identity.", "settings.", "normalizer.", "loss", "support", "rows", "files.", "seconds.")
_WHERE = {"device": "software.device", "precision": "config.precision", "code": "software.source"}
_COSTS = {
    "parameters": ("parameters", "max", ",.0f"),
    "trained": ("trained", "max", ",.0f"),
    "updates": ("updates", "max", ",.0f"),
    "seconds.adapt": ("adaptation (s)", "mean", ",.1f"),
    "seconds.evaluate": ("evaluation (s)", "mean", ",.1f"),
}


def of_rows(rows: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """Return the records of the runs in the rows, with nested entries as columns of their own ("software.torch").

    Their updates are those that were made, as far as that was recorded.

    Raises:
        ArgumentError: a run of the rows is not among the records.
    """
    runs = set(rows["run"].astype(str))
    missing = sorted(runs - set(records["id"].astype(str)))
    if missing:
        raise ArgumentError(
            f"expected a record of every run, got none of {', '.join(missing[:3])}; export both together"
        )
    found = pd.json_normalize(records[records["id"].astype(str).isin(runs)].to_dict("records"))
    if "made" in found:
        found["updates"] = found.pop("made").fillna(found["updates"]).astype(int)
    return found


def sentence(rows: pd.DataFrame, records: pd.DataFrame) -> str:
    """Return profile, updates, test trajectories and support seeds of the rows as text for a caption.

    Args:
        rows: trajectory errors, as `summary.prepare` returns them.
        records: as `of_rows` returns them.
    """
    tests = rows.drop_duplicates(["system", "regime", "trajectory"]).groupby("system").size()
    seeds = sorted(rows["support_seed"].unique())
    trained = records[records["updates"] > 0]
    return (
        f"Profile {rows['profile'].iloc[0]}, {_counted(trained['updates'], 'update', 'updates')}{_how(trained)}, "
        f"{_counted(tests, 'test trajectory', 'test trajectories')} per system, "
        f"support seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    )


def unlike_paper(rows: pd.DataFrame, records: pd.DataFrame) -> str:
    """Return what keeps runs from being compared with published ones, as a phrase; "" if nothing does.

    They are alike in the paper's profile, updates and test trajectories, with the last weights (Table S5, S3.4).

    Args:
        rows: trajectory errors, as `summary.prepare` returns them.
        records: as `of_rows` returns them.
    """
    profile = rows["profile"].iloc[0]
    if profile != PAPER:
        return f"profile {profile} is not the paper's"
    trained = records[records["updates"] > 0]
    others = trained.loc[trained["updates"] != UPDATES, "updates"]
    if len(others):
        return f"{_counted(others, 'update', 'updates')}, not the paper's {UPDATES:,}"
    if (trained.get("config.averaging", pd.Series(dtype=float)).fillna(0) > 0).any():
        return "averaged weights, not the paper's last ones"
    tests = rows.drop_duplicates(["system", "regime", "trajectory"]).groupby("system").size()
    if (tests != TESTS).any():
        return f"{_counted(tests, 'test trajectory', 'test trajectories')} per system, not the paper's {TESTS}"
    return ""


def facts(records: pd.DataFrame) -> list[tuple[str, str, list[str]]]:
    """Return the settings and versions of the cells that no table shows.

    Returns:
        For every entry of the records: name, short text, and the list of all values where the text only counts them.
    """
    found: list[tuple[str, str, list[str]]] = []
    for name in records.columns:
        if name in (*_CELL, *_COSTS) or name.startswith(_ELSEWHERE):
            continue
        values = sorted({_plain(value) for value in records[name].dropna()} - {""})
        if name == "created" and len(values) > 1:
            found.append((name, f"{values[0]} to {values[-1]}", []))
        elif 0 < len(values) <= _SHOWN:
            found.append((name, "; ".join(values), []))
        elif values:
            found.append((name, f"{len(values)} different", values))
    return found


def costs(records: pd.DataFrame) -> Sheet:
    """Return a table of cells, sizes and mean seconds of every forecaster, as far as they were recorded."""
    known = {name: entry for name, entry in _COSTS.items() if name in records}
    rows = []
    for name in ordered("forecaster", records["forecaster"]):
        own = records[records["forecaster"] == name]
        values = [(own[column].agg(how), form) for column, (_, how, form) in known.items()]
        texts = [Text(MISSING if pd.isna(value) else format(value, form)) for value, form in values]
        rows.append(((label("forecaster", name),), (Text(str(len(own))), *texts)))
    columns = (("cells",), *((head,) for head, _, _ in known.values()))
    return Sheet("Sizes and seconds of a cell, by forecaster.", (heading("forecaster"),), columns, tuple(rows))


def where(records: pd.DataFrame) -> pd.DataFrame:
    """Return on which device, in which precision and by which version of the code every cell ran; one line for each.

    Returns:
        Columns forecaster, system, k, support_seed, device, precision, code (the fingerprint of the source), created,
        run; "" for what is not recorded, and for the precision of what is not trained.
    """
    unknown = pd.Series("", index=records.index)
    found = {name: records.get(column, unknown).fillna("") for name, column in _WHERE.items()}
    cell = ["forecaster", "system", "k", "support_seed"]
    lines = records[cell].assign(**found, created=records.get("created", unknown), run=records["id"])
    ranks = {name: {value: i for i, value in enumerate(ordered(name, lines[name]))} for name in cell[:2]}
    return lines.sort_values(cell, key=lambda values: values.map(ranks.get(values.name, lambda value: value)))


def where_sheet(lines: pd.DataFrame) -> Sheet:
    """Return a table of what `where` returned: counts by forecaster, device and precision."""
    rows = []
    for name in ordered("forecaster", lines["forecaster"]):
        own = lines[lines["forecaster"] == name]
        for (device, precision), part in own.groupby(["device", "precision"]):
            versions = len(set(part["code"]) - {""})
            texts = (device or MISSING, precision or MISSING, str(versions or MISSING), str(len(part)))
            rows.append(((label("forecaster", name),), tuple(map(Text, texts))))
    columns = (("device",), ("precision",), ("versions of the code",), ("cells",))
    return Sheet("Where the cells ran.", (heading("forecaster"),), columns, tuple(rows))


def _how(trained: pd.DataFrame) -> str:
    """Return in which precision and on which devices runs were trained, and whether their weights are averages.

    What is usual is left out: float32, the CPU, the last weights.
    """
    precisions, devices = (_distinct(trained, name) for name in ("config.precision", "software.accelerator"))
    kinds = sorted({device.split(":")[0] for device in devices})
    averaged = (trained.get("config.averaging", pd.Series(dtype=float)).fillna(0) > 0).any()
    reduced = f" in {' or '.join(precisions)}" if precisions not in ([], ["float32"]) else ""
    elsewhere = f" on {' or '.join(kinds)}" if kinds not in ([], ["cpu"]) else ""
    return reduced + elsewhere + ", averaged weights" * bool(averaged)


def _distinct(records: pd.DataFrame, name: str) -> list[str]:
    return sorted(set(records.get(name, pd.Series(dtype=str)).dropna()))


def _plain(value: object) -> str:
    if isinstance(value, float):  # pandas turns whole numbers into floats where some cells have none
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)


def _counted(values: pd.Series, one: str, many: str) -> str:
    """Return the span of counts and what is counted."""
    span = _span(values)
    return f"{span} {one if span == '1' else many}"


def _span(values: pd.Series) -> str:
    if values.empty:
        return "0"
    low, high = values.min(), values.max()
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
